"""Run a suite: what has no row yet is run in worker processes, and every run becomes a row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from regal.evaluation.cells import cells_of, problems_of
from regal.evaluation.graphs import sources_of
from regal.evaluation.methods import found_in
from regal.evaluation.prepare import prepared
from regal.evaluation.provenance import commit, load, machine
from regal.evaluation.rows import all_rows, has_rows, newest, read_rows, row_to_json
from regal.evaluation.runs import FAILURES, Setting, failed_row, reason_of, row_of
from regal.evaluation.suite import TUNING
from regal.evaluation.workers import run_batches
from regal.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from regal.evaluation.cells import Cell, Problem
    from regal.evaluation.rows import Row
    from regal.evaluation.suite import Suite
    from regal.search.devices.types import DeviceMethod


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A cell, and the run that decides the wall time that its budget stands for, if one does."""

    cell: Cell
    decided_by: str = ""  # id of the deciding run; it comes earlier
    seconds: float | None = None  # that it took, if it has a row


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """Where graphs are: the data set, and what paths of files are relative to."""

    data: Path
    files: tuple[Path, ...] = ()
    policies: tuple[Path, ...] = ()  # for methods whose policy is NAME.onnx


def run_suite(
    suite: Suite,
    rows_file: Path,
    folders: Folders,
    *,
    workers: int = 1,
    retry: bool = False,
    methods: Mapping[str, DeviceMethod] | None = None,
    told: Callable[[int, int], None] | None = None,
) -> list[Row]:
    """Return one row per run of a suite; those that were not in `rows_file` are run and added.

    Args:
        suite: what to run.
        rows_file: JSON lines; it is made if need be. Rows of other runs in it stay untouched, and
            those that are packed beside it count, too.
        folders: where graphs are.
        workers: processes at the same time.
        retry: run again what failed.
        methods: further methods by name; they must be importable in another process.
        told: is called with the number of rows that are there, and of all.

    Raises:
        UsageError: the suite names no graph or one it must not, or the rows cannot be read.
    """
    entries = tuple(found_in(entry, folders.policies) for entry in suite.methods)
    suite = replace(suite, methods=entries)
    sources = sources_of(suite, data=folders.data, files=folders.files)
    cells = [cell for problem in problems_of(suite, sources) for cell in cells_of(suite, problem)]
    rows = {row.id: row for row in _known(rows_file, retry=retry)}
    setting = Setting(
        suite=suite.name,
        is_tuning=suite.purpose == TUNING,
        threads=suite.threads,
        weights=suite.weights,
        commit=commit(),
        machine={**machine(), "workers": workers},
        methods=methods or {},
    )
    runs = {_run_key(cell): cell.id for cell in cells if not cell.budget.seconds_of}
    done = sum(cell.id in rows for cell in cells)
    batches: dict[Problem, list[Task]] = {}
    for cell in cells:
        if cell.id not in rows:
            batches.setdefault(cell.problem, []).append(_task(cell, runs))
    found = run_batches(
        batches.values(),
        partial(_work, setting=setting, folders=folders),
        partial(_failed, setting=setting),
        workers=workers,
        limit_seconds=suite.limit_seconds,
        fresh=partial(_decided, rows=rows),
    )
    for _, row in found:
        with rows_file.open("a") as file:
            file.write(row_to_json(row))
        rows[row.id] = row
        done += 1
        if told is not None:
            told(done, len(cells))
    return [rows[cell.id] for cell in cells]


def _known(path: Path, *, retry: bool) -> list[Row]:
    """Return the rows that are there, and leave the file so that rows can be added to it."""
    if path.exists():
        rows = [row for row in newest(read_rows(path)) if not (retry and row.failure)]
        text = "".join(map(row_to_json, rows)).encode()
        if text != path.read_bytes():  # a row was cut off, replaced, or is to be tried again
            write_atomically(path, text)
    elif not has_rows(path):
        return []
    return [row for row in all_rows(path) if not (retry and row.failure)]


def _run_key(cell: Cell) -> tuple[object, ...]:
    """Return what a budget names when it refers to the time of another run."""
    evaluations = cell.budget.evaluations
    return (cell.problem, cell.objective, cell.seed, cell.method.label, evaluations)


def _task(cell: Cell, runs: Mapping[tuple[object, ...], str]) -> Task:
    rule = cell.budget
    if not rule.seconds_of:
        return Task(cell=cell)
    key = (cell.problem, cell.objective, cell.seed, rule.seconds_of, rule.evaluations)
    return Task(cell=cell, decided_by=runs[key])


def _decided(task: Task, rows: Mapping[str, Row]) -> Task:
    """Return the task with the time of the run that decides it, if that is known and good."""
    row = rows.get(task.decided_by)
    return task if row is None or row.failure else replace(task, seconds=row.seconds)


def _failed(task: Task, reason: str, setting: Setting) -> Row:
    return failed_row(task.cell, setting, reason)


def _work(tasks: Sequence[Task], setting: Setting, folders: Folders) -> Iterator[Row | None]:
    """Yield the rows of one problem; None once it is prepared."""
    try:
        problem = prepared(tasks[0].cell.problem, is_tuning=setting.is_tuning, data=folders.data)
    except FAILURES as error:
        for task in tasks:
            yield failed_row(task.cell, setting, reason_of(error))
        return
    yield None
    rows: dict[str, Row] = {}
    for waiting in tasks:
        task = _decided(waiting, rows)
        if task.decided_by and task.seconds is None:
            reason = f"the run of '{task.cell.budget.seconds_of}' that decides its time failed"
            yield failed_row(task.cell, setting, reason)
            continue
        row = row_of(task.cell, problem, setting, task.seconds)
        row = replace(row, machine={**row.machine, "load": load()})
        rows[row.id] = row
        yield row
