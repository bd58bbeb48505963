"""Which results lie in the buffer of an input, and which may be written over one."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from regal.frontends.tensorflow.kinds import (
    IN_PLACE,
    MERGE,
    SLICE_ALIGNMENT,
    SLICES,
    SWITCH,
    VIEWS,
    VIEWS_OF_EQUAL_SIZE,
    WHILES,
)
from regal.frontends.tensorflow.lists import KEEPERS
from regal.frontends.tensorflow.ops import RESOURCE, base_type
from regal.frontends.tensorflow.schema import REF
from regal.frontends.tensorflow.values import bytes_of

if TYPE_CHECKING:
    from regal.frontends.tensorflow.flat import Edge, Node
    from regal.frontends.tensorflow.sizes import Sized

View = tuple[int, int]  # (input, offset in its bytes)


def view_of(graph: Sized, position: int, k: int) -> View | None:
    """Return in which input, and where in it, result `k` of a node lies; None: in neither."""
    node = graph.flat.nodes[position]
    if not node.inputs:
        return None
    if node.results[k] > REF:
        # An assignment hands on the variable that it was given.
        return next(((i, 0) for i, e in enumerate(node.inputs) if _type(graph, e) > REF), None)
    if node.kind in SWITCH:
        return 0, 0
    if node.kind in WHILES and node.results[k] == RESOURCE:
        return k, 0  # a loop hands back the handles that it was given
    if node.kind in VIEWS:
        if node.kind == "IdentityN":
            return k, 0
        return (0, 0) if k == 0 else None
    if k == 0 and node.kind in KEEPERS:
        return 0, 0
    if k == 0 and _leaves_data_alone(graph, position, node):
        return 0, 0
    if node.kind in SLICES:
        return _slice_of(graph, position, node, k)
    return None


def in_place_pairs(graph: Sized, position: int) -> list[tuple[int, int]]:
    """Return the (input, result) pairs whose buffer the kernel of a node hands on."""
    node = graph.flat.nodes[position]
    pairs = list(IN_PLACE.get(node.kind, ()))
    if node.kind == "AddN" or node.kind in MERGE:
        pairs = [(i, 0) for i in range(len(node.inputs))]
    if node.kind in WHILES:
        pairs = [(i, i) for i in range(min(len(node.inputs), len(node.results)))]
    return [
        (i, k)
        for i, k in pairs
        if i < len(node.inputs)
        and k < len(node.results)
        and _fits(graph, node.inputs[i], (position, k))
    ]


def _fits(graph: Sized, source: Edge, target: Edge) -> bool:
    """Return whether a buffer can be handed on: equal type and number of elements."""
    return (
        _type(graph, source) == _type(graph, target)
        and base_type(_type(graph, source)) != RESOURCE
        and prod(graph.shapes[source]) == prod(graph.shapes[target])
    )


def _type(graph: Sized, edge: Edge) -> int:
    return graph.flat.nodes[edge[0]].results[edge[1]]


def _leaves_data_alone(graph: Sized, position: int, node: Node) -> bool:
    """Return whether a kernel that could move data has nothing to do here."""
    source, target = node.inputs[0], (position, 0)
    if not _fits(graph, source, target):
        return False
    if node.kind in ("AddN", "Pack"):
        return len(node.inputs) == 1
    if node.kind == "Transpose":
        return sum(size != 1 for size in graph.shapes[source]) <= 1
    return node.kind in VIEWS_OF_EQUAL_SIZE or node.kind == "Cast"


def _slice_of(graph: Sized, position: int, node: Node, k: int) -> View | None:
    """Return where a part of the first axis begins, if the runtime makes no copy of it."""
    operand = 1 if node.kind == "Split" else 0
    source = graph.shapes[node.inputs[operand]]
    if not source:
        return None
    rows = _rows(graph, position, node, k, source)
    if rows is None:
        return None
    first, count = rows
    row = bytes_of(source[1:], _type(graph, node.inputs[operand]))
    if count != source[0] and (row % SLICE_ALIGNMENT or row == 0):
        return None
    if not 0 <= first <= first + count <= source[0]:
        return None
    return operand, first * row


def _rows(
    graph: Sized, position: int, node: Node, k: int, source: tuple[int, ...]
) -> tuple[int, int] | None:
    """Return (first row, number of rows) of a part of the first axis; None: it is no such."""
    inputs = node.inputs
    if node.kind == "Unpack":
        axis = node.proto.attr["axis"].i if "axis" in node.proto.attr else 0
        return (k, 1) if axis in (0, -len(source)) else None
    result = graph.shapes[position, k]
    if node.kind in ("Split", "SplitV"):
        axes = graph.values.get(inputs[0 if node.kind == "Split" else 2])
        if axes is None or axes[0] not in (0, -len(source)):
            return None
        return sum(graph.shapes[position, j][0] for j in range(k)), result[0]
    begin = graph.values.get(inputs[1])
    if begin is None:
        return None
    if node.kind == "Slice":
        is_part = result[1:] == source[1:] and len(begin) == len(source)
        return (begin[0], result[0]) if is_part and not any(begin[1:]) else None
    return _strided_rows(graph, node, begin, source)


def _strided_rows(
    graph: Sized, node: Node, begin: tuple[int, ...], source: tuple[int, ...]
) -> tuple[int, int] | None:
    """Return the rows of a StridedSlice that names the first axis alone."""
    attributes = node.proto.attr
    if any(attributes[a].i for a in ("ellipsis_mask", "new_axis_mask") if a in attributes):
        return None
    end, strides = graph.values.get(node.inputs[2]), graph.values.get(node.inputs[3])
    if end is None or strides != (1,) or len(begin) != 1 or len(end) != 1:
        return None
    masks = {a: attributes[a].i if a in attributes else 0 for a in ("begin_mask", "end_mask")}
    first = begin[0] + source[0] if begin[0] < 0 else begin[0]
    if masks["begin_mask"]:
        first = 0
    if "shrink_axis_mask" in attributes and attributes["shrink_axis_mask"].i:
        return first, 1
    last = end[0] + source[0] if end[0] < 0 else min(end[0], source[0])
    if masks["end_mask"]:
        last = source[0]
    return first, max(last - first, 0)
