"""Nodes that are no ops of the graph: constants, inputs, handles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.frontends.tensorflow.ops import RESOURCE
from regal.frontends.tensorflow.schema import REF

if TYPE_CHECKING:
    from regal.frontends.tensorflow.flat import Node

# What the caller gives.
INPUTS = frozenset({"Placeholder", "PlaceholderV2", "_Arg"})
CONSTANTS = frozenset({"Const", "HostConst", "ImmutableConst", "_HostConst"})
RETURN = "_Retval"  # marks what a graph returns


def is_source(node: Node) -> bool:
    """Return whether a node only hands out what it stands for: a variable, a queue."""
    return (
        not node.inputs
        and bool(node.results)
        and all(dtype == RESOURCE or dtype > REF for dtype in node.results)
    )


def is_no_op(node: Node) -> bool:
    """Return whether a node is no op of the graph: a constant, an input, a handle, a mark."""
    return node.kind in CONSTANTS or node.kind in INPUTS or node.kind == RETURN or is_source(node)
