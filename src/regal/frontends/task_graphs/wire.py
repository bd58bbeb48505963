"""Look at protobuf bytes without knowing their schema, to tell what they are."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MOST_FIELDS = 10_000  # per level that is looked at


def holds_hlo_module(data: bytes) -> bool:
    """Return whether a protobuf file is an HLO module, or a message that begins with one.

    Looks at the first two levels of the wire format only. What tells a module from the nodes of
    a TensorFlow `GraphDef`, which begins alike, are its ids: numbers in fields 5 and 6.
    """
    level = memoryview(data)
    for _ in range(3):
        fields = list(islice(_wire_fields(level), MOST_FIELDS))
        numbers = {(number, kind) for number, kind, _ in fields}
        if {(1, BYTES), (3, BYTES), (6, VARINT)} <= numbers:
            return True
        first = next(
            (value for number, kind, value in fields if (number, kind) == (1, BYTES)), None
        )
        if first is None or fields[0][0] != 1:
            return False
        level = first
    return False


def _wire_fields(data: memoryview) -> Iterator[tuple[int, int, memoryview]]:
    """Yield (field, wire type, payload) until the data end or stop making sense."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        start = at
        if kind == VARINT:
            _, at = _varint(data, at)
        elif kind == FIXED64:
            at += 8
        elif kind == BYTES:
            size, start = _varint(data, at)
            at = start + size
        elif kind == FIXED32:
            at += 4
        else:
            return
        if number == 0 or start < 0 or at > len(data) or at <= 0:
            return
        yield number, kind, data[start:at]


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """Return a number and where the next thing begins; -1 past the end of the data."""
    value = 0
    for shift in range(0, 70, 7):
        if not 0 <= at < len(data):
            return 0, -1
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    return 0, -1
