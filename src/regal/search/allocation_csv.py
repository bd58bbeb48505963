"""Read and write the buffer lists of google/minimalloc, and place them: `regal allocate`."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regal.errors import ModelError
from regal.files import read_file
from regal.search.offsets import FREE, AllocationOutcome, AllocationStatus, allocate, default_nodes
from regal.search.windowed_buffers import Piece, WindowedBuffer, place_windowed

if TYPE_CHECKING:
    from pathlib import Path

    from regal._native import Cancel

# What minimalloc accepts as the name of each column.
_NAMES = {
    "id": "id", "buffer": "id", "buffer_id": "id",
    "lower": "lower", "begin": "lower", "start": "lower",
    "upper": "upper", "end": "end",
    "size": "size", "alignment": "alignment", "hint": "hint", "gaps": "gaps", "offset": "offset",
}  # fmt: skip
_LARGEST = 2**61  # a step or a byte count


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """When a buffer is inactive. With a window it still uses the bytes [low, high) of itself."""

    first_step: int
    last_step: int  # included
    window: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferRow:
    """One buffer of the file. Steps are inclusive, whatever the file says."""

    id: str
    first_step: int
    last_step: int
    bytes: int
    alignment: int = 1
    hint: int = FREE
    gaps: tuple[Gap, ...] = ()
    fixed: int = FREE


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferTable:
    """A buffer list as read."""

    rows: tuple[BufferRow, ...]
    is_inclusive: bool  # the old form: the last step is in a column `end`


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocateRun:
    """What `regal allocate` prints and writes."""

    n_buffers: int
    capacity: int | None
    outcome: AllocationOutcome
    reason: str  # why it does not fit, or what remains unknown; else empty
    csv_text: str  # the rows with their offsets; empty if there are none
    seed: int
    seconds: float

    @property
    def fits(self) -> bool:
        """Return whether every buffer has an offset, below the capacity if there is one."""
        return self.csv_text != ""

    def to_dict(self) -> dict[str, str | int | float | None]:
        """Return the facts for `--json`."""
        return {
            "schema": "regal.allocation/1",
            "status": self.outcome.status.value,
            "buffers": self.n_buffers,
            "capacity": self.capacity,
            "arena_bytes": self.outcome.arena_bytes,
            "lower_bound": self.outcome.lower_bound,
            "reason": self.reason,
            "nodes": self.outcome.nodes,
            "seed": self.seed,
            "seconds": round(self.seconds, 6),
        }


def run_allocate(
    path: Path,
    *,
    capacity: int | None = None,
    seed: int = 0,
    max_nodes: int | None = None,
    seconds: float | None = None,
    cancel: Cancel | None = None,
) -> AllocateRun:
    """Return offsets for the buffers in a CSV file, and the text of the file that states them.

    Args:
        path: the file; `read_buffers` says what it may hold.
        capacity: bytes below which everything must end; None: minimize.
        seed: of all random choices.
        max_nodes: of the search. None without `seconds`: enough for some seconds.
        seconds: of wall time.
        cancel: ends the search from another thread.

    Raises:
        UsageError: the file does not exist or cannot be read.
        ModelError: the file is not a buffer list; one line with row and value.
    """
    table = read_buffers(read_file(path, "file"), path.name)
    if max_nodes is None:
        max_nodes = 0 if seconds is not None else _patient_nodes(len(table.rows))
    started = time.perf_counter()
    outcome = place_table(
        table, capacity=capacity, seed=seed, max_nodes=max_nodes, seconds=seconds, cancel=cancel
    )
    text = ""
    if outcome.is_placed:
        text = write_buffers(table, [int(offset) for offset in outcome.offsets])
    return AllocateRun(
        n_buffers=len(table.rows),
        capacity=capacity,
        outcome=outcome,
        reason=_reason(outcome, table, capacity),
        csv_text=text,
        seed=seed,
        seconds=time.perf_counter() - started,
    )


def place_table(
    table: BufferTable,
    *,
    capacity: int | None,
    seed: int = 0,
    max_nodes: int | None = None,
    seconds: float | None = None,
    cancel: Cancel | None = None,
) -> AllocationOutcome:
    """Return offsets for the rows of a table; see `allocate` for the arguments."""
    rows = table.rows
    if any(gap.window for row in rows for gap in row.gaps):
        buffers = [_windowed(row) for row in rows]
        return place_windowed(
            buffers, capacity=capacity, max_nodes=max_nodes, seconds=seconds, cancel=cancel
        )
    return allocate(
        np.array([row.first_step for row in rows], dtype=np.int64),
        np.array([row.last_step for row in rows], dtype=np.int64),
        np.array([row.bytes for row in rows], dtype=np.int64),
        alignment=np.array([row.alignment for row in rows], dtype=np.int64),
        capacity=capacity,
        fixed=np.array([row.fixed for row in rows], dtype=np.int64),
        hints=np.array([row.hint for row in rows], dtype=np.int64),
        gaps=[(i, gap.first_step, gap.last_step) for i, row in enumerate(rows) for gap in row.gaps],
        seed=seed,
        max_nodes=max_nodes,
        seconds=seconds,
        cancel=cancel,
    )


def read_buffers(data: bytes, name: str) -> BufferTable:
    """Return the buffers of a CSV file.

    A header names the columns, in any order: `id`, `lower`, `upper`, `size`, and optionally
    `alignment`, `hint` (-1: none), `gaps` and `offset` (fixed; -1: free). Steps are
    half-open: a buffer is live in [lower, upper). In the old form `start` and `end` replace
    them, and `end` is included. Gaps are separated by spaces, each "from-to" or
    "from-to@low:high". An empty field of an optional column says nothing. Like minimalloc,
    reading stops at the first empty line.

    Raises:
        ModelError: names the row (1 = the first after the header), the column and the value.
    """
    try:
        lines = data.decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        raise ModelError(f"{name}: byte {error.start} is not text, expected a CSV file") from None
    if "" in lines:
        lines = lines[: lines.index("")]
    if not lines:
        raise ModelError(f"{name}: the file is empty, expected a header with id,lower,upper,size")
    columns = _columns(lines[0], name)
    rows = [
        _Reader(name, number, line, columns).buffer()
        for number, line in enumerate(lines[1:], start=1)
    ]
    if sum(row.bytes + row.alignment * 2 + max(row.fixed, 0) for row in rows) > _LARGEST:
        raise ModelError(f"{name}: the sizes, offsets and alignments add up to more than 2^61")
    return BufferTable(rows=tuple(rows), is_inclusive="end" in columns)


def write_buffers(table: BufferTable, offsets: list[int]) -> str:
    """Return the CSV text of the rows with their offsets, in the columns minimalloc writes."""
    rows = table.rows
    is_aligned = any(row.alignment != 1 for row in rows)
    is_hinted = any(row.hint != FREE for row in rows)
    has_gaps = any(row.gaps for row in rows)
    lines = [
        ["id", *(("start", "end") if table.is_inclusive else ("lower", "upper")), "size"]
        + ["alignment"] * is_aligned
        + ["hint"] * is_hinted
        + ["gaps"] * has_gaps
        + ["offset"]
    ]
    ahead = 0 if table.is_inclusive else 1
    for row, offset in zip(rows, offsets, strict=True):
        gaps = " ".join(_gap_text(gap, ahead) for gap in row.gaps)
        lines.append(
            [row.id, str(row.first_step), str(row.last_step + ahead), str(row.bytes)]
            + [str(row.alignment)] * is_aligned
            + [str(row.hint)] * is_hinted
            + [gaps] * has_gaps
            + [str(offset)]
        )
    return "".join(",".join(line) + "\n" for line in lines)


def _gap_text(gap: Gap, ahead: int) -> str:
    text = f"{gap.first_step}-{gap.last_step + ahead}"
    return text if gap.window is None else f"{text}@{gap.window[0]}:{gap.window[1]}"


def _columns(header: str, name: str) -> dict[str, int]:
    columns: dict[str, int] = {}
    for position, text in enumerate(header.split(",")):
        column = _NAMES.get(text.strip())
        if column is None:
            known = ", ".join(sorted(_NAMES))
            raise ModelError(f"{name}: unknown column '{text}'; known columns: {known}")
        if column in columns or {column, *columns} >= {"upper", "end"}:
            raise ModelError(f"{name}: column '{text}' states '{column}' a second time")
        columns[column] = position
    last = "end" if "end" in columns else "upper"
    missing = [column for column in ("id", "lower", last, "size") if column not in columns]
    if missing:
        raise ModelError(f"{name}: column '{missing[0]}' is missing, expected id,lower,upper,size")
    return columns


@dataclass(frozen=True, slots=True)
class _Reader:
    """One line of the file, with what its errors must name."""

    file: str
    number: int
    line: str
    columns: dict[str, int]

    def buffer(self) -> BufferRow:
        fields = self.line.split(",")
        if len(fields) != len(self.columns):
            raise self.error(f"has {len(fields)} fields, expected {len(self.columns)}")
        behind = 0 if "end" in self.columns else 1
        row = BufferRow(
            id=fields[self.columns["id"]],
            first_step=self.integer(fields, "lower"),
            last_step=self.integer(fields, "upper" if behind else "end") - behind,
            bytes=self.integer(fields, "size"),
            alignment=self.integer(fields, "alignment", default=1),
            hint=max(self.integer(fields, "hint", default=FREE), FREE),
            fixed=self.integer(fields, "offset", default=FREE),
            gaps=self.gaps(fields, behind),
        )
        self.require_sound(row)
        return row

    def integer(self, fields: list[str], column: str, default: int | None = None) -> int:
        if default is None:
            return self.number_in(fields[self.columns[column]], column)
        if column not in self.columns or not fields[self.columns[column]].strip():
            return default
        return self.number_in(fields[self.columns[column]], column)

    def number_in(self, text: str, column: str) -> int:
        digits = text.strip()
        is_number = digits.removeprefix("-").isascii() and digits.removeprefix("-").isdigit()
        if not is_number or len(digits) > 20 or abs(int(digits)) > _LARGEST:
            raise self.error(f"{column} '{text}' is not a whole number below 2^61")
        return int(digits)

    def gaps(self, fields: list[str], behind: int) -> tuple[Gap, ...]:
        if "gaps" not in self.columns:
            return ()
        return tuple(self.gap(text, behind) for text in fields[self.columns["gaps"]].split())

    def gap(self, text: str, behind: int) -> Gap:
        steps, at, window = text.partition("@")
        first, minus, last = steps.partition("-")
        low, colon, high = window.partition(":")
        if not minus or bool(at) != bool(colon):
            raise self.error(f"gap '{text}' is not of the form 3-7 or 3-7@0:64")
        return Gap(
            first_step=self.number_in(first, "gaps"),
            last_step=self.number_in(last, "gaps") - behind,
            window=(self.number_in(low, "gaps"), self.number_in(high, "gaps")) if at else None,
        )

    def require_sound(self, row: BufferRow) -> None:
        if row.first_step > row.last_step:
            end = self.line.split(",")[self.columns.get("end", self.columns.get("upper", 0))]
            raise self.error(
                f"ends at {end.strip()}, which is not after its start {row.first_step}"
            )
        if row.bytes < 0:
            raise self.error(f"size {row.bytes} is negative")
        if row.alignment < 1:
            raise self.error(f"alignment {row.alignment} is not 1 or more")
        if row.fixed < FREE or (row.fixed != FREE and row.fixed % row.alignment != 0):
            raise self.error(f"offset {row.fixed} is no multiple of its alignment {row.alignment}")
        end_of_latest = row.first_step - 1
        for gap in sorted(row.gaps, key=lambda gap: gap.first_step):
            if not end_of_latest < gap.first_step <= gap.last_step <= row.last_step:
                raise self.error(
                    f"gap of steps {gap.first_step} to {gap.last_step} is empty, outside the"
                    " lifetime, or overlaps another gap"
                )
            if gap.window and not 0 <= gap.window[0] < gap.window[1] <= row.bytes:
                raise self.error(
                    f"window {gap.window[0]}:{gap.window[1]} is empty or outside the size"
                    f" {row.bytes}"
                )
            end_of_latest = gap.last_step

    def error(self, text: str) -> ModelError:
        return ModelError(f"{self.file}: row {self.number} {text}")


def _windowed(row: BufferRow) -> WindowedBuffer:
    """Return the row as pieces: whole outside its gaps, windows inside."""
    pieces: list[Piece] = []
    first = row.first_step
    for gap in sorted(row.gaps, key=lambda gap: gap.first_step):
        if first < gap.first_step:
            pieces.append(
                Piece(first_step=first, last_step=gap.first_step - 1, low=0, high=row.bytes)
            )
        if gap.window is not None:
            low, high = gap.window
            pieces.append(
                Piece(first_step=gap.first_step, last_step=gap.last_step, low=low, high=high)
            )
        first = gap.last_step + 1
    if first <= row.last_step:
        pieces.append(Piece(first_step=first, last_step=row.last_step, low=0, high=row.bytes))
    if row.bytes == 0:
        pieces = []
    return WindowedBuffer(
        bytes=row.bytes, pieces=tuple(pieces), alignment=row.alignment, fixed=row.fixed
    )


def _patient_nodes(n_buffers: int) -> int:
    """Return a node limit of some seconds: fixed, so that the answer repeats."""
    return 60 * default_nodes(n_buffers)


def _reason(outcome: AllocationOutcome, table: BufferTable, capacity: int | None) -> str:
    if outcome.status is AllocationStatus.INFEASIBLE:
        if outcome.clashing:
            a, b = (table.rows[i] for i in outcome.clashing)
            return (
                f"buffer '{a.id}' fixed at bytes [{a.fixed}, {a.fixed + a.bytes}) overlaps"
                f" '{b.id}' fixed at [{b.fixed}, {b.fixed + b.bytes})"
            )
        if capacity is None:
            return "two buffers with fixed offsets overlap"
        if outcome.fullest_bytes > capacity:
            return (
                f"capacity {capacity:,} B: buffers live at step {outcome.fullest_step} need"
                f" {outcome.fullest_bytes:,} B"
            )
        return (
            f"capacity {capacity:,} B: no placement exists, although at most"
            f" {outcome.fullest_bytes:,} B are live at once (step {outcome.fullest_step})"
        )
    if outcome.status is AllocationStatus.LIMIT:
        if capacity is None:
            return (
                f"not proven: the least arena is between {outcome.lower_bound:,} and"
                f" {outcome.arena_bytes:,} B"
            )
        return (
            f"capacity {capacity:,} B: neither fitted nor refuted within the limits; the"
            f" smallest arena found is {outcome.arena_bytes:,} B"
        )
    return ""
