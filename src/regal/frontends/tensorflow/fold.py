"""Integers that follow from known shapes: what a graph computes sizes and axes with.

TensorFlow's static inference follows a few operators only; what it leaves open here would make
the shapes behind it a matter of assumption. Nodes whose value changes from round to round of a
loop are never folded: a Merge is not.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from regal.frontends.tensorflow.kinds import SWITCH
from regal.frontends.tensorflow.light import Bound
from regal.frontends.tensorflow.ops import INT32, INT64, base_type
from regal.frontends.tensorflow.values import MOST_VALUES, full

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from regal.frontends.tensorflow.flat import Edge, Node
    from regal.frontends.tensorflow.inference import Inference
    from regal.frontends.tensorflow.values import Shape

    Numbers = NDArray[np.int64]
    Rule = Callable[[Node, list[Numbers]], list[Numbers]]

PUSHES = frozenset({"StackPush", "StackPushV2"})
POPS = frozenset({"StackPop", "StackPopV2"})
NOWHERE = (-1, 0)
# What numpy says where a rule meets values that its operator would refuse, too.
_REFUSALS = (ValueError, IndexError, ZeroDivisionError, TypeError, OverflowError)


def folded(state: Inference) -> dict[Edge, Bound]:
    """Return the values of all integer results that follow from what is known.

    Cost: one pass over the nodes.
    """
    fresh: dict[Edge, Bound] = {}

    def values_of(edge: Edge) -> Numbers | None:
        if edge in fresh:
            found, shape = fresh[edge].values, full(fresh[edge].shape)
        else:
            found, shape = state.values.get(edge), state.shapes.get(edge)
        if found is None or shape is None:
            return None
        return np.array(found, dtype=np.int64).reshape(shape)

    # What never changes is the same in every round, so that it can be followed through a stack.
    pushed = {
        state.resources.at(node.inputs[0]): node.inputs[1]
        for node in state.flat.nodes
        if node.kind in PUSHES
    }
    for position in state.order:
        node = state.flat.nodes[position]
        edges = [(position, k) for k in range(len(node.results))]
        if not edges or any(base_type(dtype) not in (INT32, INT64) for dtype in node.results):
            continue
        if node.kind in POPS and edges[0] not in state.values:
            popped = values_of(pushed.get(state.resources.at(node.inputs[0]), NOWHERE))
            if popped is not None:
                fresh[edges[0]] = Bound(popped.shape, tuple(int(v) for v in popped.ravel()))
            continue
        if any(e in state.values or e in state.bound for e in edges):
            continue
        results = _of_shapes(state, node)
        if results is None and node.kind in RULES:
            inputs = [values_of(edge) for edge in node.inputs]
            known = [values for values in inputs if values is not None]
            if len(known) == len(inputs):
                results = _apply(RULES[node.kind], node, known)
        if results is not None and len(results) == len(edges):
            for edge, values in zip(edges, results, strict=True):
                fresh[edge] = Bound(values.shape, tuple(int(v) for v in values.ravel()))
    return fresh


def _apply(rule: Rule, node: Node, inputs: list[Numbers]) -> list[Numbers] | None:
    try:
        results = rule(node, inputs)
    except _REFUSALS:
        return None
    if any(values.size > MOST_VALUES for values in results):
        return None
    return results


def _of_shapes(state: Inference, node: Node) -> list[Numbers] | None:
    """Return what a node says about the shapes that it reads, if they are known."""
    if node.kind == "VariableShape":
        number = state.resources.at(node.inputs[0])
        shape = None if number is None else state.resources.known[number].shape
        return None if shape is None else [np.array(shape, dtype=np.int64)]
    if node.kind not in ("Shape", "ShapeN", "Size", "Rank"):
        return None
    shapes = [state.shapes.get(edge) for edge in node.inputs]
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes):
        return None
    if node.kind == "Size":
        return [np.array(prod(known[0]), dtype=np.int64)]
    if node.kind == "Rank":
        return [np.array(len(known[0]), dtype=np.int64)]
    return [np.array(shape, dtype=np.int64) for shape in known]


def summed_axes(first: Shape, second: Shape) -> tuple[Shape, Shape]:
    """Return the axes over which the gradient of each operand is summed after broadcasting.

    Source: tensorflow/core/util/bcast.h of TensorFlow 2.21; an axis of size 1 on both sides is
    summed on both, but nothing is where the shapes are equal.
    """
    if first == second:
        return (), ()
    rank = max(len(first), len(second))
    a = (1,) * (rank - len(first)) + first
    b = (1,) * (rank - len(second)) + second
    ones = [axis for axis in range(rank) if a[axis] == b[axis] == 1]
    return (
        tuple(axis for axis in range(rank) if a[axis] == 1 != b[axis] or axis in ones),
        tuple(axis for axis in range(rank) if b[axis] == 1 != a[axis] or axis in ones),
    )


def _vector(values: Sequence[int]) -> Numbers:
    return np.array(values, dtype=np.int64)


def _gradient_args(node: Node, inputs: list[Numbers]) -> list[Numbers]:
    del node
    first, second = (tuple(int(v) for v in values) for values in inputs)
    return [_vector(axes) for axes in summed_axes(first, second)]


def _integer(node: Node, name: str) -> int:
    return int(node.proto.attr[name].i) if name in node.proto.attr else 0


def _strided_slice(node: Node, inputs: list[Numbers]) -> list[Numbers]:
    data, begin, end, strides = inputs
    masks = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    bits = {name: _integer(node, name) for name in masks}
    index: list[Any] = []
    for i in range(begin.size):
        bit = 1 << i
        if bits["ellipsis_mask"] & bit:
            index.append(Ellipsis)
        elif bits["new_axis_mask"] & bit:
            index.append(None)
        elif bits["shrink_axis_mask"] & bit:
            index.append(int(begin[i]))
        else:
            first = None if bits["begin_mask"] & bit else int(begin[i])
            last = None if bits["end_mask"] & bit else int(end[i])
            index.append(slice(first, last, int(strides[i])))
    return [np.asarray(data[tuple(index)])]


def _slice(node: Node, inputs: list[Numbers]) -> list[Numbers]:
    del node
    data, begin, size = inputs
    index = tuple(
        slice(int(b), data.shape[axis] if s < 0 else int(b + s))
        for axis, (b, s) in enumerate(zip(begin, size, strict=True))
    )
    return [data[index]]


def _gather(node: Node, inputs: list[Numbers]) -> list[Numbers]:
    if _integer(node, "batch_dims"):
        raise ValueError("batches are not followed")
    axis = int(inputs[2]) if len(inputs) > 2 else 0
    return [np.take(inputs[0], inputs[1], axis=axis)]


def _concat(node: Node, inputs: list[Numbers]) -> list[Numbers]:
    *parts, axis = inputs if node.kind == "ConcatV2" else [*inputs[1:], inputs[0]]
    return [np.concatenate(parts, axis=int(axis))]


def _reduce(function: Callable[..., object]) -> Rule:
    def rule(node: Node, inputs: list[Numbers]) -> list[Numbers]:
        axes = tuple(int(axis) for axis in inputs[1].ravel())
        keep = "keep_dims" in node.proto.attr and bool(node.proto.attr["keep_dims"].b)
        return [np.asarray(function(inputs[0], axis=axes, keepdims=keep))]

    return rule


def _squeeze(node: Node, inputs: list[Numbers]) -> list[Numbers]:
    listed = node.proto.attr["squeeze_dims"].list.i if "squeeze_dims" in node.proto.attr else ()
    return [np.squeeze(inputs[0], axis=tuple(listed) or None)]


def _stitch(node: Node, inputs: list[Numbers]) -> list[Numbers]:
    del node
    half = len(inputs) // 2
    indices, data = inputs[:half], inputs[half:]
    merged = np.zeros(max(int(i.max(initial=-1)) for i in indices) + 1, dtype=np.int64)
    for where, values in zip(indices, data, strict=True):
        merged[where.ravel()] = values.ravel()
    return [merged]


def _range(node: Node, inputs: list[Numbers]) -> list[Numbers]:
    del node
    start, limit, delta = (int(values) for values in inputs)
    if len(range(start, limit, delta)) > MOST_VALUES:
        raise ValueError("too many values")
    return [np.arange(start, limit, delta, dtype=np.int64)]


def _fill(node: Node, inputs: list[Numbers]) -> list[Numbers]:
    del node
    if prod(int(size) for size in inputs[0]) > MOST_VALUES:
        raise ValueError("too many values")
    return [np.full(tuple(inputs[0]), int(inputs[1]), dtype=np.int64)]


def _tile(node: Node, inputs: list[Numbers]) -> list[Numbers]:
    del node
    if inputs[0].size * prod(int(count) for count in inputs[1]) > MOST_VALUES:
        raise ValueError("too many values")
    return [np.tile(inputs[0], tuple(inputs[1]))]


def _list_difference(node: Node, inputs: list[Numbers]) -> list[Numbers]:
    del node
    kept = [i for i, value in enumerate(inputs[0]) if value not in inputs[1]]
    return [inputs[0][kept], _vector(kept)]


def _split(node: Node, inputs: list[Numbers]) -> list[Numbers]:
    return list(np.split(inputs[1], _integer(node, "num_split"), axis=int(inputs[0])))


def _unpack(node: Node, inputs: list[Numbers]) -> list[Numbers]:
    return list(np.moveaxis(inputs[0], _integer(node, "axis"), 0))


def _concat_offset(node: Node, inputs: list[Numbers]) -> list[Numbers]:
    del node
    axis, *shapes = inputs
    offset = np.zeros_like(shapes[0])
    offsets = []
    for shape in shapes:
        offsets.append(offset.copy())
        offset[int(axis)] += shape[int(axis)]
    return offsets


def _enter(node: Node, inputs: list[Numbers]) -> list[Numbers]:
    if not node.proto.attr["is_constant"].b:
        raise ValueError("it may change from round to round")
    return inputs


def _first(function: Callable[..., object]) -> Rule:
    return lambda node, inputs: [np.asarray(function(inputs[0]))]


def _both(function: Callable[..., object]) -> Rule:
    return lambda node, inputs: [np.asarray(function(inputs[0], inputs[1]))]


RULES: dict[str, Rule] = {
    "Add": _both(np.add),
    "AddV2": _both(np.add),
    "BroadcastGradientArgs": _gradient_args,
    "Cast": _first(np.asarray),
    "Concat": _concat,
    "ConcatOffset": _concat_offset,
    "ConcatV2": _concat,
    "DynamicStitch": _stitch,
    "Enter": _enter,
    "ExpandDims": lambda node, inputs: [np.expand_dims(inputs[0], int(inputs[1]))],
    "Fill": _fill,
    "FloorDiv": _both(np.floor_divide),
    "FloorMod": _both(np.mod),
    "Gather": _gather,
    "GatherV2": _gather,
    "Identity": _first(np.asarray),
    "InvertPermutation": _first(np.argsort),
    "ListDiff": _list_difference,
    "Max": _reduce(np.max),
    "Maximum": _both(np.maximum),
    "Min": _reduce(np.min),
    "Minimum": _both(np.minimum),
    "Mul": _both(np.multiply),
    "Neg": _first(np.negative),
    "OnesLike": _first(np.ones_like),
    "Pack": lambda node, inputs: [np.stack(inputs, axis=_integer(node, "axis"))],
    "Prod": _reduce(np.prod),
    "Range": _range,
    "Reshape": lambda node, inputs: [inputs[0].reshape(tuple(inputs[1]))],
    "ReverseV2": lambda node, inputs: [np.flip(inputs[0], tuple(inputs[1]))],
    "Slice": _slice,
    "Split": _split,
    "Square": _first(np.square),
    "Squeeze": _squeeze,
    "StridedSlice": _strided_slice,
    "Sub": _both(np.subtract),
    "Sum": _reduce(np.sum),
    "Tile": _tile,
    "Transpose": lambda node, inputs: [np.transpose(inputs[0], tuple(inputs[1]))],
    "Unpack": _unpack,
    "ZerosLike": _first(np.zeros_like),
    **dict.fromkeys(SWITCH, lambda node, inputs: [inputs[0], inputs[0]]),
}
