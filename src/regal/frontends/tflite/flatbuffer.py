"""Read flatbuffers from untrusted bytes: every offset is checked before it is followed.

A flatbuffer is a tree of tables. A table begins with a signed distance back to its vtable,
which lists where each field lies. Vectors and strings begin with their length. Distances to
children are unsigned: children always lie later in the file.

Source: the FlatBuffers binary format, https://flatbuffers.dev/internals.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from regal.errors import ModelError

_I32 = struct.Struct("<i")
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
_U16 = struct.Struct("<H")
_I8 = struct.Struct("<b")


class Reader:
    """The bytes of one file, and how much of them may still be visited.

    A hostile file can list the same table a million times. An honest one uses at least
    four bytes per thing it lists, so visits are limited to a quarter of its size.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._visits_left = len(data) // 4 + 16
        self._text_left = len(data) + 16
        self._texts: dict[int, str] = {}

    def root(self) -> Table:
        """Return the root table."""
        return self.table_at(self.follow(0))

    def follow(self, position: int) -> int:
        """Return the absolute target of the unsigned distance stored at `position`."""
        target = position + self.u32(position)
        if target + 4 > len(self.data):
            raise self.broken(f"the offset at byte {position} leads to byte {target}")
        return target

    def table_at(self, position: int) -> Table:
        """Return the table that begins at `position`."""
        self.visit(1)
        vtable = position - _I32.unpack_from(self.data, self.inside(position, 4))[0]
        if vtable < 0:
            raise self.broken(f"the table at byte {position} has its vtable at byte {vtable}")
        size = _U16.unpack_from(self.data, self.inside(vtable, 4))[0]
        self.inside(vtable, size)
        table_size = _U16.unpack_from(self.data, vtable + 2)[0]
        self.inside(position, table_size)
        return Table(self, position, vtable, size, table_size)

    def vector_at(self, position: int, element_bytes: int) -> tuple[int, int]:
        """Return first byte and element count of the vector that begins at `position`."""
        count = self.u32(position)
        self.inside(position + 4, count * element_bytes)
        return position + 4, count

    def text_at(self, position: int) -> str:
        """Return the string that begins at `position`; bytes that are not UTF-8 become U+FFFD."""
        known = self._texts.get(position)
        if known is None:
            start, count = self.vector_at(position, 1)
            self._text_left -= count
            if self._text_left < 0:
                raise self.broken("its strings overlap")
            known = self.data[start : start + count].decode("utf-8", "replace")
            self._texts[position] = known
        return known

    def u32(self, position: int) -> int:
        """Return the unsigned 32-bit number at `position`."""
        return int(_U32.unpack_from(self.data, self.inside(position, 4))[0])

    def visit(self, count: int) -> None:
        """Charge `count` things to the limit on visits."""
        self._visits_left -= count
        if self._visits_left < 0:
            raise self.broken("it lists more tables and numbers than its bytes can hold")

    def broken(self, what: str) -> ModelError:
        """Return the error for a file that breaks the format."""
        return ModelError(
            f"not a valid flatbuffer of {len(self.data)} bytes: {what};"
            " the file is truncated or corrupt"
        )

    def inside(self, position: int, size: int) -> int:
        """Return `position` if the file has `size` bytes there."""
        if position < 0 or position + size > len(self.data):
            raise self.broken(f"it needs bytes [{position}, {position + size})")
        return position


@dataclass(frozen=True, slots=True)
class Table:
    """One table; fields are read by their number in the schema."""

    reader: Reader
    position: int
    vtable: int
    vtable_bytes: int
    table_bytes: int

    def slot(self, field: int) -> int:
        """Return the absolute position of a field, or 0 when the table does not have it."""
        entry = 4 + 2 * field
        if entry + 2 > self.vtable_bytes:
            return 0
        offset = int(_U16.unpack_from(self.reader.data, self.vtable + entry)[0])
        if offset >= self.table_bytes and offset:
            raise self.reader.broken(
                f"field {field} of the table at byte {self.position} lies outside of it"
            )
        return self.position + offset if offset else 0

    def i8(self, field: int) -> int:
        """Return a signed byte; 0 when absent."""
        slot = self.slot(field)
        return int(_I8.unpack_from(self.reader.data, slot)[0]) if slot else 0

    def i32(self, field: int, default: int = 0) -> int:
        """Return a signed 32-bit number."""
        value = self.u32(field, default)
        return value - (1 << 32) if value >= 1 << 31 else value

    def u32(self, field: int, default: int = 0) -> int:
        """Return an unsigned 32-bit number."""
        slot = self.slot(field)
        return self.reader.u32(slot) if slot else default

    def u64(self, field: int) -> int:
        """Return an unsigned 64-bit number; 0 when absent."""
        slot = self.slot(field)
        if not slot:
            return 0
        start = self.reader.inside(slot, 8)
        return int(_U64.unpack_from(self.reader.data, start)[0])

    def text(self, field: int) -> str:
        """Return a string; empty when absent."""
        slot = self.slot(field)
        return self.reader.text_at(self.reader.follow(slot)) if slot else ""

    def table(self, field: int) -> Table | None:
        """Return a child table, if there is one."""
        slot = self.slot(field)
        return self.reader.table_at(self.reader.follow(slot)) if slot else None

    def vector(self, field: int, element_bytes: int) -> tuple[int, int]:
        """Return first byte and element count of a vector; (0, 0) when absent."""
        slot = self.slot(field)
        if not slot:
            return 0, 0
        return self.reader.vector_at(self.reader.follow(slot), element_bytes)

    def integers(self, field: int) -> tuple[int, ...]:
        """Return a vector of signed 32-bit numbers; empty when absent."""
        start, count = self.vector(field, 4)
        self.reader.visit(count)
        return struct.unpack_from(f"<{count}i", self.reader.data, start) if count else ()

    def tables(self, field: int) -> list[Table]:
        """Return a vector of tables; empty when absent."""
        start, count = self.vector(field, 4)
        self.reader.visit(count)
        follow, table_at = self.reader.follow, self.reader.table_at
        return [table_at(follow(start + 4 * i)) for i in range(count)]
