"""Architectures that no package ships whole: recommenders, graph networks, experts, recurrences.

Each is written from its paper's equations, small on purpose, in several depths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.data.items import MODES, Item, items_of
from regal.data.tracers.torch_common import torch_version, traced
from regal.data.tracers.torch_models import recommenders, recurrent, segmentation, structured

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch
    from torch import nn

    from regal.graph.types import Graph

    Inputs = tuple[torch.Tensor, ...]
    Recipe = tuple[str, Callable[[], nn.Module], Callable[[int], Inputs]]

RECIPES: dict[str, Recipe] = {
    **recommenders.RECIPES,
    **recurrent.RECIPES,
    **segmentation.RECIPES,
    **structured.RECIPES,
}
TRAINING_BATCH = 8


def items() -> list[Item]:
    """Return items of every recipe in every mode."""
    families = {name: family for name, (family, _, _) in RECIPES.items()}
    return items_of("torch", "zoo", families, modes=MODES, training_batch=TRAINING_BATCH)


def trace(item: Item) -> Graph:
    """Return the graph of an item."""
    _, make, inputs = RECIPES[item.architecture]
    return traced(item, make, lambda _: inputs(item.batch))


def version() -> str:
    """Return the version of torch and of the tracer."""
    return torch_version()
