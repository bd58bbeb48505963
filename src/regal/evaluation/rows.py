"""A row: one run of one method on one problem, and everything that is needed to judge it."""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from regal.errors import UsageError
from regal.files import read_file, write_atomically
from regal.records import json_of, kinds_of, misfit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

SCHEMA = "regal.row/1"
PACKED_SUFFIX = ".gz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One run. What comes after `failure` is 0 where that says why there is no result."""

    id: str  # hash of what was asked: equal = the same run
    suite: str
    # The program and the machine.
    version: str
    commit: str  # with "+" where files were changed; "": not a checkout
    machine: Mapping[str, Any]
    when: str  # UTC
    # What was asked.
    graph: str
    graph_hash: str
    family: str
    framework: str
    split: str  # of the data set; "file" or "planted" for others
    ops: int
    system: str
    n_devices: int
    objective: str
    weights: Mapping[str, float]
    method: str  # its label
    name: str
    options: Mapping[str, str]
    seed: int
    threads: int
    budget: str  # in words; tables group by it
    asked_evaluations: int | None
    asked_seconds: float | None
    # What came back. Values are in the unit of the objective; lower is better.
    failure: str = ""
    value: float = 0.0
    time_ns: int = 0
    peak_bytes: int = 0
    evaluations: int = 0
    seconds: float = 0.0  # wall time of the method
    cpu_seconds: float = 0.0  # of all its threads and child processes
    fell_back: bool = False  # the method found nothing better than the "before"
    bound: float = 0.0  # proven: no schedule has a lower value
    time_bound_ns: int = 0
    peak_bound: int = 0
    optimum: float | None = None  # where it is known beforehand
    before: float = 0.0  # value of everything on the first device, in file order
    # [evaluations, seconds, value], better and better; empty: the method keeps none.
    curve: tuple[tuple[int, float, float], ...] = field(default=())
    note: str = ""

    @property
    def problem(self) -> tuple[str, str, str, str]:
        """Return what rows that may be compared have in common, but for seed and budget."""
        return (self.graph, self.graph_hash, self.system, self.objective)


def row_to_json(row: Row) -> str:
    """Return the line of a row file."""
    return json.dumps({"schema": SCHEMA, **asdict(row)}, separators=(",", ":")) + "\n"


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file; a last line that a crash cut off is left out.

    Raises:
        UsageError: the file is missing, or a line is not a row.
    """
    return _rows_of(read_file(path, "row file"), str(path))


def packed(path: Path) -> Path:
    """Return where the packed rows of a row file are, if they are."""
    return path.with_name(path.name + PACKED_SUFFIX)


def has_rows(path: Path) -> bool:
    """Return whether there is a row file, packed or not."""
    return path.exists() or packed(path).exists()


def all_rows(path: Path) -> list[Row]:
    """Return the rows of a row file, packed ones first; of equal ids the last one counts.

    Raises:
        UsageError: there is neither, or a line is not a row.
    """
    own = packed(path)
    if not own.exists():
        return newest(read_rows(path))
    try:
        text = gzip.decompress(read_file(own, "row file"))
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"row file '{own}' cannot be unpacked: {error}") from None
    rows = _rows_of(text, str(own))
    return newest([*rows, *(read_rows(path) if path.exists() else [])])


def pack(path: Path) -> Path:
    """Pack the rows of a row file beside it, remove the file, and return where they are.

    Equal rows make equal bytes. Eight thousand rows are 8 MB, packed 0.5 MB.
    """
    own = packed(path)
    text = "".join(map(row_to_json, all_rows(path))).encode()
    write_atomically(own, gzip.compress(text, compresslevel=9, mtime=0))
    path.unlink(missing_ok=True)
    return own


def newest(rows: Iterable[Row]) -> list[Row]:
    """Return the rows without those that a later row with the same id replaced."""
    return list({row.id: row for row in rows}.values())


def _rows_of(data: bytes, path: str) -> list[Row]:
    lines = data.decode(errors="replace").splitlines(keepends=True)
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            document = json_of(line)
        except ValueError:
            if number == len(lines) and not line.endswith("\n"):
                break
            raise UsageError(f"row file '{path}', line {number}: not JSON") from None
        rows.append(_row_of(document, f"row file '{path}', line {number}"))
    return rows


def _row_of(document: object, where: str) -> Row:
    if not isinstance(document, dict) or document.pop("schema", None) != SCHEMA:
        raise UsageError(f"{where}: not a row of '{SCHEMA}'")
    wrong = misfit(document, KINDS)
    if wrong:
        raise UsageError(f"{where}: {wrong}")
    try:
        points = tuple((int(n), float(s), float(v)) for n, s, v in document.pop("curve"))
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"{where}: 'curve' has more than points of three numbers") from None
    return Row(**document, curve=points)


KINDS: Final = kinds_of(Row)
