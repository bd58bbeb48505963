"""Parts of a concatenation and slices that may lie inside the whole: TFLM's kernels allow it.

These kernels copy each part, front to back, between its own tensor and one contiguous place
of the whole. With the part planned to lie exactly there, source and target are equal pointers,
and the copy changes nothing.

Source: concatenation.cc, pack.cc, unpack.cc, split.cc, split_v.cc, slice.cc, strided_slice.cc
in tensorflow/lite/micro/kernels of tensorflow/tflite-micro at 90b983c2b3f1.
"""

from __future__ import annotations

import struct
from math import prod
from typing import TYPE_CHECKING

from regal.frontends.tflite.in_place import COPIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.frontends.tflite.model import FileOperator, FileSubgraph, TfliteFile
    from regal.graph.types import SubBuffer, Tensor


def sub_buffers_of(
    file: TfliteFile, subgraph: FileSubgraph, tensors: Sequence[Tensor]
) -> list[tuple[SubBuffer, ...]]:
    """Return, per op, the (inner tensor, outer tensor, offset) choices that its kernel allows.

    A reshape offers itself only where it links to such a part: alone, it is an in-place pair.
    """
    found = [_parts(file, subgraph, op, tensors) for op in subgraph.operators]
    inner = {choice[0] for choices in found for choice in choices}
    for position in reversed(range(len(found))):  # a chain of reshapes links back to front
        op = subgraph.operators[position]
        if _is_copy(op, tensors) and op.outputs[0] in inner:
            found[position] = ((op.inputs[0], op.outputs[0], 0),)
            inner.add(op.inputs[0])
    for position, op in enumerate(subgraph.operators):
        if _is_copy(op, tensors) and not found[position] and op.inputs[0] in inner:
            found[position] = ((op.outputs[0], op.inputs[0], 0),)
            inner.add(op.outputs[0])
    return [tuple(choices) for choices in found]


def _is_copy(op: FileOperator, tensors: Sequence[Tensor]) -> bool:
    if op.kind not in COPIES or len(op.outputs) != 1 or not op.inputs:
        return False
    a, b = op.inputs[0], op.outputs[0]
    return a >= 0 and b >= 0 and tensors[a].bytes == tensors[b].bytes


def _parts(
    file: TfliteFile, subgraph: FileSubgraph, op: FileOperator, tensors: Sequence[Tensor]
) -> tuple[SubBuffer, ...]:
    if any(t < 0 for t in (*op.inputs, *op.outputs)) or not op.inputs or not op.outputs:
        return ()
    match op.kind:
        case "CONCATENATION" | "PACK":
            if op.kind == "CONCATENATION" and not _only_copies(subgraph, op):
                return ()
            return _side_by_side(op.inputs, op.outputs[0], _axis(op), tensors)
        case "UNPACK":
            return _side_by_side(op.outputs, op.inputs[0], _axis(op), tensors)
        case "SPLIT" | "SPLIT_V" if len(op.inputs) > 1:
            whole = op.inputs[1] if op.kind == "SPLIT" else op.inputs[0]
            axis = _constants(file, subgraph, op.inputs[0 if op.kind == "SPLIT" else -1])
            if len(axis) != 1:
                return ()
            return _side_by_side(op.outputs, whole, axis[0], tensors)
        case "SLICE" | "STRIDED_SLICE":
            return _slice(file, subgraph, op, tensors)
    return ()


def _axis(op: FileOperator) -> int:
    """Return the axis from the options of CONCATENATION (field 0), PACK and UNPACK (field 1)."""
    if op.options is None:
        return 0
    return op.options.i32(0 if op.kind == "CONCATENATION" else 1)


def _only_copies(subgraph: FileSubgraph, op: FileOperator) -> bool:
    """Return whether a concatenation neither clips nor rescales what it joins."""
    out = subgraph.tensors[op.outputs[0]]
    same = all(
        (subgraph.tensors[t].scale, subgraph.tensors[t].zero_point) == (out.scale, out.zero_point)
        for t in op.inputs
    )
    return same and (op.options is None or op.options.i8(1) == 0)


def _side_by_side(
    parts: Sequence[int], whole: int, axis: int, tensors: Sequence[Tensor]
) -> tuple[SubBuffer, ...]:
    """Return the places of parts that follow each other along an axis with nothing outside."""
    shape = tensors[whole].shape
    axis += len(shape) if axis < 0 else 0
    if not 0 <= axis < len(shape) or prod(shape[:axis]) != 1:
        return ()
    if sum(tensors[t].bytes for t in parts) != tensors[whole].bytes:
        return ()
    places: dict[int, int] = {}
    offset = 0
    for t in parts:
        if tensors[t].bytes and t != whole:
            places.setdefault(t, offset)
        offset += tensors[t].bytes
    return tuple((t, whole, offset) for t, offset in places.items())


def _slice(
    file: TfliteFile, subgraph: FileSubgraph, op: FileOperator, tensors: Sequence[Tensor]
) -> tuple[SubBuffer, ...]:
    source, target = tensors[op.inputs[0]], tensors[op.outputs[0]]
    elements = prod(source.shape)
    if not target.bytes or not elements or source.bytes % elements:
        return ()
    bounds = _bounds(file, subgraph, op, source.shape)
    if bounds is None:
        return ()
    extents = [max(stop - start, 0) for start, stop in bounds]
    if prod(extents) * (source.bytes // elements) != target.bytes:
        return ()
    # Contiguous: single indices first, then one range, then everything.
    ranged = next((d for d, extent in enumerate(extents) if extent != 1), len(extents))
    if any(extents[d] != source.shape[d] for d in range(ranged + 1, len(extents))):
        return ()
    first = 0
    for (start, _), size in zip(bounds, source.shape, strict=True):
        first = first * size + start
    return ((op.outputs[0], op.inputs[0], first * (source.bytes // elements)),)


def _bounds(
    file: TfliteFile, subgraph: FileSubgraph, op: FileOperator, shape: Sequence[int]
) -> list[tuple[int, int]] | None:
    """Return (start, stop) per dimension of a slice with step 1; None when it is not one."""
    begin = _constants(file, subgraph, op.inputs[1]) if len(op.inputs) > 2 else ()
    second = _constants(file, subgraph, op.inputs[2]) if len(op.inputs) > 2 else ()
    n = len(shape)
    if len(begin) != len(second) or len(begin) != n:
        return None
    if op.kind == "SLICE":
        stops = [
            size if count == -1 else start + count
            for start, count, size in zip(begin, second, shape, strict=True)
        ]
        found = list(zip(begin, stops, strict=True))
    else:
        strides = _constants(file, subgraph, op.inputs[3]) if len(op.inputs) > 3 else ()
        if op.options is None or strides != (1,) * n:
            return None
        begins, ends, ellipsis, new_axis, shrink = (op.options.i32(i) for i in range(5))
        if ellipsis or new_axis or op.options.i8(5):
            return None
        found = []
        for d, size in enumerate(shape):
            start = 0 if begins >> d & 1 else _wrapped(begin[d], size)
            stop = size if ends >> d & 1 else _wrapped(second[d], size)
            found.append((start, start + 1 if shrink >> d & 1 else stop))
    inside = all(
        0 <= start <= stop <= size for (start, stop), size in zip(found, shape, strict=True)
    )
    return found if inside else None


def _wrapped(index: int, size: int) -> int:
    return min(max(index + size if index < 0 else index, 0), size)


def _constants(file: TfliteFile, subgraph: FileSubgraph, index: int) -> tuple[int, ...]:
    """Return the numbers of a small constant int32 tensor; () when it is none."""
    tensor = subgraph.tensors[index]
    _, size = file.buffers[tensor.buffer] if tensor.data_bytes else (0, 0)
    if tensor.type.name != "int32" or size % 4 or size > 64:
        return ()
    return struct.unpack(f"<{size // 4}i", file.buffer_data(tensor.buffer))
