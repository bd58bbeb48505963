"""What ONNX Runtime's kernels do with their buffers, and which attributes an operator keeps.

Measured on the CPU provider of ONNX Runtime 1.32 with the heap meter: one op between two
others that always allocate; the rule of its memory planner is in docs/decisions.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import onnx

from regal.units import packed_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx import NodeProto

    from regal.graph.types import AttributeValue

Shape = tuple[int, ...]

# The first output is the first input, seen with another shape.
VIEWS = frozenset(
    {"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Optional", "OptionalGetElement"}
)

# The first output may take over the bytes of the first input.
# Add, Mul, Exp and most others always allocate: measured, against their old registrations.
OVERWRITES = frozenset(
    {
        "Cast",
        "CastLike",
        "Celu",
        "Clip",
        "Elu",
        "HardSigmoid",
        "LeakyRelu",
        "LogSoftmax",
        "Relu",
        "Scatter",
        "ScatterElements",
        "Selu",
        "Shrink",
        "Sigmoid",
        "Softmax",
        "Softplus",
        "Softsign",
        "Tanh",
        "ThresholdedRelu",
        "Trilu",
    }
)

# Results that ONNX Runtime computes as soon as it knows the shape, whatever the order says.
SHAPE_READERS = frozenset({"Shape", "Size"})

# Without a seed of their own they draw it from their position, so reordering changes them.
RANDOM = frozenset(
    {
        "Bernoulli",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)

# Element types that numpy has, too.
NUMPY_KINDS = frozenset(
    {
        onnx.TensorProto.FLOAT,
        onnx.TensorProto.DOUBLE,
        onnx.TensorProto.FLOAT16,
        onnx.TensorProto.BOOL,
        onnx.TensorProto.INT8,
        onnx.TensorProto.UINT8,
        onnx.TensorProto.INT16,
        onnx.TensorProto.UINT16,
        onnx.TensorProto.INT32,
        onnx.TensorProto.UINT32,
        onnx.TensorProto.INT64,
        onnx.TensorProto.UINT64,
    }
)

BITS: dict[int, int] = {
    onnx.TensorProto.UINT4: 4,
    onnx.TensorProto.INT4: 4,
    onnx.TensorProto.FLOAT4E2M1: 4,
    onnx.TensorProto.UINT2: 2,
    onnx.TensorProto.INT2: 2,
    onnx.TensorProto.STRING: 256,  # the string object; its text lies elsewhere
}
NAMES: dict[int, str] = {
    kind: onnx.helper.tensor_dtype_to_string(kind).removeprefix("TensorProto.").lower()
    for kind in sorted(onnx.helper.get_all_tensor_dtypes())
}
NAMES[onnx.TensorProto.FLOAT] = "float32"
NAMES[onnx.TensorProto.DOUBLE] = "float64"


def dtype_name(kind: int) -> str:
    """Return the project's name of an ONNX element type, or "" if it is none."""
    return NAMES.get(kind, "") if kind != onnx.TensorProto.UNDEFINED else ""


def bits_of(kind: int) -> int:
    """Return the bits that one element takes in memory."""
    if kind in BITS:
        return BITS[kind]
    return int(onnx.helper.tensor_dtype_to_np_dtype(kind).itemsize) * 8


def tensor_bytes(kind: int, shape: Sequence[int]) -> int:
    """Return the bytes of a tensor; two 4-bit values share a byte."""
    return packed_bytes(prod(shape), bits_of(kind))


def numbers_of(node: NodeProto) -> dict[str, AttributeValue]:
    """Return the attributes of a node that are numbers, texts, or short rows of integers."""
    values: dict[str, AttributeValue] = {}
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.INT:
            values[attribute.name] = attribute.i
        elif attribute.type == onnx.AttributeProto.FLOAT:
            values[attribute.name] = attribute.f
        elif attribute.type == onnx.AttributeProto.STRING and len(attribute.s) <= 64:
            values[attribute.name] = attribute.s.decode(errors="replace")
        elif attribute.type == onnx.AttributeProto.INTS and len(attribute.ints) <= 64:
            values[attribute.name] = tuple(attribute.ints)
    return values
