"""Nodes that are no ops of the graph: constants, inputs, handles.

A variable of TensorFlow 1 is an op: its value is sent to readers on other devices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.frontends.tensorflow.ops import RESOURCE, STRING
from regal.frontends.tensorflow.schema import REF

if TYPE_CHECKING:
    from regal.frontends.tensorflow.flat import Node

# What the caller gives.
INPUTS = frozenset({"Placeholder", "PlaceholderV2", "_Arg"})
CONSTANTS = frozenset({"Const", "HostConst", "ImmutableConst", "_HostConst"})
# Queues of TensorFlow 1 have references to strings for handles.
_HANDLES = {RESOURCE, STRING + REF}
RETURN = "_Retval"  # marks what a graph returns


def is_handle(node: Node) -> bool:
    """Return whether a node only hands out a handle of what it stands for: a variable, a queue."""
    return not node.inputs and bool(node.results) and set(node.results) <= _HANDLES


def is_source(node: Node) -> bool:
    """Return whether a node makes what others share: a handle, or a variable of TensorFlow 1."""
    return (
        not node.inputs
        and bool(node.results)
        and all(dtype == RESOURCE or dtype > REF for dtype in node.results)
    )


def is_no_op(node: Node) -> bool:
    """Return whether a node is no op of the graph: a constant, an input, a handle, a mark."""
    return node.kind in CONSTANTS or node.kind in INPUTS or node.kind == RETURN or is_handle(node)
