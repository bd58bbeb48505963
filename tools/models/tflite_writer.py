"""Write a .tflite file from plain dataclasses, with nothing but the `flatbuffers` package.

Only the parts of the schema that the project's own models and tests need are here; every
table is written slot by slot, in the numbering of the public schema (version 3).
Equal models give equal bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Item = TypeVar("Item")
Builder = Any  # of the package `flatbuffers`, which has no types

DTYPES = {
    "float32": 0, "float16": 1, "int32": 2, "uint8": 3, "int64": 4, "string": 5,
    "bool": 6, "int16": 7, "int8": 9, "resource": 13, "int4": 17,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """Affine quantization, per tensor or channel: real = scale * (stored - zero_point)."""

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TfliteTensor:
    """One tensor. `buffer` is an index into the model's buffers; buffer 0 is empty."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "int8"
    buffer: int = 0
    quantization: Quantization | None = None
    is_variable: bool = False
    shape_signature: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TfliteOperator:
    """One operator. `kind` is a key of OPERATORS; `options` are that kind's fields."""

    kind: str
    inputs: tuple[int, ...]  # tensor indices of the same subgraph; -1 = absent
    outputs: tuple[int, ...]
    options: Mapping[str, int | float | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TfliteSubgraph:
    """One subgraph; its operators run in the order given here."""

    name: str
    tensors: tuple[TfliteTensor, ...]
    operators: tuple[TfliteOperator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TfliteSignature:
    """One entry point: argument and result names to tensor indices of its subgraph."""

    key: str
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]
    subgraph: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TfliteModel:
    """A whole file. `metadata` pairs a name with a buffer index."""

    subgraphs: tuple[TfliteSubgraph, ...]
    buffers: tuple[bytes, ...]  # buffers[0] must be empty
    description: str = ""
    signatures: tuple[TfliteSignature, ...] = ()
    metadata: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class _OperatorForm:
    code: int  # BuiltinOperator
    version: int
    union: int = 0  # BuiltinOptions; 0 = no options table
    slots: tuple[tuple[str, str, int | float], ...] = ()  # name, type, default; by slot


_CONV = (
    ("padding", "int8", 0), ("stride_w", "int32", 0), ("stride_h", "int32", 0),
    ("activation", "int8", 0), ("dilation_w", "int32", 1), ("dilation_h", "int32", 1),
)  # fmt: skip
_DEPTHWISE = (
    ("padding", "int8", 0), ("stride_w", "int32", 0), ("stride_h", "int32", 0),
    ("multiplier", "int32", 0), ("activation", "int8", 0),
    ("dilation_w", "int32", 1), ("dilation_h", "int32", 1),
)  # fmt: skip
_POOL = (
    ("padding", "int8", 0), ("stride_w", "int32", 0), ("stride_h", "int32", 0),
    ("filter_w", "int32", 0), ("filter_h", "int32", 0), ("activation", "int8", 0),
)  # fmt: skip
_SLICE = (
    ("begin_mask", "int32", 0), ("end_mask", "int32", 0), ("ellipsis_mask", "int32", 0),
    ("new_axis_mask", "int32", 0), ("shrink_axis_mask", "int32", 0), ("offset", "bool", 0),
)  # fmt: skip

# Versions are the first ones that take int8 tensors.
OPERATORS = {
    "ADD": _OperatorForm(0, 2, 11, (("activation", "int8", 0),)),
    "AVERAGE_POOL_2D": _OperatorForm(1, 2, 5, _POOL),
    "CONCATENATION": _OperatorForm(2, 2, 10, (("axis", "int32", 0), ("activation", "int8", 0))),
    "CONV_2D": _OperatorForm(3, 3, 1, _CONV),
    "DEPTHWISE_CONV_2D": _OperatorForm(4, 3, 2, _DEPTHWISE),
    "FULLY_CONNECTED": _OperatorForm(9, 4, 8, (("activation", "int8", 0),)),
    "LOGISTIC": _OperatorForm(14, 2),
    "MAX_POOL_2D": _OperatorForm(17, 2, 5, _POOL),
    "RELU": _OperatorForm(19, 2),
    "RESHAPE": _OperatorForm(22, 1),
    "SOFTMAX": _OperatorForm(25, 2, 9, (("beta", "float32", 0.0),)),
    "PAD": _OperatorForm(34, 2, 22),
    "MEAN": _OperatorForm(40, 2, 27, (("keep_dims", "bool", 0),)),
    "STRIDED_SLICE": _OperatorForm(45, 2, 32, _SLICE),
    "RESIZE_NEAREST_NEIGHBOR": _OperatorForm(
        97, 2, 74, (("align_corners", "bool", 0), ("half_pixel_centers", "bool", 0))
    ),
    "SPLIT_V": _OperatorForm(102, 2, 79, (("num_splits", "int32", 0),)),
    "CALL_ONCE": _OperatorForm(129, 1, 103, (("init_subgraph", "int32", 0),)),
    "VAR_HANDLE": _OperatorForm(
        142, 1, 111, (("container", "string", 0), ("shared_name", "string", 0))
    ),
    "READ_VARIABLE": _OperatorForm(143, 1, 112),
    "ASSIGN_VARIABLE": _OperatorForm(144, 1, 113),
}


def write_tflite(model: TfliteModel) -> bytes:
    """Return the bytes of a .tflite file that holds `model`.

    Raises:
        KeyError: an operator kind, an option or a dtype that this writer does not know.

    Cost: O(size of the model).
    """
    builder = import_module("flatbuffers").Builder(1024)
    kinds = sorted({op.kind for graph in model.subgraphs for op in graph.operators})
    # Buffers come first in the builder, so last in the file, as converters do.
    buffers = _tables(builder, model.buffers, _write_buffer)
    graphs = _tables(builder, model.subgraphs, lambda b, g: _write_subgraph(b, g, kinds))
    codes = _tables(builder, kinds, _write_code)
    signatures = _tables(builder, model.signatures, _write_signature)
    metadata = _tables(builder, model.metadata, _write_metadata)
    description = builder.CreateString(model.description)
    builder.StartObject(8)
    builder.PrependUint32Slot(0, 3, 0)
    for slot, offset in ((1, codes), (2, graphs), (3, description), (4, buffers)):
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    if model.metadata:
        builder.PrependUOffsetTRelativeSlot(6, metadata, 0)
    if model.signatures:
        builder.PrependUOffsetTRelativeSlot(7, signatures, 0)
    builder.Finish(builder.EndObject(), file_identifier=b"TFL3")
    return bytes(builder.Output())


def _tables(
    builder: Builder,
    items: Sequence[Item],
    write: Callable[[Builder, Item], int],
) -> int:
    offsets = [write(builder, item) for item in items]
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


def _int32s(builder: Builder, values: Sequence[int]) -> int:
    builder.StartVector(4, len(values), 4)
    for value in reversed(values):
        builder.PrependInt32(value)
    return int(builder.EndVector())


def _write_buffer(builder: Builder, data: bytes) -> int:
    if data:
        # The runtime reads weights in place and wants them at multiples of 16 bytes.
        builder.StartVector(1, len(data), 16)
        builder.head -= len(data)
        builder.Bytes[builder.head : builder.head + len(data)] = data
        vector = builder.EndVector()
    builder.StartObject(3)
    if data:
        builder.PrependUOffsetTRelativeSlot(0, vector, 0)
    return int(builder.EndObject())


def _write_quantization(builder: Builder, quantization: Quantization) -> int:
    builder.StartVector(4, len(quantization.scales), 4)
    for scale in reversed(quantization.scales):
        builder.PrependFloat32(scale)
    scales = builder.EndVector()
    builder.StartVector(8, len(quantization.zero_points), 8)
    for zero_point in reversed(quantization.zero_points):
        builder.PrependInt64(zero_point)
    zero_points = builder.EndVector()
    builder.StartObject(7)
    builder.PrependUOffsetTRelativeSlot(2, scales, 0)
    builder.PrependUOffsetTRelativeSlot(3, zero_points, 0)
    builder.PrependInt32Slot(6, quantization.axis, 0)
    return int(builder.EndObject())


def _write_tensor(builder: Builder, tensor: TfliteTensor) -> int:
    name = builder.CreateString(tensor.name)
    shape = _int32s(builder, tensor.shape)
    signature = _int32s(builder, tensor.shape_signature) if tensor.shape_signature else 0
    quantization = _write_quantization(builder, tensor.quantization) if tensor.quantization else 0
    builder.StartObject(11)
    builder.PrependUOffsetTRelativeSlot(0, shape, 0)
    builder.PrependInt8Slot(1, DTYPES[tensor.dtype], 0)
    builder.PrependUint32Slot(2, tensor.buffer, 0)
    builder.PrependUOffsetTRelativeSlot(3, name, 0)
    if quantization:
        builder.PrependUOffsetTRelativeSlot(4, quantization, 0)
    builder.PrependBoolSlot(5, tensor.is_variable, 0)
    if signature:
        builder.PrependUOffsetTRelativeSlot(7, signature, 0)
    builder.PrependBoolSlot(8, 1, 0)  # has_rank: () is a scalar, not an unknown shape
    return int(builder.EndObject())


def _write_options(
    builder: Builder,
    form: _OperatorForm,
    options: Mapping[str, int | float | str],
) -> int:
    strings = {
        name: builder.CreateString(str(options.get(name, "")))
        for name, dtype, _ in form.slots
        if dtype == "string"
    }
    builder.StartObject(len(form.slots))
    write = {
        "int8": builder.PrependInt8Slot,
        "int32": builder.PrependInt32Slot,
        "bool": builder.PrependBoolSlot,
        "float32": builder.PrependFloat32Slot,
    }
    for slot, (name, dtype, default) in enumerate(form.slots):
        if dtype == "string":
            builder.PrependUOffsetTRelativeSlot(slot, strings[name], 0)
        else:
            write[dtype](slot, options.get(name, default), default)
    return int(builder.EndObject())


def _write_operator(builder: Builder, operator: TfliteOperator, kinds: Sequence[str]) -> int:
    form = OPERATORS[operator.kind]
    unknown = set(operator.options) - {name for name, _, _ in form.slots}
    if unknown:
        raise KeyError(f"{operator.kind} has no options {sorted(unknown)}")
    inputs = _int32s(builder, operator.inputs)
    outputs = _int32s(builder, operator.outputs)
    options = _write_options(builder, form, operator.options) if form.union else 0
    builder.StartObject(9)
    builder.PrependUint32Slot(0, kinds.index(operator.kind), 0)
    builder.PrependUOffsetTRelativeSlot(1, inputs, 0)
    builder.PrependUOffsetTRelativeSlot(2, outputs, 0)
    if form.union:
        builder.PrependUint8Slot(3, form.union, 0)
        builder.PrependUOffsetTRelativeSlot(4, options, 0)
    return int(builder.EndObject())


def _write_subgraph(builder: Builder, graph: TfliteSubgraph, kinds: Sequence[str]) -> int:
    name = builder.CreateString(graph.name)
    tensors = _tables(builder, graph.tensors, _write_tensor)
    operators = _tables(builder, graph.operators, lambda b, op: _write_operator(b, op, kinds))
    inputs = _int32s(builder, graph.inputs)
    outputs = _int32s(builder, graph.outputs)
    builder.StartObject(5)
    for slot, offset in enumerate((tensors, inputs, outputs, operators, name)):
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    return int(builder.EndObject())


def _write_code(builder: Builder, kind: str) -> int:
    form = OPERATORS[kind]
    builder.StartObject(4)
    builder.PrependInt8Slot(0, min(form.code, 127), 0)  # readers of before 2020 look here
    builder.PrependInt32Slot(2, form.version, 1)
    builder.PrependInt32Slot(3, form.code, 0)
    return int(builder.EndObject())


def _write_tensor_map(builder: Builder, entry: tuple[str, int]) -> int:
    name = builder.CreateString(entry[0])
    builder.StartObject(2)
    builder.PrependUOffsetTRelativeSlot(0, name, 0)
    builder.PrependUint32Slot(1, entry[1], 0)
    return int(builder.EndObject())


def _write_signature(builder: Builder, signature: TfliteSignature) -> int:
    inputs = _tables(builder, signature.inputs, _write_tensor_map)
    outputs = _tables(builder, signature.outputs, _write_tensor_map)
    key = builder.CreateString(signature.key)
    builder.StartObject(5)
    builder.PrependUOffsetTRelativeSlot(0, inputs, 0)
    builder.PrependUOffsetTRelativeSlot(1, outputs, 0)
    builder.PrependUOffsetTRelativeSlot(2, key, 0)
    builder.PrependUint32Slot(4, signature.subgraph, 0)
    return int(builder.EndObject())


def _write_metadata(builder: Builder, entry: tuple[str, int]) -> int:
    name = builder.CreateString(entry[0])
    builder.StartObject(2)
    builder.PrependUOffsetTRelativeSlot(0, name, 0)
    builder.PrependUint32Slot(1, entry[1], 0)
    return int(builder.EndObject())
