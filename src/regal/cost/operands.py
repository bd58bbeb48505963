"""One op as the cost formulas see it: its tensors in place of their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Final

from regal.graph.types import ABSENT, Role
from regal.units import packed_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from regal.graph.types import AttributeValue, Op, Tensor

BITS: Final = {
    "float64": 64, "float32": 32, "float16": 16, "bfloat16": 16, "float8_e4m3fn": 8,
    "float8_e5m2": 8, "int64": 64, "int32": 32, "int16": 16, "int8": 8, "int4": 4, "int2": 2,
    "uint64": 64, "uint32": 32, "uint16": 16, "uint8": 8, "uint4": 4, "bool": 8,
    "complex64": 64, "complex128": 128, "qint8": 8, "quint8": 8, "qint32": 32,
}  # fmt: skip
WEIGHTS: Final = frozenset({Role.PARAMETER, Role.CONSTANT})


@dataclass(frozen=True, slots=True)
class Operands:
    """An op with its tensors; None stands for one that is absent."""

    kind: str
    inputs: Sequence[Tensor | None]
    outputs: Sequence[Tensor | None]
    attributes: Mapping[str, AttributeValue]

    def shape(self, position: int) -> tuple[int, ...]:
        """Return the shape of an input, () when it is absent."""
        tensor = self.inputs[position] if position < len(self.inputs) else None
        return tensor.shape if tensor is not None else ()

    def out_shape(self, position: int = 0) -> tuple[int, ...]:
        """Return the shape of an output, () when it is absent."""
        tensor = self.outputs[position] if position < len(self.outputs) else None
        return tensor.shape if tensor is not None else ()

    @property
    def read(self) -> int:
        """Return the elements of the largest input."""
        return max((prod(t.shape) for t in self.inputs if t is not None), default=0)

    @property
    def first(self) -> int:
        """Return the elements of the first input that is there."""
        return next((prod(t.shape) for t in self.inputs if t is not None), 0)

    @property
    def written(self) -> int:
        """Return the elements of the largest output."""
        return max((prod(t.shape) for t in self.outputs if t is not None), default=0)

    def flag(self, *names: str) -> bool:
        """Return whether one of these attributes is set and not 0."""
        return any(bool(self.attributes.get(name)) for name in names)

    def ints(self, name: str) -> tuple[int, ...]:
        """Return an attribute that is a list of integers, () when it is none."""
        value = self.attributes.get(name)
        return value if isinstance(value, tuple) else ()

    def number(self, name: str) -> int:
        """Return an attribute that is an integer, 0 when it is none."""
        value = self.attributes.get(name)
        return value if isinstance(value, int) else 0


def operands_of(op: Op, tensors: Sequence[Tensor]) -> Operands:
    """Return an op with its tensors; values that only its bodies read are left out."""
    own = op.inputs[: len(op.inputs) - op.captures] if op.captures else op.inputs
    return Operands(
        op.kind,
        [tensors[t] if t != ABSENT else None for t in own],
        [tensors[t] if t != ABSENT else None for t in op.outputs],
        op.attributes,
    )


def size_of(tensor: Tensor) -> int:
    """Return the bytes of a tensor, also where the runtime keeps it elsewhere."""
    if tensor.bytes or tensor.dtype not in BITS:
        return tensor.bytes
    return packed_bytes(prod(tensor.shape), BITS[tensor.dtype])


def dtype_of(op: Operands) -> str:
    """Return the dtype that decides how fast an op computes, and who can run it.

    Floating point on either side makes an op one of floating point, the widest one: so a
    quantization needs a device that knows floats. Else it is that of the first activation.
    Weights decide only where there is nothing else.
    """
    best, rank = "", -1
    for tensor in (*op.inputs, *op.outputs):
        if tensor is None or tensor.role in WEIGHTS:
            continue
        own = _RANK.get(tensor.dtype, 0)
        if own > rank:
            best, rank = tensor.dtype, own
    if best:
        return best
    return next((t.dtype for t in (*op.inputs, *op.outputs) if t is not None), "")


_RANK: Final = {
    "complex128": 7, "complex64": 6, "float64": 5, "float32": 4, "bfloat16": 3, "float16": 3,
    "float8_e4m3fn": 2, "float8_e5m2": 2,
}  # fmt: skip
