"""Offsets side by side: ours, minimalloc, idealloc, Vela's HillClimb, and greedy rules.

All get the same buffers with the same lifetimes; arenas are recomputed from the offsets where the
tool gives them. A tool that gives no answer in time has a row that says so. Seconds are CPU time
of one core (idealloc: of all its threads), so that a busy machine changes little.

Without files: made-up ones that fill their arena without a gap, so that the least arena is known.

Usage: python benchmarks/offsets.py [FILE.csv...] [--minimalloc PATH] [--idealloc PATH] [--vela]
           [--capacity BYTES] [--time 10] [--max-nodes N]
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from synthetic import write_puzzle

from regal._native import OffsetFault, OffsetGreedyRule, check_offsets, place_greedily
from regal.search.allocation_csv import BufferTable, read_buffers
from regal.search.offsets import FREE, allocate, native_problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


PUZZLES = (100, 400, 2_000)  # buffers


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One tool on one file."""

    tool: str
    arena_bytes: int  # 0: no answer
    seconds: float
    note: str = ""


def main() -> None:
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as folder:
        files = arguments.files or [write_puzzle(Path(folder), n) for n in PUZZLES]
        _compare(files, arguments)


def _compare(files: list[Path], arguments: argparse.Namespace) -> None:
    """Print the rows of all files, then the totals of each tool."""
    total: dict[str, list[Row]] = {}
    for path in files:
        table = read_buffers(path.read_bytes(), path.name)
        bound = allocate(*_columns(table), max_nodes=1).lower_bound
        print(f"{path.name}: {len(table.rows):,} buffers, most live bytes {bound:,}")
        for row in _rows(path, table, arguments):
            total.setdefault(row.tool, []).append(row)
            over = f"{100 * (row.arena_bytes / bound - 1):+.3f} %" if row.arena_bytes else "-"
            print(
                f"  {row.tool:<22}{row.arena_bytes:>18,}{over:>12}{row.seconds:>9.3f} s  {row.note}"
            )

    print(f"all {len(files)} files: answers, CPU seconds")
    most = arguments.capacity or 1 << 62
    for tool, rows in total.items():
        answers = sum(0 < row.arena_bytes <= most for row in rows)
        print(f"  {tool:<22}{answers:>4}{sum(row.seconds for row in rows):>11.3f} s")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--minimalloc", type=Path, help="its binary")
    parser.add_argument("--idealloc", type=Path, help="its binary")
    parser.add_argument("--vela", action="store_true", help="run ethosu.vela's allocator")
    parser.add_argument("--capacity", type=int, help="decide instead of minimizing")
    parser.add_argument("--time", type=float, default=10.0, help="wall seconds per tool")
    parser.add_argument("--max-nodes", type=int, default=0, help="of ours; 0: only the time counts")
    return parser.parse_args()


def _rows(path: Path, table: BufferTable, arguments: argparse.Namespace) -> Iterator[Row]:
    columns = _columns(table)
    started = time.process_time()
    outcome = allocate(
        *columns,
        capacity=arguments.capacity,
        max_nodes=arguments.max_nodes,
        seconds=arguments.time,
    )
    seconds = time.process_time() - started
    arena = _checked(columns, outcome.offsets) if outcome.is_placed else 0
    yield Row(tool="regal", arena_bytes=arena, seconds=seconds, note=outcome.status.value)
    for rule in OffsetGreedyRule:
        if rule is not OffsetGreedyRule.HINT:
            yield _greedy(columns, rule)
    if arguments.minimalloc:
        yield _minimalloc(path, columns, arguments)
    if arguments.idealloc:
        yield _idealloc(path, arguments)
    if arguments.vela:
        yield _vela(columns)


def _columns(
    table: BufferTable,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    rows = table.rows
    first = np.array([row.first_step for row in rows], dtype=np.int64)
    last = np.array([row.last_step for row in rows], dtype=np.int64)
    return first, last, np.array([row.bytes for row in rows], dtype=np.int64)


def _checked(
    columns: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    offsets: NDArray[np.int64],
) -> int:
    """Return the arena of legal offsets."""
    first, last, size = columns
    arena = int((offsets + size).max(initial=0))
    rows = np.ascontiguousarray(np.column_stack([first, last, size, offsets]))
    verdict = check_offsets(rows, arena)
    if verdict.fault != OffsetFault.NONE:
        raise SystemExit(f"illegal offsets: {verdict.fault} at {verdict.first}, {verdict.second}")
    return arena


def _greedy(
    columns: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    rule: OffsetGreedyRule,
) -> Row:
    fixed = np.full(columns[0].size, FREE)
    started = time.process_time()
    problem = native_problem(*columns, alignment=1, fixed=fixed)
    arenas = {
        fit: place_greedily(problem, rule, fit == "best").arena_bytes for fit in ("first", "best")
    }
    seconds = (time.process_time() - started) / 2
    fit = min(arenas, key=lambda name: arenas[name])
    name = f"greedy {rule.name.lower()}"
    return Row(tool=name, arena_bytes=arenas[fit], seconds=seconds, note=f"{fit} fit")


def _minimalloc(
    path: Path,
    columns: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    arguments: argparse.Namespace,
) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.csv"
        most = int(columns[2].sum())
        command = [
            str(arguments.minimalloc), f"--input={path}", f"--output={out}",
            f"--capacity={arguments.capacity or most}", f"--timeout={arguments.time}s",
            *([] if arguments.capacity else ["--minimize_capacity=true"]),
        ]  # fmt: skip
        started = _child_seconds()
        subprocess.run(command, capture_output=True, check=False)
        seconds = _child_seconds() - started
        if not out.exists():
            return Row(tool="minimalloc", arena_bytes=0, seconds=seconds, note="no answer")
        fixed = [row.fixed for row in read_buffers(out.read_bytes(), out.name).rows]
        arena = _checked(columns, np.array(fixed, dtype=np.int64))
    return Row(tool="minimalloc", arena_bytes=arena, seconds=seconds)


def _idealloc(path: Path, arguments: argparse.Namespace) -> Row:
    command = [str(arguments.idealloc), "-l", "5", "-i", str(path), "ex-csv"]
    started = _child_seconds()
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=20 * arguments.time
        )
    except subprocess.TimeoutExpired:
        return Row(tool="idealloc", arena_bytes=0, seconds=20 * arguments.time, note="no answer")
    seconds = _child_seconds() - started
    found = re.findall(r"Makespan:\s*(\d+)", done.stdout + done.stderr)
    arena = min((int(text) for text in found), default=0)
    return Row(tool="idealloc", arena_bytes=arena, seconds=seconds, note="its own number")


def _child_seconds() -> float:
    """Return the CPU seconds of all children so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _vela(columns: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]) -> Row:
    try:
        from ethosu.vela.hillclimb_allocation import HillClimbAllocator
    except ImportError:
        return Row(tool="vela hillclimb", arena_bytes=0, seconds=0, note="not installed")

    @dataclass
    class Range:
        start_time: int
        end_time: int
        size: int
        name: str = ""

        def overlaps_ranges(self, other: Range) -> bool:
            return max(self.start_time, other.start_time) <= min(self.end_time, other.end_time)

        def get_alignment(self) -> int:
            return 1

    # It keeps a list per time slot, so steps at which nothing changes are left out.
    first, last, size = columns
    times = np.unique(np.concatenate([first, last + 1]))
    slots = (np.searchsorted(times, first), np.searchsorted(times, last + 1) - 1)
    ranges = [Range(int(a), int(b), int(s)) for a, b, s in zip(*slots, size, strict=True)]
    started = time.process_time()
    offsets = HillClimbAllocator(ranges, 2000, 2**62).allocate()
    seconds = time.process_time() - started
    arena = _checked(columns, np.array(offsets, dtype=np.int64))
    return Row(tool="vela hillclimb 2,000", arena_bytes=arena, seconds=seconds)


if __name__ == "__main__":
    main()
