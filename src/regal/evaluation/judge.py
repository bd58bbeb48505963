"""Judge what a method returns: nothing becomes a result that the checker does not confirm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal.evaluation.methods import BUDGET_FREE

if TYPE_CHECKING:
    from regal._native import DeviceFigures
    from regal.evaluation.methods import MethodEntry
    from regal.evaluation.prepare import Prepared
    from regal.search.devices.types import DeviceOutcome, Objective
    from regal.search.types import Budget

TIE = 1e-9  # relative: values that are so close are equal
# A run may overdraw its seconds by so much: methods look at the clock between evaluations. CPU
# time counts, so that other work on the machine makes no failures.
SLACK, SLACK_SECONDS = 0.1, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgment:
    """What the checker says of a schedule, and why it is no result, if it is none."""

    time_ns: int = 0
    peak_bytes: int = 0
    value: float = 0.0
    failure: str = ""


def judged(
    prepared: Prepared,
    objective: Objective,
    outcome: DeviceOutcome,
    *,
    method: MethodEntry,
    budget: Budget,
    cpu_seconds: float,
    threads: int,
) -> Judgment:
    """Return the checker's figures of an outcome.

    It is a failure if the schedule breaks a rule or a memory, if its method states figures,
    bounds or a curve that are not true, or if it spent more than it was given.

    Cost: O((ops + uses + transfers) log).
    """
    in_place = np.ascontiguousarray(outcome.figures.in_place.reshape(-1, 3))
    verdict, true = _native.check_schedule(prepared.numbers.native, outcome.schedule, in_place)
    if verdict.fault is not _native.ScheduleFault.NONE:
        where = f"{verdict.first}, {verdict.second}"
        return Judgment(failure=f"illegal schedule: {verdict.fault.name} at {where}")
    value = objective.value(true.time, true.most)
    failure = (
        _untrue(outcome, true)
        or _overdrawn(outcome, method, budget, cpu_seconds, threads)
        or _impossible(prepared, outcome, true)
        or _untrue_curve(outcome, value)
        or (f"does not fit: {true.overflow:,} B above the memories" if true.overflow else "")
    )
    return Judgment(time_ns=true.time, peak_bytes=true.most, value=value, failure=failure)


def is_tie(a: float, b: float) -> bool:
    """Return whether two values are equal up to rounding."""
    return abs(a - b) <= TIE * max(abs(a), abs(b))


def _untrue(outcome: DeviceOutcome, true: DeviceFigures) -> str:
    """Return which figure the method states wrongly."""
    stated = outcome.figures
    for name, said, is_ in (
        ("time", stated.time, true.time),
        ("peak", stated.most, true.most),
        ("overflow", stated.overflow, true.overflow),
    ):
        if said != is_:
            return f"states the {name} {said:,}; the checker says {is_:,}"
    return ""


def _overdrawn(
    outcome: DeviceOutcome, method: MethodEntry, budget: Budget, cpu_seconds: float, threads: int
) -> str:
    """Return how far the method exceeded its budget."""
    if method.name in BUDGET_FREE:
        return ""
    asked = budget.evaluations
    if asked is not None and budget.seconds is None and outcome.evaluations == 0:
        return f"counts no evaluations, and was given {asked:,}; give it seconds"
    if asked is not None and outcome.evaluations > asked:
        return f"took {outcome.evaluations:,} evaluations, was given {asked:,}"
    if budget.seconds is not None:
        most = budget.seconds * threads * (1 + SLACK) + SLACK_SECONDS
        if cpu_seconds > most:
            return f"took {cpu_seconds:.2f} s of CPU time, was given {budget.seconds:g} s"
    return ""


def _impossible(prepared: Prepared, outcome: DeviceOutcome, true: DeviceFigures) -> str:
    """Return which bound or planted optimum the schedule contradicts."""
    for name, said, value in (
        ("time", outcome.time_bound_ns, true.time),
        ("peak", outcome.peak_bound, true.most),
    ):
        if said > value:
            return f"claims the {name} bound {said:,}, above its own {value:,}"
    for name, least, value in (
        ("time", prepared.least_time_ns, true.time),
        ("peak", prepared.least_peak_bytes, true.most),
    ):
        if least is not None and value < least:
            return f"{name} {value:,} is below the planted optimum {least:,}: a defect of regal"
    return ""


def _untrue_curve(outcome: DeviceOutcome, value: float) -> str:
    """Return where the curve of a run is better than its result, or goes back."""
    for before, after in zip(outcome.curve, outcome.curve[1:], strict=False):
        if after.value > before.value or after.evaluations < before.evaluations:
            return f"its curve goes back at {after.evaluations:,} evaluations"
    if outcome.curve:
        best = outcome.curve[-1].value
        if best < value and not is_tie(best, value):
            return f"its curve ends at {best:g}, its schedule has {value:g}"
    return ""
