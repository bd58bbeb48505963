"""Small constants as Python numbers, and shapes as tuples."""

from __future__ import annotations

import struct
from math import prod
from typing import TYPE_CHECKING

from regal.errors import ModelError
from regal.frontends.tensorflow.ops import element_bits
from regal.frontends.tensorflow.schema import DTYPES

if TYPE_CHECKING:
    from regal.frontends.tensorflow.schema import Proto

Shape = tuple[int, ...]
Partial = tuple[int | None, ...]  # None: nothing is known about this dimension
MOST_VALUES = 1024
MOST_DIMENSIONS = 254  # TensorFlow's own limit
LARGEST_DIMENSION = 1 << 48
_FIELDS = {
    "int32": ("int_val", "i"),
    "int64": ("int64_val", "q"),
    "bool": ("bool_val", "?"),
    "int16": ("int_val", "h"),
    "int8": ("int_val", "b"),
    "uint8": ("int_val", "B"),
    "float": ("float_val", "f"),
}


def numbers_of(tensor: Proto) -> tuple[float, ...] | None:
    """Return the elements of a TensorProto in row-major order; None if there are too many.

    A TensorProto that lists fewer elements than it has repeats the last one.
    """
    shape = shape_of(tensor.tensor_shape)
    if shape is None or DTYPES.get(tensor.dtype) not in _FIELDS or None in shape:
        return None
    count = prod(size for size in shape if size is not None)
    if count > MOST_VALUES:
        return None
    field, code = _FIELDS[DTYPES[tensor.dtype]]
    content = tensor.tensor_content
    if content:
        if len(content) != count * struct.calcsize(f"<{code}"):
            return None
        return tuple(struct.unpack(f"<{count}{code}", content))
    listed = list(getattr(tensor, field))[:count]
    filler = listed[-1:] or [0]
    return tuple(listed + filler * (count - len(listed)))


def integers_of(tensor: Proto) -> tuple[int, ...] | None:
    """Return the elements of an integer TensorProto; None where they are not known."""
    numbers = numbers_of(tensor)
    if numbers is None or any(isinstance(number, float) for number in numbers):
        return None
    return tuple(int(number) for number in numbers)


def shape_of(proto: Proto) -> Partial | None:
    """Return the dimensions of a TensorShapeProto; None if not even their number is known."""
    if proto.unknown_rank:
        return None
    return tuple(d.size if d.size >= 0 else None for d in proto.dim)


def full(partial: Partial | None) -> Shape | None:
    """Return a shape if all of it is known."""
    if partial is None:
        return None
    known = tuple(size for size in partial if size is not None)
    return known if len(known) == len(partial) else None


def bytes_of(shape: Shape, dtype: int) -> int:
    """Return the bytes that a tensor takes in memory; handles take none."""
    return prod(shape) * element_bits(dtype) // 8


def require_shape(proto: Proto, who: str) -> Partial | None:
    """Return the dimensions of a shape that a file states.

    Raises:
        ModelError: it has too many or too large ones; names `who`.
    """
    shape = shape_of(proto)
    if shape is not None and len(shape) > MOST_DIMENSIONS:
        raise ModelError(f"{who} has {len(shape)} dimensions; at most {MOST_DIMENSIONS} can be")
    for size in shape or ():
        if size is not None and size > LARGEST_DIMENSION:
            raise ModelError(f"{who} has a dimension of {size}; at most {LARGEST_DIMENSION} can be")
    return shape


def set_shape(proto: Proto, shape: Partial) -> None:
    """Write dimensions into an empty TensorShapeProto."""
    for size in shape:
        proto.dim.add(size=-1 if size is None else size)
