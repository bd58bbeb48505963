"""Rates and times with their units, as data sheets write them: "900GB/s", "14TFLOPS", "5us".

Rates count in powers of ten, sizes (`regal.units.parse_bytes`) in powers of two: that is how
vendors state them. "GiB/s" is there for those who do not.
"""

from __future__ import annotations

import re

from regal.errors import UsageError
from regal.units import parse_bytes

# A larger number is a slip of the pen, and sums of costs must fit in int64; what is divided by a
# smaller rate is no finite number any more.
SMALLEST_RATE, LARGEST_RATE = 1e-9, 1e21
LARGEST_NS = 10**15  # eleven days
LARGEST_BYTES = 1 << 60

PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
BINARY_PREFIXES = {"KI": 2.0**10, "MI": 2.0**20, "GI": 2.0**30, "TI": 2.0**40}
NS_PER_UNIT = {"NS": 1.0, "US": 1e3, "MS": 1e6, "S": 1e9}
NUMBER_AND_UNIT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z/]*)\s*")
BYTE_RATE = re.compile(r"([KMGTP]?|[KMGT]I)(B|BIT)/S")
FLOP_RATE = re.compile(r"([KMGTP]?)(?:FLOPS|OPS|FLOP/S|OP/S)")


def parse_byte_rate(text: str) -> float:
    """Return the bytes per second in "900GB/s" (10^9), "1GiB/s" (2^30) or "10Gbit/s".

    Raises:
        UsageError: not a positive rate.
    """
    number, unit = _number_and_unit(text, "a bandwidth; write for example 16GB/s")
    match = BYTE_RATE.fullmatch(unit)
    if match is None:
        raise UsageError(f"'{text}' is not a bandwidth; write for example 16GB/s")
    factor = {**PREFIXES, **BINARY_PREFIXES}[match[1]] / (8 if match[2] == "BIT" else 1)
    return require_rate(number * factor, text)


def parse_flop_rate(text: str) -> float:
    """Return the operations per second in "14TFLOPS", "4 TOPS" or "1GFLOP/s".

    Raises:
        UsageError: not a positive rate.
    """
    number, unit = _number_and_unit(text, "a computing speed; write for example 14TFLOPS")
    match = FLOP_RATE.fullmatch(unit)
    if match is None:
        raise UsageError(f"'{text}' is not a computing speed; write for example 14TFLOPS")
    return require_rate(number * PREFIXES[match[1]], text)


def parse_time_ns(text: str) -> int:
    """Return the nanoseconds in "5us", "250ns" or "1.5ms", rounded to the nearest.

    Raises:
        UsageError: not a time of at most eleven days; 0 is one.
    """
    number, unit = _number_and_unit(text, "a time; write for example 5us")
    if unit not in NS_PER_UNIT or number * NS_PER_UNIT[unit] > LARGEST_NS:
        raise UsageError(f"'{text}' is not a time; write for example 5us")
    return round(number * NS_PER_UNIT[unit])


def parse_memory(text: str) -> int:
    """Return the bytes in "16GB" (2^30) or "512KB".

    Raises:
        UsageError: not a size above 0.
    """
    size = parse_bytes(text)
    if not 0 < size <= LARGEST_BYTES:
        raise UsageError(f"'{text}' is not a memory size; write for example 16GB")
    return size


def require_rate(value: float, text: object) -> float:
    """Return a rate if it is one: positive, finite, not absurd.

    Raises:
        UsageError: it is not; `text` is how it was written.
    """
    if not SMALLEST_RATE <= value <= LARGEST_RATE:  # nor is nan
        limits = f"{SMALLEST_RATE:g} to {LARGEST_RATE:g} per second"
        raise UsageError(f"'{text}' is not a rate above 0 ({limits})")
    return value


def byte_rate_text(value: float) -> str:
    """Return text that `parse_byte_rate` reads back to exactly `value`."""
    return _rate_text(value, "B/s")


def flop_rate_text(value: float) -> str:
    """Return text that `parse_flop_rate` reads back to exactly `value`."""
    return _rate_text(value, "FLOPS")


def time_text(ns: int) -> str:
    """Return text that `parse_time_ns` reads back to exactly `ns`."""
    for unit, factor in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if ns and ns % factor == 0:
            return f"{ns // factor}{unit}"
    return f"{ns}ns"


def memory_text(size: int) -> str:
    """Return text that `parse_memory` reads back to exactly `size`."""
    for unit, shift in (("GB", 30), ("MB", 20), ("KB", 10)):
        if size and size % (1 << shift) == 0:
            return f"{size >> shift}{unit}"
    return f"{size}"


def _rate_text(value: float, unit: str) -> str:
    for prefix in ("T", "G", "M", "K"):
        number = f"{value / PREFIXES[prefix]:.6g}"
        if value >= PREFIXES[prefix] and float(number) * PREFIXES[prefix] == value:
            return f"{number}{prefix}{unit}"
    return f"{value!r}{unit}"


def _number_and_unit(text: str, what: str) -> tuple[float, str]:
    match = NUMBER_AND_UNIT.fullmatch(text)
    if match is None:
        raise UsageError(f"'{text}' is not {what}")
    return float(match[1]), match[2].upper()
