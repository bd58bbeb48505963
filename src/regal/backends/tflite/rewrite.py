"""Change the operator order and the memory plan of a .tflite file, and nothing else.

A flatbuffer cannot be edited by its schema without losing what the schema does not know. So
the bytes stay: the order is a permutation of the offsets inside the operator lists, and a new
memory plan comes in a new front part, with a new root table that points into the old bytes:

    [new root, lists of buffers and metadata, plan][padding][the old file, moved as a whole]

Offsets are distances, so moving everything changes none of them. What counts from the start
of the file (data of models above 2 GB) is corrected.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from regal.errors import BackendError, ModelError
from regal.frontends.tflite.model import OFFLINE_PLAN, parse_tflite
from regal.frontends.tflite.schema import (
    FILE_IDENTIFIER,
    BufferField,
    ModelField,
    OperatorField,
)
from regal.units import round_up

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from regal.frontends.tflite.flatbuffer import Table
    from regal.frontends.tflite.model import FileOperator, TfliteFile

_PLAN_ALIGNMENT = 16  # of Buffer.data, by the schema
_FRONT_ALIGNMENT = 64  # data in the old part keeps its alignment, up to that of a cache line


def with_operator_orders(file: TfliteFile, orders: Mapping[int, Sequence[int]]) -> bytes:
    """Return the file with the operators of some subgraphs permuted.

    Args:
        file: the parsed file.
        orders: subgraph -> positions of its operators in the order to run them.

    Cost: O(file size).
    """
    data = bytearray(file.data)
    for index, order in orders.items():
        subgraph = file.subgraphs[index]
        for slot, position in enumerate(order):
            at = subgraph.operators_at + 4 * slot
            distance = subgraph.operators[position].table.position - at
            struct.pack_into("<I", data, at, distance)
    return bytes(data)


def with_offline_plan(file: TfliteFile, data: bytes, offsets: Sequence[int]) -> bytes:
    """Return `data` with a memory plan for TFLM; an older plan is replaced.

    Args:
        file: the parsed file that `data` came from, with the same layout.
        data: the file's bytes, operators possibly permuted.
        offsets: one per tensor of all subgraphs: byte offset in the arena, or -1.

    Raises:
        BackendError: the model holds something that counts bytes from the file's start.
    """
    plan = struct.pack(f"<3I{len(offsets)}i", 1, len(file.subgraphs), len(offsets), *offsets)
    entries = [entry for entry in file.metadata if entry.name == OFFLINE_PLAN]
    if len(entries) == 1:
        start, size = file.buffers[entries[0].buffer]
        users = [entry.buffer for entry in file.metadata]
        users += [tensor.buffer for s in file.subgraphs for tensor in s.tensors]
        if size == len(plan) and users.count(entries[0].buffer) == 1:
            return data[:start] + plan + data[start + size :]
    _require_movable(file)
    front = _front_part(file, plan)
    moved = bytearray(data)
    _correct_absolute_positions(file, moved, len(front))
    return front + bytes(moved)


def require_same_model(file: TfliteFile, data: bytes, orders: Mapping[int, Sequence[int]]) -> bytes:
    """Return `data` if it says what `file` says, with the operators in `orders`.

    In a file whose parts overlap, which no honest writer makes, a rewrite can change more
    than it should.

    Raises:
        BackendError: something else changed.
    """
    try:
        new = parse_tflite(data)
    except ModelError as error:
        raise BackendError(f"the file cannot be rewritten, its parts overlap: {error}") from error
    sizes = (len(new.subgraphs), len(new.buffers))
    if sizes[0] != len(file.subgraphs) or sizes[1] < len(file.buffers):
        raise BackendError("the file cannot be rewritten: its lists overlap other parts")
    for index, (old_graph, new_graph) in enumerate(zip(file.subgraphs, new.subgraphs, strict=True)):
        order = orders.get(index, range(len(old_graph.operators)))
        same = (
            old_graph.tensors == new_graph.tensors
            and (old_graph.inputs, old_graph.outputs) == (new_graph.inputs, new_graph.outputs)
            and [_said_of(old_graph.operators[i]) for i in order]
            == [_said_of(op) for op in new_graph.operators]
        )
        if not same:
            raise BackendError(
                f"the file cannot be rewritten: parts of subgraph '{old_graph.name}' overlap others"
            )
    plans = {entry.buffer for entry in file.metadata if entry.name == OFFLINE_PLAN}
    for i in range(len(file.buffers)):
        if i not in plans and file.buffer_data(i) != new.buffer_data(i):
            raise BackendError(f"the file cannot be rewritten: buffer {i} overlaps other parts")
    return data


def _said_of(op: FileOperator) -> tuple[object, ...]:
    return op.label, op.inputs, op.outputs, op.bodies


def _require_movable(file: TfliteFile) -> None:
    # LiteRT's compiled accelerator code is found by its distance from the file's start,
    # which is written inside of custom options.
    if any(code.startswith("DISPATCH_OP") for code in file.custom_codes()):
        raise BackendError("the model embeds compiled accelerator code; its bytes cannot move")


def _correct_absolute_positions(file: TfliteFile, data: bytearray, shift: int) -> None:
    tables: list[tuple[Table, int]] = [(t, BufferField.OFFSET) for t in file.buffer_tables]
    for subgraph in file.subgraphs:
        tables += [
            (op.table, OperatorField.LARGE_CUSTOM_OPTIONS_OFFSET) for op in subgraph.operators
        ]
    for slot in {table.slot(field) for table, field in tables} - {0}:
        value = struct.unpack_from("<Q", data, slot)[0]
        if value > 1:
            struct.pack_into("<Q", data, slot, value + shift)


def _front_part(file: TfliteFile, plan: bytes) -> bytes:
    """Return the bytes to put before the old file; their length is a multiple of 64."""
    old_metadata = [
        table
        for table, entry in zip(_metadata_tables(file), file.metadata, strict=True)
        if entry.name != OFFLINE_PLAN
    ]
    fields = _root_fields(file)
    name = OFFLINE_PLAN.encode()
    # Positions, front to back. Everything but the plan needs 4-byte alignment.
    vtable_at = 8
    root_at = round_up(vtable_at + 4 + 2 * len(fields), 4)
    root_bytes = 4 + 4 * len(fields)
    metadata_at = root_at + root_bytes
    buffers_at = metadata_at + 4 + 4 * (len(old_metadata) + 1)
    # Tensors without data name buffer 0. A file without any buffer gets an empty one first.
    plan_index = max(len(file.buffers), 1)
    entry_vtable_at = buffers_at + 4 + 4 * (plan_index + 1)
    entry_at = entry_vtable_at + 8
    name_at = entry_at + 12
    buffer_vtable_at = round_up(name_at + 4 + len(name) + 1, 4)
    buffer_at = buffer_vtable_at + 8
    empty_vtable_at = buffer_at + 8
    empty_at = empty_vtable_at + 4
    plan_at = round_up(empty_at + 4 + 4, _PLAN_ALIGNMENT) - 4  # the length comes before the data
    end = round_up(plan_at + 4 + len(plan), _FRONT_ALIGNMENT)

    out = bytearray(end)
    struct.pack_into("<I4s", out, 0, root_at, FILE_IDENTIFIER)
    # Root: every field has 4 bytes, in the order of the schema.
    struct.pack_into("<2H", out, vtable_at, 4 + 2 * len(fields), root_bytes)
    struct.pack_into("<i", out, root_at, root_at - vtable_at)
    new = {ModelField.METADATA: metadata_at, ModelField.BUFFERS: buffers_at}
    for field, value in enumerate(fields):
        at = root_at + 4 + 4 * field
        if field in new:
            struct.pack_into("<I", out, at, new[field] - at)
        elif field == ModelField.VERSION:
            struct.pack_into("<I", out, at, value)
        elif value:
            struct.pack_into("<I", out, at, end + value - at)
        else:
            continue
        struct.pack_into("<H", out, vtable_at + 4 + 2 * field, at - root_at)
    _put_offsets(out, metadata_at, [end + t.position for t in old_metadata] + [entry_at])
    old_buffers = [end + t.position for t in file.buffer_tables] or [empty_at]
    _put_offsets(out, buffers_at, [*old_buffers, buffer_at])
    # Metadata entry: name, buffer index.
    struct.pack_into("<4H", out, entry_vtable_at, 8, 12, 4, 8)
    struct.pack_into(
        "<iII", out, entry_at, entry_at - entry_vtable_at, name_at - entry_at - 4, plan_index
    )
    struct.pack_into(f"<I{len(name)}s", out, name_at, len(name), name)
    # Buffer: data.
    struct.pack_into("<3H", out, buffer_vtable_at, 6, 8, 4)
    struct.pack_into("<iI", out, buffer_at, buffer_at - buffer_vtable_at, plan_at - buffer_at - 4)
    struct.pack_into("<2Hi", out, empty_vtable_at, 4, 4, empty_at - empty_vtable_at)
    struct.pack_into("<I", out, plan_at, len(plan))
    out[plan_at + 4 : plan_at + 4 + len(plan)] = plan
    return bytes(out)


def _metadata_tables(file: TfliteFile) -> list[Table]:
    reader = file.root.reader
    start, count = file.root.vector(ModelField.METADATA, 4)
    return [_table_without_visit(file, reader.follow(start + 4 * i)) for i in range(count)]


def _table_without_visit(file: TfliteFile, position: int) -> Table:
    reader = file.root.reader
    reader.visit(-1)  # already paid for when the file was parsed
    return reader.table_at(position)


def _root_fields(file: TfliteFile) -> list[int]:
    """Return, per field of the root table, its number (version) or the target of its offset.

    All fields of table Model but the first are offsets, also those that came later.
    """
    root = file.root
    count = max((root.vtable_bytes - 4) // 2, ModelField.METADATA + 1)
    fields = []
    for field in range(count):
        slot = root.slot(field)
        if field == ModelField.VERSION:
            fields.append(root.u32(field))
        else:
            fields.append(root.reader.follow(slot) if slot else 0)
    return fields


def _put_offsets(out: bytearray, at: int, targets: Sequence[int]) -> None:
    struct.pack_into("<I", out, at, len(targets))
    for i, target in enumerate(targets):
        slot = at + 4 + 4 * i
        struct.pack_into("<I", out, slot, target - slot)
