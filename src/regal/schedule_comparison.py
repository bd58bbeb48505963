"""All methods for several devices on one model: same problem, same budget, same checker."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from regal.devices.file import system_to_dict
from regal.errors import RegalError
from regal.plan.schedule_check import require_valid_model_schedule
from regal.scheduling import costs_of, schedule_before, search_schedule
from regal.search.devices.methods import DEVICE_METHODS, require_device_method
from regal.search.devices.objectives import objective_of
from regal.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.cost.types import GraphCost
    from regal.devices.types import System
    from regal.graph.types import LoadedModel
    from regal.options import Options
    from regal.plan.schedule import ModelSchedule
    from regal.schedule_result import ScheduleResult

SCHEMA = "regal.comparison/1"
DEFAULT_EVALUATIONS = 5_000  # of each method, where the caller sets no limit
# Solvers end by the clock: they count few evaluations, or none, and each takes long.
SOLVERS = ("cp-sat", "window-polish")
SOLVER_SECONDS = 5.0
LEARNING_EVALUATIONS = 500  # learning on one graph takes about 20 ms of each
# What a report compares a result with: no search, 0.3 s of each for 2,500 ops.
RULES = ("single-device", "round-robin", "m-topo", "m-etf", "etf", "heft", "cpop", "peft")
MOST_RULED_OPS = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRow:
    """What one method reached; `value` is the objective relative to the best method's."""

    method: str
    time_ns: int = 0
    peak_bytes: int = 0
    overflow_bytes: int = 0
    value: float = 0.0
    time_bound_ns: int = 0
    peak_bound: int = 0
    evaluations: int = 0
    seconds: float = 0.0
    failure: str = ""


def compare_schedules(
    model: LoadedModel, system: System, names: Sequence[str] | None, options: Options
) -> list[ScheduleRow]:
    """Return one row per method, best first; a method that fails is a row, too.

    Without a limit every method gets DEFAULT_EVALUATIONS.

    Raises:
        UsageError: a name is not a method.
    """
    if options.evaluations is None and options.seconds is None:
        options = replace(options, evaluations=DEFAULT_EVALUATIONS)
    names = [require_device_method(name) for name in (names or DEVICE_METHODS)]
    costs = costs_of(model, system, options.profiles)
    before = schedule_before(model, system, costs)
    today = _row("before", before, before, options, 0.0)
    return _ranked([today, *(_method_row(model, system, costs, before, n, options) for n in names)])


def compare_with_rules(result: ScheduleResult, options: Options) -> dict[str, Any] | None:
    """Return the JSON object of a comparison of a result with rules that need no search.

    None: the graph has more than MOST_RULED_OPS ops, for which that takes too long.
    """
    if max(len(graph.ops) for graph in result.model.entries) > MOST_RULED_OPS:
        return None
    model, plan, before = result.model, result.plan, result.before
    names = [name for name in RULES if name != plan.method]
    rows = [
        _row("before", before, before, options, 0.0),
        _row(plan.method, plan, before, options, result.seconds),
        *(_method_row(model, plan.system, result.costs, before, n, options) for n in names),
    ]
    path = str(result.path)
    return schedule_comparison_to_dict(path, model, plan.system, _ranked(rows), options)


def _ranked(rows: Sequence[ScheduleRow]) -> list[ScheduleRow]:
    """Return the rows best first, with the best bounds and values relative to the best method."""
    time_bound = max((row.time_bound_ns for row in rows), default=0)
    memory_bound = max((row.peak_bound for row in rows), default=0)
    best = min((row.value for row in rows if not row.failure), default=0.0)
    rows = [
        replace(
            row,
            time_bound_ns=time_bound,
            peak_bound=memory_bound,
            value=row.value / best if best else 1.0,
        )
        for row in rows
    ]
    return sorted(
        rows,
        key=lambda row: (
            bool(row.failure),
            row.overflow_bytes,
            row.value,
            row.time_ns,
            row.peak_bytes,
        ),
    )


def _method_row(
    model: LoadedModel,
    system: System,
    costs: Sequence[GraphCost],
    before: ModelSchedule,
    name: str,
    options: Options,
) -> ScheduleRow:
    started = time.perf_counter()
    options = replace(options, method=name)
    if name in SOLVERS and options.seconds is None:
        options = replace(options, seconds=SOLVER_SECONDS)
    if name == "graph-as-sequence" and options.evaluations == DEFAULT_EVALUATIONS:
        options = replace(options, evaluations=LEARNING_EVALUATIONS)
    try:
        plan = search_schedule(model, system, costs, before, options)
        require_valid_model_schedule(model, costs, plan)
    except RegalError as error:
        return ScheduleRow(method=name, failure=str(error))
    return _row(name, plan, before, options, time.perf_counter() - started)


def _row(
    name: str, plan: ModelSchedule, before: ModelSchedule, options: Options, seconds: float
) -> ScheduleRow:
    objective = objective_of(
        options.objective,
        options.weights,
        before_time_ns=before.time_ns,
        before_peak_bytes=before.peak_bytes,
    )
    return ScheduleRow(
        method=name,
        time_ns=plan.time_ns,
        peak_bytes=plan.peak_bytes,
        overflow_bytes=plan.overflow_bytes,
        value=objective.value(plan.time_ns, plan.peak_bytes),
        time_bound_ns=plan.time_bound_ns,
        peak_bound=plan.peak_bound,
        evaluations=plan.evaluations,
        seconds=seconds,
    )


def schedule_comparison_to_dict(
    path: str,
    model: LoadedModel,
    system: System,
    rows: Sequence[ScheduleRow],
    options: Options,
) -> dict[str, Any]:
    """Return the JSON object of a comparison on several devices."""
    return {
        "schema": SCHEMA,
        "model": path,
        "framework": model.framework,
        "ops": len(model.graph.ops),
        "objective": options.objective,
        "devices": system_to_dict(system)["devices"],
        "seed": options.seed,
        "lower_bound": {
            "peak_bytes": max((row.peak_bound for row in rows), default=0),
            "time_s": max((row.time_bound_ns for row in rows), default=0) / NS_PER_S,
        },
        "methods": [_row_to_dict(row) for row in rows],
    }


def _row_to_dict(row: ScheduleRow) -> dict[str, Any]:
    if row.failure:
        return {"method": row.method, "failure": row.failure}
    return {
        "method": row.method,
        "time_s": row.time_ns / NS_PER_S,
        "peak_bytes": row.peak_bytes,
        "overflow_bytes": row.overflow_bytes,
        "relative": row.value,
        "evaluations": row.evaluations,
        "seconds": round(row.seconds, 6),
    }
