"""Run one cell: search, judge, and put everything into a row."""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from regal import __version__
from regal.errors import RegalError
from regal.evaluation.judge import judged
from regal.evaluation.rows import Row
from regal.evaluation.suite import weights_of
from regal.search.devices.objectives import objective_of
from regal.search.devices.outcomes import score_of
from regal.search.types import Budget

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.evaluation.cells import Cell
    from regal.evaluation.methods import MethodEntry
    from regal.evaluation.prepare import Prepared
    from regal.search.devices.objectives import Weights
    from regal.search.devices.types import DeviceMethod, DeviceOutcome, Objective

# What a method may fail with; each is a row. Anything else ends the process, which is one, too.
FAILURES = (
    RegalError, ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError,
    NotImplementedError, OSError, RuntimeError, TypeError, ValueError,
)  # fmt: skip
MOST_CHARACTERS = 300  # of a reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all rows of a run of a suite have in common."""

    suite: str
    is_tuning: bool
    threads: int
    weights: Weights
    commit: str
    machine: Mapping[str, Any]
    # Further methods by name, looked up before those of regal: to test the harness, or one's own.
    methods: Mapping[str, DeviceMethod]


def row_of(cell: Cell, prepared: Prepared, setting: Setting, seconds: float | None = None) -> Row:
    """Return the row of one run.

    Args:
        cell: what to run.
        prepared: its problem.
        setting: what is the same for all rows.
        seconds: the wall time that the budget stands for, where another run decided it.

    Cost: that of the method and the checker.
    """
    name, weights = weights_of(cell.objective, setting.weights)
    objective = objective_of(
        name,
        weights,
        before_time_ns=prepared.before_time_ns,
        before_peak_bytes=prepared.before_peak_bytes,
    )
    row = replace(
        asked_row(cell, setting, seconds),
        framework=cell.problem.source.framework or prepared.framework,
        ops=prepared.ops,
        n_devices=prepared.n_devices,
        bound=objective.value(prepared.time_bound_ns, prepared.peak_bound),
        time_bound_ns=prepared.time_bound_ns,
        peak_bound=prepared.peak_bound,
        optimum=_optimum(prepared, cell.objective),
        before=objective.value(prepared.before_time_ns, prepared.before_peak_bytes),
    )
    budget = Budget(evaluations=row.asked_evaluations, seconds=row.asked_seconds)
    began, began_cpu = time.perf_counter(), _cpu_seconds()
    try:
        method = _method(cell.method, setting)
        outcome = method(
            prepared.numbers, objective, budget, seed=cell.seed, threads=setting.threads
        )
    except FAILURES as error:
        took, cpu = time.perf_counter() - began, _cpu_seconds() - began_cpu
        return replace(
            row, failure=reason_of(error), seconds=round(took, 6), cpu_seconds=round(cpu, 6)
        )
    took, cpu = time.perf_counter() - began, _cpu_seconds() - began_cpu
    best, fell_back = _or_today(outcome, prepared, objective, cell.method)
    found = judged(
        prepared, objective, best,
        method=cell.method, budget=budget, cpu_seconds=cpu, threads=setting.threads,
    )  # fmt: skip
    bound = objective.value(
        max(prepared.time_bound_ns, outcome.time_bound_ns),
        max(prepared.peak_bound, outcome.peak_bound),
    )
    return replace(
        row,
        failure=found.failure,
        value=found.value,
        time_ns=found.time_ns,
        peak_bytes=found.peak_bytes,
        evaluations=outcome.evaluations,
        seconds=round(took, 6),
        cpu_seconds=round(cpu, 6),
        fell_back=fell_back,
        bound=bound,
        time_bound_ns=max(prepared.time_bound_ns, outcome.time_bound_ns),
        peak_bound=max(prepared.peak_bound, outcome.peak_bound),
        curve=tuple((p.evaluations, round(p.seconds, 6), p.value) for p in outcome.curve),
        note=outcome.note,
    )


def asked_row(cell: Cell, setting: Setting, seconds: float | None = None) -> Row:
    """Return the row of a run that has no result yet."""
    source, budget = cell.problem.source, cell.budget
    _, weights = weights_of(cell.objective, setting.weights)
    return Row(
        id=cell.id,
        suite=setting.suite,
        version=__version__,
        commit=setting.commit,
        machine=setting.machine,
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        graph=source.key,
        graph_hash=source.hash,
        family=source.family,
        framework=source.framework,
        split=source.split,
        ops=0,
        system=cell.problem.system,
        n_devices=0,
        objective=cell.objective,
        weights={"time": weights.time, "memory": weights.memory},
        method=cell.method.label,
        name=cell.method.name,
        options=cell.method.options,
        seed=cell.seed,
        threads=setting.threads,
        budget=budget.text,
        asked_evaluations=None if budget.seconds_of else budget.evaluations,
        asked_seconds=seconds if budget.seconds_of else budget.seconds,
    )


def failed_row(cell: Cell, setting: Setting, failure: str) -> Row:
    """Return the row of a run that could not be done."""
    return replace(asked_row(cell, setting), failure=failure)


def reason_of(error: BaseException) -> str:
    """Return one line: what a regal error says, or the kind of any other and what it says."""
    text = " ".join(str(error).split())[:MOST_CHARACTERS]
    return text if isinstance(error, RegalError) else f"{type(error).__name__}: {text}"


def _method(entry: MethodEntry, setting: Setting) -> DeviceMethod:
    return setting.methods.get(entry.name) or entry.method()


def _or_today(
    outcome: DeviceOutcome, prepared: Prepared, objective: Objective, method: MethodEntry
) -> tuple[DeviceOutcome, bool]:
    """Return what `regal optimize` returns: the "before" where our method finds nothing better."""
    if not method.keeps_before:
        return outcome, False
    today = score_of(prepared.today.figures, objective)
    if not today.is_better_than(score_of(outcome.figures, objective)):
        return outcome, False
    kept = replace(
        prepared.today,
        evaluations=outcome.evaluations,
        time_bound_ns=outcome.time_bound_ns,
        peak_bound=outcome.peak_bound,
    )
    return kept, True


def _optimum(prepared: Prepared, objective: str) -> float | None:
    known = {"time": prepared.least_time_ns, "memory": prepared.least_peak_bytes}.get(objective)
    return None if known is None else float(known)


def _cpu_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
