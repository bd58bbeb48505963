"""How much room TFLM's arena gives to a tensor."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from regal.errors import ModelError
from regal.units import packed_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.frontends.tflite.model import FileTensor

ALIGNMENT: Final = 16  # MicroArenaBufferAlignment() in micro_arena_constants.h


def arena_bytes(tensor: FileTensor, shape: Sequence[int]) -> int:
    """Return the bytes that TFLM places for a tensor without data (memory_helpers.cc).

    Strings and variants live on the heap of LiteRT; TFLM does not know them. An int4
    activation takes a byte per element in TFLM. Types TFLM lacks are packed as in LiteRT.

    Raises:
        ModelError: a size of `shape` is open.
    """
    if tensor.type.bits == 0:
        return 0
    bits = 8 if tensor.type.name == "int4" else tensor.type.bits
    return packed_bytes(elements_of(tensor, shape), bits)


def elements_of(tensor: FileTensor, shape: Sequence[int]) -> int:
    """Return the number of elements.

    Raises:
        ModelError: a size of `shape` is open.
    """
    if any(size < 0 for size in shape):
        raise ModelError(
            f"tensor '{tensor.name}' has the open shape {list(shape)} - bind it with --shape"
        )
    return prod(shape)
