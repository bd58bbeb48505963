"""Quantities: read them with their units, round them up."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from regal.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Number = TypeVar("Number", int, "NDArray[np.int64]")

NS_PER_S = 10**9
BYTE_UNITS = {"": 1, "B": 1, "K": 1 << 10, "KB": 1 << 10, "M": 1 << 20, "MB": 1 << 20,
              "G": 1 << 30, "GB": 1 << 30}  # fmt: skip
TIME_UNITS = {"": 1.0, "S": 1.0, "MS": 1e-3, "M": 60.0, "MIN": 60.0, "H": 3600.0}


def parse_bytes(text: str) -> int:
    """Return the bytes in "262144", "256K" or "256KiB" (K = 1,024).

    Raises:
        UsageError: not a whole number of bytes.
    """
    number, unit = _split(text)
    unit = unit.replace("IB", "B")
    if not (number.isascii() and number.isdigit() and len(number) < 20) or unit not in BYTE_UNITS:
        raise UsageError(f"'{text}' is not a size; write for example 262144 or 256K")
    return int(number) * BYTE_UNITS[unit]


def parse_seed(text: str) -> int:
    """Return the seed in "0" or "42".

    Raises:
        UsageError: not a whole number from 0 to 2^62 - 1.
    """
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise UsageError(f"'{text}' is not a seed; write a whole number from 0 to 2^62 - 1")
    return require_seed(int(text))


def require_seed(seed: int) -> int:
    """Return `seed` if the kernel can take it.

    Raises:
        UsageError: it is below 0, or 2^62 or more.
    """
    if not 0 <= seed < 1 << 62:
        raise UsageError(f"seed is {seed}; give a whole number from 0 to 2^62 - 1")
    return seed


def parse_seconds(text: str) -> float:
    """Return the seconds in "10", "10s", "500ms" or "2m".

    Raises:
        UsageError: not a positive time.
    """
    number, unit = _split(text)
    try:
        seconds = float(number) * TIME_UNITS[unit]
    except (ValueError, KeyError):
        seconds = 0.0
    if not 0 < seconds < 1e9:
        raise UsageError(f"'{text}' is not a time; write for example 10s or 500ms")
    return seconds


def round_up(value: Number, step: int) -> Number:
    """Return the lowest multiple of `step` that is not below `value`, for each of an array."""
    return -(-value // step) * step


def packed_bytes(elements: int, bits: int) -> int:
    """Return the bytes of so many elements of `bits` each, one right after the other."""
    return round_up(elements * bits, 8) // 8


def _split(text: str) -> tuple[str, str]:
    text = text.strip().upper()
    end = next((i for i, c in enumerate(text) if c not in "0123456789.+-"), len(text))
    return text[:end], text[end:].strip()
