"""The compact form of a graph: columns instead of objects, names left out, compressed.

Numbers are relative to where they stand, so that equal layers are equal text: a graph of 1,000
ops takes some kilobytes and is read back in a few milliseconds.
"""

from __future__ import annotations

import json
import lzma
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

from regal.cost.operands import BITS
from regal.errors import ModelError
from regal.graph.types import ABSENT, Graph, Op, Role, Tensor
from regal.units import packed_bytes

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

FORMAT = 1
ROLES = tuple(Role)
# No headers and no check sums: the index has a SHA-256 of every graph.
FILTERS: list[dict[str, int]] = [
    {
        "id": lzma.FILTER_LZMA2,
        "preset": 9 | lzma.PRESET_EXTREME,
        "lc": 4,
        "lp": 0,
        "pb": 0,
        "dict_size": 1 << 20,
    }
]


def packed(graph: Graph) -> bytes:
    """Return the compact form of `graph`: equal graphs give equal bytes.

    Names of ops and tensors, and attributes, are left out: set `Op.flops` before.

    Cost: 10 ms per 1,000 ops.
    """
    text = json.dumps({"format": FORMAT, **_columns(graph)}, separators=(",", ":"))
    return lzma.compress(text.encode(), format=lzma.FORMAT_RAW, filters=FILTERS)


def unpacked(data: bytes) -> Graph:
    """Return the graph of a compact form; ops and tensors get names by their numbers.

    Raises:
        ModelError: it is none, or of a later format.

    Cost: 5 ms per 1,000 ops.
    """
    try:
        columns = json.loads(lzma.decompress(data, format=lzma.FORMAT_RAW, filters=FILTERS))
    except (lzma.LZMAError, ValueError) as error:
        raise ModelError(f"packed graph of {len(data)} bytes is broken: {error}") from None
    if not isinstance(columns, dict) or columns.get("format") != FORMAT:
        raise ModelError(f"packed graph of {len(data)} bytes is not of format {FORMAT}")
    return _graph(columns)


def _columns(graph: Graph) -> dict[str, Any]:
    ops, tensors = graph.ops, graph.tensors
    kinds, kind = _numbered(op.kind for op in ops)
    shapes, shape = _numbered(tensor.shape for tensor in tensors)
    dtypes, dtype = _numbered(tensor.dtype for tensor in tensors)
    columns: dict[str, Any] = {
        "name": graph.name,
        "framework": graph.framework,
        "alignment": graph.alignment,
        "in_place_by_runtime": graph.in_place_by_runtime,
        "inputs": graph.inputs,
        "outputs": graph.outputs,
        "kinds": kinds,
        "kind": kind,
        "writes": [len(op.outputs) for op in ops],
        "written": _relative_writes(ops),
        "reads": [len(op.inputs) for op in ops],
        "read": _relative_reads(ops),
        "flops": [op.flops for op in ops],
        "shapes": shapes,
        "shape": shape,
        "dtypes": dtypes,
        "dtype": dtype,
        "role": [ROLES.index(tensor.role) for tensor in tensors],
        "storage": [i - tensor.storage for i, tensor in enumerate(tensors)],
    }
    return columns | {key: rows for key, rows in _rare(graph).items() if rows}


def _rare(graph: Graph) -> dict[str, list[list[Any]]]:
    """Return what few ops or tensors have, as [distance to the row before, value] rows."""
    ops, tensors = graph.ops, graph.tensors
    return {
        "after": _sparse((i, [i - j for j in op.control_inputs]) for i, op in enumerate(ops)),
        "captures": _sparse((i, op.captures) for i, op in enumerate(ops)),
        "workspace": _sparse((i, op.workspace_bytes) for i, op in enumerate(ops)),
        "in_place": _sparse((i, op.in_place) for i, op in enumerate(ops)),
        "sub_buffers": _sparse((i, op.sub_buffers) for i, op in enumerate(ops)),
        "colocation": _sparse((i, op.colocation) for i, op in enumerate(ops)),
        "devices": _sparse((i, op.devices) for i, op in enumerate(ops)),
        "times_ns": _sparse((i, dict(op.times_ns)) for i, op in enumerate(ops)),
        "bodies": _sparse((i, [_columns(b) for b in op.subgraphs]) for i, op in enumerate(ops)),
        "bytes": _sparse(
            (i, [t.bytes] if t.bytes != _usual_bytes(t.shape, t.dtype) else [])
            for i, t in enumerate(tensors)
        ),
        "offset": _sparse((i, t.storage_offset) for i, t in enumerate(tensors)),
        "transfer_ns": _sparse(
            (i, [] if t.transfer_ns is None else [t.transfer_ns]) for i, t in enumerate(tensors)
        ),
    }


def _graph(columns: Mapping[str, Any]) -> Graph:
    return Graph(
        name=columns["name"],
        framework=columns["framework"],
        ops=_ops(columns),
        tensors=_tensors(columns),
        inputs=tuple(columns["inputs"]),
        outputs=tuple(columns["outputs"]),
        alignment=columns["alignment"],
        in_place_by_runtime=columns["in_place_by_runtime"],
    )


def _ops(columns: Mapping[str, Any]) -> tuple[Op, ...]:
    kinds = columns["kinds"]
    after, captures = _dense(columns, "after"), _dense(columns, "captures")
    workspace, in_place = _dense(columns, "workspace"), _dense(columns, "in_place")
    sub_buffers, colocation = _dense(columns, "sub_buffers"), _dense(columns, "colocation")
    devices, times = _dense(columns, "devices"), _dense(columns, "times_ns")
    bodies = _dense(columns, "bodies")
    written, read = iter(columns["written"]), iter(columns["read"])
    ops = []
    last = -1  # the tensor that was written last
    rows = zip(columns["kind"], columns["writes"], columns["reads"], columns["flops"], strict=True)
    for i, (kind, writes, reads, flops) in enumerate(rows):
        outputs = []
        for _ in range(writes):
            step = next(written)
            if step is None:
                outputs.append(ABSENT)
            else:
                last += step
                outputs.append(last)
        inputs = [ABSENT if (back := next(read)) is None else last - back for _ in range(reads)]
        ops.append(
            Op(
                name=f"{i}:{kinds[kind]}",
                kind=kinds[kind],
                inputs=tuple(inputs),
                outputs=tuple(outputs),
                control_inputs=tuple(i - back for back in after.get(i, ())),
                captures=captures.get(i, 0),
                workspace_bytes=workspace.get(i, 0),
                flops=flops,
                in_place=tuple((a, b) for a, b in in_place.get(i, ())),
                sub_buffers=tuple((a, b, c) for a, b, c in sub_buffers.get(i, ())),
                subgraphs=tuple(_graph(body) for body in bodies.get(i, ())),
                colocation=colocation.get(i, ""),
                devices=tuple(devices.get(i, ())),
                times_ns=times.get(i, {}),
            )
        )
    return tuple(ops)


def _tensors(columns: Mapping[str, Any]) -> tuple[Tensor, ...]:
    shapes, dtypes = [tuple(shape) for shape in columns["shapes"]], columns["dtypes"]
    sizes, offset = _dense(columns, "bytes"), _dense(columns, "offset")
    transfer = _dense(columns, "transfer_ns")
    usual: dict[tuple[int, int], int] = {}
    tensors = []
    rows = zip(columns["shape"], columns["dtype"], columns["role"], columns["storage"], strict=True)
    for i, (shape, dtype, role, back) in enumerate(rows):
        key = (shape, dtype)
        if key not in usual:
            usual[key] = _usual_bytes(shapes[shape], dtypes[dtype])
        tensors.append(
            Tensor(
                name=f"t{i}",
                shape=shapes[shape],
                dtype=dtypes[dtype],
                bytes=sizes[i][0] if i in sizes else usual[key],
                role=ROLES[role],
                storage=i - back,
                storage_offset=offset.get(i, 0),
                transfer_ns=transfer[i][0] if i in transfer else None,
            )
        )
    return tuple(tensors)


def _relative_writes(ops: Sequence[Op]) -> list[int | None]:
    """Return every output as the step from the one before it; None where it is absent."""
    steps: list[int | None] = []
    last = -1
    for op in ops:
        for tensor in op.outputs:
            steps.append(None if tensor == ABSENT else tensor - last)
            last = last if tensor == ABSENT else tensor
    return steps


def _relative_reads(ops: Sequence[Op]) -> list[int | None]:
    """Return every input as the distance back from the output written last."""
    distances: list[int | None] = []
    last = -1
    for op in ops:
        for tensor in op.outputs:
            last = last if tensor == ABSENT else tensor
        distances += [None if tensor == ABSENT else last - tensor for tensor in op.inputs]
    return distances


def _usual_bytes(shape: tuple[int, ...], dtype: str) -> int:
    bits = BITS.get(dtype)
    return 0 if bits is None else packed_bytes(prod(shape), bits)


def _numbered(values: Iterable[Hashable]) -> tuple[list[Any], list[int]]:
    """Return the different values in order of appearance, and the number of each value."""
    number: dict[Hashable, int] = {}
    numbers = [number.setdefault(value, len(number)) for value in values]
    return list(number), numbers


def _sparse(values: Iterable[tuple[int, Any]]) -> list[list[Any]]:
    """Return the values that are not empty, each with its distance to the one before."""
    found = [(0, None), *((i, value) for i, value in values if value)]
    return [[b - a, value] for (a, _), (b, value) in pairwise(found)]


def _dense(columns: Mapping[str, Any], key: str) -> dict[int, Any]:
    """Return position -> value of a column that `_sparse` made."""
    found: dict[int, Any] = {}
    position = 0
    for step, value in columns.get(key, ()):
        position += step
        found[position] = value
    return found
