"""Synthetic graphs: seeds in turn; the set keeps those that leave something to gain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal import __version__
from regal.data.items import SYNTHETIC, Item
from regal.data.synthetic import FAMILIES, synthetic_graph

if TYPE_CHECKING:
    from regal.graph.types import Graph

EACH = 16  # candidates per family


def items() -> list[Item]:
    """Return the candidates of every family, by number."""
    return [
        Item(
            framework="graph",
            source=SYNTHETIC,
            family=family,
            architecture=f"{family}-{number:03}",
        )
        for family in FAMILIES
        for number in range(EACH)
    ]


def trace(item: Item) -> Graph:
    """Return the graph of an item."""
    number = int(item.architecture.rpartition("-")[2])
    return synthetic_graph(item.family, number, item.key)


def version() -> str:
    """Return the version of this package: it makes the graphs itself."""
    return f"regal {__version__}"
