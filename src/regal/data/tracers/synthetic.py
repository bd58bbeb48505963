"""Synthetic graphs: seeds in turn, those kept that leave something to gain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal import __version__
from regal.data.headroom import headroom
from regal.data.items import Item
from regal.data.synthetic import FAMILIES, synthetic_graph
from regal.errors import ModelError

if TYPE_CHECKING:
    from regal.graph.types import Graph

EACH = 40  # candidates per family
LEAST_HEADROOM = 0.10  # of which a long search beats a short one


def items() -> list[Item]:
    """Return the candidates of every family, by number."""
    return [
        Item(
            framework="graph",
            source="synthetic",
            family=family,
            architecture=f"{family}-{number:03}",
        )
        for family in FAMILIES
        for number in range(EACH)
    ]


def trace(item: Item) -> Graph:
    """Return the graph of an item.

    Raises:
        ModelError: a long search gains too little over a short one.
    """
    number = int(item.architecture.rpartition("-")[2])
    graph = synthetic_graph(item.family, number, item.key)
    found = headroom(graph)
    if found < LEAST_HEADROOM:
        raise ModelError(f"no headroom: a long search gains {100 * LEAST_HEADROOM:.0f} % nowhere")
    return graph


def version() -> str:
    """Return the version of this package: it makes the graphs itself."""
    return f"regal {__version__}"
