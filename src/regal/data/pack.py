"""The compact form of a graph: columns instead of objects, names left out, deflated.

A graph of 1,000 ops takes some kilobytes and is read back in a few milliseconds.
"""

from __future__ import annotations

import json
import zlib
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from regal.graph.types import Graph, Op, Role, Tensor

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

LEVEL = 9  # of deflate; decoding takes the same time for all
ROLES = tuple(Role)


def packed(graph: Graph) -> bytes:
    """Return the compact form of `graph`: equal graphs give equal bytes.

    Names of ops and tensors, and attributes, are left out: set `Op.flops` before.
    """
    text = json.dumps(_columns(graph), separators=(",", ":"))
    return zlib.compress(text.encode(), LEVEL)


def unpacked(data: bytes) -> Graph:
    """Return the graph of a compact form; ops and tensors get names by their numbers."""
    return _graph(json.loads(zlib.decompress(data)))


def _columns(graph: Graph) -> dict[str, Any]:
    ops, tensors = graph.ops, graph.tensors
    kinds, kind = _numbered(op.kind for op in ops)
    groups, group = _numbered(op.colocation for op in ops)
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
        "reads": _rows(op.inputs for op in ops),
        "writes": _rows(op.outputs for op in ops),
        "flops": [op.flops for op in ops],
        "shapes": shapes,
        "shape": shape,
        "dtypes": dtypes,
        "dtype": dtype,
        "bytes": [tensor.bytes for tensor in tensors],
        "role": [ROLES.index(tensor.role) for tensor in tensors],
        "storage": [i - tensor.storage for i, tensor in enumerate(tensors)],
    }
    rare: dict[str, dict[int, Any]] = {
        "after": {i: op.control_inputs for i, op in enumerate(ops) if op.control_inputs},
        "captures": {i: op.captures for i, op in enumerate(ops) if op.captures},
        "workspace": {i: op.workspace_bytes for i, op in enumerate(ops) if op.workspace_bytes},
        "in_place": {i: op.in_place for i, op in enumerate(ops) if op.in_place},
        "sub_buffers": {i: op.sub_buffers for i, op in enumerate(ops) if op.sub_buffers},
        "devices": {i: op.devices for i, op in enumerate(ops) if op.devices},
        "times_ns": {i: dict(op.times_ns) for i, op in enumerate(ops) if op.times_ns},
        "bodies": {
            i: [_columns(body) for body in op.subgraphs]
            for i, op in enumerate(ops)
            if op.subgraphs
        },
        "offset": {i: t.storage_offset for i, t in enumerate(tensors) if t.storage_offset},
        "transfer_ns": {
            i: t.transfer_ns for i, t in enumerate(tensors) if t.transfer_ns is not None
        },
    }
    if any(op.colocation for op in ops):
        columns |= {"groups": groups, "group": group}
    return columns | {key: rows for key, rows in rare.items() if rows}


def _graph(columns: dict[str, Any]) -> Graph:
    kinds, shapes, dtypes = columns["kinds"], columns["shapes"], columns["dtypes"]
    shapes = [tuple(shape) for shape in shapes]
    groups = [columns["groups"][g] for g in columns["group"]] if "group" in columns else None
    empty: dict[str, Any] = {}
    after, captures = columns.get("after", empty), columns.get("captures", empty)
    workspace, in_place = columns.get("workspace", empty), columns.get("in_place", empty)
    sub_buffers, devices = columns.get("sub_buffers", empty), columns.get("devices", empty)
    times, bodies = columns.get("times_ns", empty), columns.get("bodies", empty)
    offset, transfer = columns.get("offset", empty), columns.get("transfer_ns", empty)
    reads, writes = _rows_of(columns["reads"]), _rows_of(columns["writes"])
    ops = []
    for i, (kind, inputs, outputs, flops) in enumerate(
        zip(columns["kind"], reads, writes, columns["flops"], strict=True)
    ):
        key = str(i)
        ops.append(
            Op(
                name=f"{i}:{kinds[kind]}",
                kind=kinds[kind],
                inputs=tuple(inputs),
                outputs=tuple(outputs),
                control_inputs=tuple(after.get(key, ())),
                captures=captures.get(key, 0),
                workspace_bytes=workspace.get(key, 0),
                flops=flops,
                in_place=tuple((a, b) for a, b in in_place.get(key, ())),
                sub_buffers=tuple((a, b, c) for a, b, c in sub_buffers.get(key, ())),
                subgraphs=tuple(_graph(body) for body in bodies.get(key, ())),
                colocation=groups[i] if groups else "",
                devices=tuple(devices.get(key, ())),
                times_ns=times.get(key, {}),
            )
        )
    tensors = [
        Tensor(
            name=f"t{i}",
            shape=shapes[shape],
            dtype=dtypes[dtype],
            bytes=size,
            role=ROLES[role],
            storage=i - back,
            storage_offset=offset.get(str(i), 0) if offset else 0,
            transfer_ns=transfer.get(str(i)) if transfer else None,
        )
        for i, (shape, dtype, size, role, back) in enumerate(
            zip(
                columns["shape"],
                columns["dtype"],
                columns["bytes"],
                columns["role"],
                columns["storage"],
                strict=True,
            )
        )
    ]
    return Graph(
        name=columns["name"],
        framework=columns["framework"],
        ops=tuple(ops),
        tensors=tuple(tensors),
        inputs=tuple(columns["inputs"]),
        outputs=tuple(columns["outputs"]),
        alignment=columns["alignment"],
        in_place_by_runtime=columns["in_place_by_runtime"],
    )


def _numbered(values: Iterable[Hashable]) -> tuple[list[Any], list[int]]:
    """Return the different values in order of appearance, and the number of each value."""
    number: dict[Hashable, int] = {}
    numbers = [number.setdefault(value, len(number)) for value in values]
    return list(number), numbers


def _rows(rows: Iterable[Sequence[int]]) -> list[list[int]]:
    """Return [lengths, items as differences]: small numbers deflate well."""
    lengths: list[int] = []
    items: list[int] = []
    for row in rows:
        lengths.append(len(row))
        items.extend(row)
    return [lengths, [b - a for a, b in zip([0, *items], items, strict=False)]]


def _rows_of(packed_rows: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    lengths, differences = packed_rows
    items = list(accumulate(differences))
    begin = 0
    for length in lengths:
        yield items[begin : begin + length]
        begin += length
