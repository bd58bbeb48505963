"""Write small .tflite files for tests: any structure, also wrong ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import flatbuffers

from regal.frontends.tflite.schema import BUILTIN_CODES, CUSTOM, DATA_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TYPE_CODES = {data_type.name: code for code, data_type in enumerate(DATA_TYPES)}

# Options: the code of the table in union BuiltinOptions, and (field, width, value) rows;
# width "text" writes a string.
Options = tuple[int, tuple[tuple[int, str, Any], ...]]
ADD_OPTIONS: Options = (11, ())
MUL_OPTIONS: Options = (21, ())
RESHAPE_OPTIONS: Options = (17, ())
CONCATENATION_AXIS_1: Options = (10, ((0, "i32", 1),))


@dataclass(frozen=True, kw_only=True)
class T:
    """A tensor."""

    name: str
    shape: Sequence[int] = (1, 4)
    dtype: str = "float32"
    data: bytes = b""
    is_variable: bool = False
    scale: float = 0.0
    zero_point: int = 0
    signature: Sequence[int] = ()
    buffer: int | None = None


@dataclass(frozen=True, kw_only=True)
class O:  # noqa: E742
    """An operator; names of tensors, "" for an absent input."""

    kind: str
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    options: Options | None = None
    custom: str = ""


@dataclass(frozen=True, kw_only=True)
class G:
    """A subgraph."""

    name: str = "main"
    tensors: Sequence[T] = ()
    ops: Sequence[O] = ()
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class M:
    """A model. `signatures` are (key, subgraph)."""

    subgraphs: Sequence[G]
    metadata: Sequence[tuple[str, bytes]] = ()
    signatures: Sequence[tuple[str, int]] = ()
    description: str = "made for a test"
    raw_indices: dict[str, int] = field(default_factory=dict)


def if_options(then: int, otherwise: int) -> Options:
    return 92, ((0, "i32", then), (1, "i32", otherwise))


def while_options(cond: int, body: int) -> Options:
    return 93, ((0, "i32", cond), (1, "i32", body))


def call_once_options(init: int) -> Options:
    return 103, ((0, "i32", init),)


def variable_options(name: str) -> Options:
    return 111, ((0, "text", ""), (1, "text", name))


def write_tflite(model: M) -> bytes:
    """Return the bytes of a .tflite file."""
    make: Any = flatbuffers.Builder
    b = make(1024)
    buffers: list[bytes] = [b""]
    codes: list[tuple[str, str]] = []
    subgraphs = [_subgraph(b, g, buffers, codes) for g in model.subgraphs]
    metadata = []
    for name, data in model.metadata:
        buffers.append(data)
        text, index = b.CreateString(name), len(buffers) - 1
        metadata.append(_table(b, 2, ((0, "offset", text), (1, "u32", index))))
    signatures = []
    for key, index in model.signatures:
        graph = model.subgraphs[index]
        names = [t.name for t in graph.tensors]
        maps = [
            _vector(
                b,
                [
                    _table(b, 2, ((0, "offset", b.CreateString(n)), (1, "u32", names.index(n))))
                    for n in listed
                ],
            )
            for listed in (graph.inputs, graph.outputs)
        ]
        text = b.CreateString(key)
        rows = ((0, "offset", maps[0]), (1, "offset", maps[1]), (2, "offset", text))
        signatures.append(_table(b, 5, (*rows, (4, "u32", index))))
    code_tables = []
    for kind, custom in codes:
        code = BUILTIN_CODES[kind]
        code_rows: list[tuple[int, str, Any]] = [
            (0, "i8", min(code, 127)),
            (2, "i32", 1),
            (3, "i32", code),
        ]
        if custom:
            code_rows.append((1, "offset", b.CreateString(custom)))
        code_tables.append(_table(b, 4, code_rows))
    buffer_tables = []
    for data in buffers:
        buffer_rows = [(0, "offset", _bytes(b, data))] if data else []
        buffer_tables.append(_table(b, 3, buffer_rows))
    description = b.CreateString(model.description)
    fields = [
        (1, "offset", _vector(b, code_tables)),
        (2, "offset", _vector(b, subgraphs)),
        (3, "offset", description),
        (4, "offset", _vector(b, buffer_tables)),
        (0, "u32", 3),
    ]
    if metadata:
        fields.append((6, "offset", _vector(b, metadata)))
    if signatures:
        fields.append((7, "offset", _vector(b, signatures)))
    b.Finish(_table(b, 8, fields), b"TFL3")
    return bytes(b.Output())


def _subgraph(b: Any, g: G, buffers: list[bytes], codes: list[tuple[str, str]]) -> int:
    index_of = {t.name: i for i, t in enumerate(g.tensors)} | {"": -1}
    tensors = [_tensor(b, t, buffers) for t in g.tensors]
    operators = []
    for op in g.ops:
        code = (CUSTOM, op.custom) if op.kind == CUSTOM else (op.kind, "")
        if code not in codes:
            codes.append(code)
        rows: list[tuple[int, str, Any]] = [
            (0, "u32", codes.index(code)),
            (1, "offset", _integers(b, [index_of[n] for n in op.inputs])),
            (2, "offset", _integers(b, [index_of[n] for n in op.outputs])),
        ]
        if op.options is not None:
            union, option_rows = op.options
            written = [
                (f, "offset", b.CreateString(v)) if w == "text" else (f, w, v)
                for f, w, v in option_rows
            ]
            rows += [(3, "u8", union), (4, "offset", _table(b, 8, written))]
        operators.append(_table(b, 9, rows))
    name = b.CreateString(g.name)
    return _table(
        b,
        5,
        (
            (0, "offset", _vector(b, tensors)),
            (1, "offset", _integers(b, [index_of[n] for n in g.inputs])),
            (2, "offset", _integers(b, [index_of[n] for n in g.outputs])),
            (3, "offset", _vector(b, operators)),
            (4, "offset", name),
        ),
    )


def _tensor(b: Any, t: T, buffers: list[bytes]) -> int:
    buffer = t.buffer or 0
    if t.data:
        buffers.append(t.data)
        buffer = len(buffers) - 1
    rows: list[tuple[int, str, Any]] = [
        (0, "offset", _integers(b, t.shape)),
        (1, "i8", TYPE_CODES[t.dtype]),
        (2, "u32", buffer),
        (3, "offset", b.CreateString(t.name)),
        (5, "u8", int(t.is_variable)),
    ]
    if t.scale:
        b.StartVector(4, 1, 4)
        b.PrependFloat32(t.scale)
        scales = b.EndVector()
        b.StartVector(8, 1, 8)
        b.PrependInt64(t.zero_point)
        zeros = b.EndVector()
        rows.append((4, "offset", _table(b, 7, ((2, "offset", scales), (3, "offset", zeros)))))
    if t.signature:
        rows.append((7, "offset", _integers(b, t.signature)))
    return _table(b, 8, rows)


def _table(b: Any, n_fields: int, rows: Sequence[tuple[int, str, Any]]) -> int:
    put: dict[str, Callable[[int, Any, Any], None]] = {
        "offset": b.PrependUOffsetTRelativeSlot,
        "u32": b.PrependUint32Slot,
        "i32": b.PrependInt32Slot,
        "i8": b.PrependInt8Slot,
        "u8": b.PrependUint8Slot,
    }
    b.StartObject(n_fields)
    for number, width, value in rows:
        put[width](number, value, 0)
    return int(b.EndObject())


def _vector(b: Any, offsets: Sequence[int]) -> int:
    b.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        b.PrependUOffsetTRelative(offset)
    return int(b.EndVector())


def _integers(b: Any, numbers: Sequence[int]) -> int:
    b.StartVector(4, len(numbers), 4)
    for number in reversed(numbers):
        b.PrependInt32(number)
    return int(b.EndVector())


def _bytes(b: Any, data: bytes) -> int:
    b.StartVector(1, len(data), 16)
    b.head = b.head - len(data)
    b.Bytes[b.head : b.head + len(data)] = data
    return int(b.EndVector())
