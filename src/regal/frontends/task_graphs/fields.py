"""Read single values out of task graph files, strictly: each error says where and what."""

from __future__ import annotations

import json
import math
from reprlib import repr as repr_of
from typing import Any

from regal.errors import ModelError

MOST_NS = 1 << 53  # 104 days; sums of many such times still fit in 64 bits
MOST_BYTES = 1 << 60
NS_PER_MS = 1_000_000


def text_of(data: bytes, name: str) -> str:
    """Return the text of a file.

    Raises:
        ModelError: not UTF-8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ModelError(f"'{name}' is not a text file: byte {error.start} is not UTF-8") from None


def json_of(data: bytes, name: str) -> dict[str, Any]:
    """Return the JSON object in a file.

    Raises:
        ModelError: not JSON, or not an object.
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"'{name}' is not a JSON file: {str(error).splitlines()[0]}") from None
    return object_of(document, f"'{name}'")


def object_of(value: object, where: str) -> dict[str, Any]:
    """Return `value` if it is a JSON object."""
    if not isinstance(value, dict):
        raise ModelError(f"{where} is {type(value).__name__}, expected an object")
    return value


def rows_of(fields: dict[str, Any], key: str, where: str) -> list[Any]:
    """Return the list under `key`; it must be there."""
    value = fields.get(key)
    if not isinstance(value, list):
        raise ModelError(f"{where}: '{key}' is {repr_of(value)}, expected a list")
    return value


def name_of(fields: dict[str, Any], key: str, where: str) -> str:
    """Return the text under `key`, which must be printable and not empty."""
    value = fields.get(key)
    if not isinstance(value, str) or not value:
        raise ModelError(f"{where}: '{key}' is {repr_of(value)}, expected a name")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise ModelError(f"{where}: '{key}' is {repr_of(value)}, which is no Unicode text")
    return value


def id_of(fields: dict[str, Any], key: str, where: str) -> int:
    """Return the integer under `key`."""
    value = fields.get(key)
    if type(value) is not int:
        raise ModelError(f"{where}: '{key}' is {repr_of(value)}, expected an integer")
    return value


def number_of(fields: dict[str, Any], key: str, where: str, default: float | None = None) -> float:
    """Return the number under `key`: finite and not negative.

    Raises:
        ModelError: missing without a default, no number, negative, infinite or NaN.
    """
    return checked_number(fields.get(key, default), f"{where}: '{key}'")


def checked_number(value: object, what: str) -> float:
    """Return `value` if it is a finite number, not negative."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ModelError(f"{what} is {repr_of(value)}, expected a number")
    # Comparisons of integers, since float() of a huge one would overflow.
    if not (0 <= value < MOST_BYTES):
        raise ModelError(f"{what} is {repr_of(value)}, expected a number from 0 to 2^60")
    return float(value)


def number_in(word: str, what: str) -> float:
    """Return the number that a word of a text file spells: finite and not negative."""
    try:
        value = float(word)
    except ValueError:
        raise ModelError(f"{what} is {repr_of(word)}, expected a number") from None
    return checked_number(value, what)


def integer_in(word: str, what: str) -> int:
    """Return the integer that a word of a text file spells: not negative."""
    # Twenty digits hold every number below 2^60; int() of more could take very long.
    if not (word.isascii() and word.isdigit() and len(word) <= 20):
        raise ModelError(f"{what} is {repr_of(word)}, expected an integer, 0 or more")
    return int(checked_number(int(word), what)) if len(word) > 15 else int(word)


def count_of(fields: dict[str, Any], key: str, where: str, most: int) -> int:
    """Return the integer under `key`, from 1 to `most`."""
    value = fields.get(key)
    if type(value) is not int or not 1 <= value <= most:
        raise ModelError(f"{where}: '{key}' is {repr_of(value)}, expected an integer, 1 to {most}")
    return value


def ns_of(time: float, unit_ns: float, what: str) -> int:
    """Return `time` units of `unit_ns` as nanoseconds, rounded to the nearest."""
    ns = time * unit_ns
    if not math.isfinite(ns) or ns >= MOST_NS:
        raise ModelError(f"{what} is {time:g} x {unit_ns:g} ns; the longest time is 2^53 ns")
    return round(ns)


def bytes_of(size: float, what: str) -> int:
    """Return `size` as whole bytes, rounded up."""
    if size >= MOST_BYTES:
        raise ModelError(f"{what} is {size:g} bytes; the largest size is 2^60 bytes")
    return math.ceil(size)
