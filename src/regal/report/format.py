"""Numbers as people read them. `assets/format.js` says the same, digit by digit."""

from __future__ import annotations

import math

from regal.units import NS_PER_S

NOTHING = "\N{EN DASH}"  # where there is no number
TIME_UNITS = ((NS_PER_S, "s"), (1_000_000, "ms"), (1_000, "µs"))
BYTE_UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
MOST_NAME_CHARACTERS = 120  # converters join many names into one; both ends tell them apart


def exact_bytes(count: int) -> str:
    """Return "1,234,567 B"."""
    return f"{count:,} B"


def short_bytes(count: int) -> str:
    """Return "1.18 MiB": three digits or so, halves rounded up."""
    for unit, name in BYTE_UNITS:
        if count >= unit:
            digits = 2 if count < 10 * unit else 1 if count < 100 * unit else 0
            return f"{_rounded(count, unit, digits)} {name}"
    return f"{count} B"


def duration(ns: int) -> str:
    """Return "1.234 ms": four digits or so, halves rounded up."""
    for unit, name in TIME_UNITS:
        if ns >= unit:
            digits = 3 if ns < 10 * unit else 2 if ns < 100 * unit else 1
            return f"{_rounded(ns, unit, digits)} {name}"
    return f"{ns} ns"


def lifetime(start: int, end: int) -> str:
    """Return "1.234 ms - 5.678 ms"."""
    return f"{duration(start)} \N{EN DASH} {duration(end)}"


def steps(first: int, last: int) -> str:
    """Return "steps 3-7"; both ends are included."""
    return f"steps {first:,}\N{EN DASH}{last:,}"


def seconds(value: float) -> str:
    """Return the duration of so many seconds, half nanoseconds rounded up."""
    return duration(math.floor(value * NS_PER_S + 0.5))


def change(before: float, after: float) -> str:
    """Return "-12.5 %", or a dash where there was nothing before."""
    if not before:
        return NOTHING
    tenths = math.floor((after / before - 1) * 1000 + 0.5)
    sign = "-" if tenths < 0 else "+" if tenths > 0 else ""
    return f"{sign}{abs(tenths) // 10}.{abs(tenths) % 10} %"


def clipped(name: str) -> str:
    """Return `name`, or its two ends where it is too long to read."""
    if len(name) <= MOST_NAME_CHARACTERS:
        return name
    half = (MOST_NAME_CHARACTERS - 1) // 2
    return f"{name[:half]}…{name[-half:]}"


def _rounded(count: int, unit: int, digits: int) -> str:
    scaled = (2 * count * 10**digits + unit) // (2 * unit)
    whole, rest = divmod(scaled, 10**digits)
    return f"{whole:,}.{rest:0{digits}}" if digits else f"{whole:,}"
