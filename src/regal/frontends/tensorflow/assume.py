"""Shapes that depend on data: bounded where the operator has a bound, else assumed.

The rules, in this order; docs/decisions/0012-tensorflow-frontend.md lists them for users:
1. What an operator can yield at most: every element (Where, Unique, DynamicPartition), the
   number of boxes asked for (NonMaxSuppression).
2. A Merge yields the largest of what may reach it.
3. A dimension of what comes from outside (queues, iterators, parsers) is 1; first dimensions
   of results of one source are equal.
4. An open dimension is that of an input of equal rank, else 1.
5. A Reshape yields as many elements as it reads.
6. A tensor of unknown rank is like the largest input of its type, else a scalar.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from regal.frontends.tensorflow.kinds import MERGE
from regal.frontends.tensorflow.light import Bound
from regal.frontends.tensorflow.ops import base_type
from regal.frontends.tensorflow.values import Shape, full, shape_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.frontends.tensorflow.flat import Edge, Node
    from regal.frontends.tensorflow.inference import Inference
    from regal.frontends.tensorflow.values import Partial

# Read by people in notes.
AT_MOST = "the most that their operators can yield"
OUTSIDE = "1 where they come from outside"
LIKE_INPUTS = "like what their operators read"

_OF_ALL = {  # operator -> results that have up to as many elements as input 0
    "Unique": (0, 1),
    "UniqueV2": (0, 1),
    "UniqueWithCounts": (0, 1, 2),
    "UniqueWithCountsV2": (0, 1, 2),
    "ListDiff": (0, 1),
    "SetDiff1D": (0, 1),
}
_SUPPRESSIONS = frozenset(
    {
        "NonMaxSuppression",
        "NonMaxSuppressionV2",
        "NonMaxSuppressionV3",
        "NonMaxSuppressionV4",
        "NonMaxSuppressionV5",
    }
)
_FROM_OUTSIDE = ("Queue", "Iterator", "Parse", "Decode", "Reader", "PyFunc", "_Recv", "_Arg")


def assumed(state: Inference, position: int) -> tuple[dict[Edge, Bound], str]:
    """Return a shape for each open result of a node, and by which rule."""
    node = state.flat.nodes[position]
    partial = [state.partial.get((position, k)) for k in range(len(node.results))]
    stated = _stated(node)
    shapes = [s if p is None else p for p, s in zip(partial, stated, strict=True)]
    bounded = _most(state, node)
    why = LIKE_INPUTS
    if bounded is not None:
        why = AT_MOST
        shapes = [
            given if given is not None else s for given, s in zip(bounded, shapes, strict=True)
        ]
    elif comes_from_outside(node):
        why = OUTSIDE
        shapes = _with_batch(shapes)
    inputs = [state.shapes[edge] for edge in node.inputs if edge in state.shapes]
    fresh = {}
    for k, shape in enumerate(shapes):
        edge = (position, k)
        if edge not in state.shapes:
            twins = _twins(state, node, k)
            if node.kind == "Reshape" and shape is not None and twins:
                fresh[edge] = Bound(_as_many(shape, twins[0]))
            else:
                fresh[edge] = Bound(_filled(shape, inputs, twins))
    return fresh, why


def comes_from_outside(node: Node) -> bool:
    """Return whether a node yields what the graph gets from queues, files, other programs."""
    return any(word in node.kind for word in _FROM_OUTSIDE) or not node.inputs


def _with_batch(shapes: Sequence[Partial | None]) -> list[Partial | None]:
    """Return shapes with 1 for what is open, but one batch for all results of a source."""
    batch = next((shape[0] for shape in shapes if shape and shape[0] is not None), 1)
    return [
        tuple((1 if axis else batch) if size is None else size for axis, size in enumerate(s or ()))
        for s in shapes
    ]


def _stated(node: Node) -> list[Partial | None]:
    """Return what the file says about the results of a node; only a hint."""
    shapes: list[Partial | None] = [None] * len(node.results)
    for key in ("_output_shapes", "output_shapes", "shapes"):
        if key in node.proto.attr:
            listed = node.proto.attr[key].list.shape
            if len(listed) == len(shapes):
                return [shape_of(shape) for shape in listed]
    return shapes


def _most(state: Inference, node: Node) -> list[Shape | None] | None:
    """Return the largest shapes that an operator can yield, None where it has no bound."""
    sizes = [state.shapes.get(edge) for edge in node.inputs]
    first = sizes[0] if sizes else None
    if first is None:
        return None
    if node.kind == "Where":
        return [(prod(first), len(first))]
    if node.kind in _OF_ALL:
        return [
            (prod(first),) if k in _OF_ALL[node.kind] else None for k in range(len(node.results))
        ]
    if node.kind in _SUPPRESSIONS and first:
        asked = state.values.get(node.inputs[2]) if len(node.inputs) > 2 else None
        most = min(first[0], asked[0]) if asked and asked[0] >= 0 else first[0]
        return [(most,), *([None] * (len(node.results) - 1))]
    if node.kind == "DynamicPartition" and len(sizes) > 1 and sizes[1] is not None:
        rank = len(sizes[1])
        return [(prod(sizes[1]), *first[rank:])] * len(node.results)
    if node.kind in MERGE:
        largest = max((s for s in sizes if s is not None), key=prod)
        return [largest, *([()] * (len(node.results) - 1))]
    return None


def _twins(state: Inference, node: Node, k: int) -> list[Shape]:
    """Return the shapes of the inputs that have the type of result `k`."""
    dtype = base_type(node.results[k])
    found = []
    for edge in node.inputs:
        shape = state.shapes.get(edge)
        if shape is not None and base_type(state.flat.nodes[edge[0]].results[edge[1]]) == dtype:
            found.append(shape)
    return found


def _filled(shape: Partial | None, inputs: Sequence[Shape], twins: Sequence[Shape]) -> Shape:
    if shape is None:
        return max(twins, key=prod, default=())
    known = full(shape)
    if known is not None:
        return known
    alike = [given for given in inputs if len(given) == len(shape)]
    return tuple(
        max((given[axis] for given in alike), default=1) if size is None else size
        for axis, size in enumerate(shape)
    )


def _as_many(shape: Partial, source: Shape) -> Shape:
    """Return a shape for as many elements as `source` has: its last axis stays, if it can."""
    sizes = list(shape)
    count = prod(source)
    unknown = [axis for axis, size in enumerate(shape) if size is None]
    if source and len(unknown) > 1 and unknown[-1] == len(shape) - 1:
        sizes[unknown.pop()] = source[-1]
    for axis in unknown[1:]:
        sizes[axis] = 1
    if unknown:
        known = prod(size for axis, size in enumerate(sizes) if axis != unknown[0] and size)
        sizes[unknown[0]] = -(-count // max(known, 1))
    return tuple(size or 0 for size in sizes)
