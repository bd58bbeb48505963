"""Architectures that no package ships whole: recommenders, graph networks, experts, recurrences.

Each is written from its paper's equations, small on purpose, in several depths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from regal.data.items import Item
from regal.data.tracers.torch_common import MeanLoss
from regal.data.tracers.torch_models import recommenders, recurrent, segmentation, structured
from regal.frontends.torch.trace import fake_module, inference_graph, training_graph

if TYPE_CHECKING:
    from collections.abc import Callable

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
    """Return inference and training items of every recipe."""
    return [
        Item(
            framework="torch",
            source="zoo",
            family=family,
            architecture=name,
            mode=mode,
            batch=1 if mode == "inference" else TRAINING_BATCH,
        )
        for name, (family, _, _) in RECIPES.items()
        for mode in ("inference", "training")
    ]


def trace(item: Item) -> Graph:
    """Return the graph of an item."""
    _, make, inputs = RECIPES[item.architecture]
    is_training = item.mode == "training"
    module, mode = fake_module(lambda: make().train(is_training))
    with mode:
        args = inputs(item.batch)
    if is_training:
        return training_graph(MeanLoss(module), args, item.key)
    return inference_graph(module, args, item.key)


def version() -> str:
    """Return the version of torch."""
    return f"torch {torch.__version__}"
