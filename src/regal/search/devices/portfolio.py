"""The default method for several devices: bounds, heuristics, then annealing of placements."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from regal import _native
from regal.search.devices.anneal import anneal
from regal.search.devices.types import DeviceOutcome
from regal.search.types import Budget

if TYPE_CHECKING:
    from regal._native import Cancel, NamedSchedule
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.types import Objective

MOST_STARTS = 8  # schedules that the annealing starts from


def regal(
    problem: ScheduleProblem,
    objective: Objective,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    cancel: Cancel | None = None,
) -> DeviceOutcome:
    """Return the best schedule of all heuristics and of annealing from the best of them.

    It is never worse than the best heuristic, and it stops when a proven bound is reached.

    Cost: the heuristics take 15 to 40 ms for 1,000 ops on two devices.
    """
    started = time.perf_counter()
    time_bound = _native.device_time_bound(problem.native)
    peak_bound = _native.device_peak_bound(problem.native)
    bound = objective.value(time_bound, peak_bound)
    seeds, spent = _native.heuristic_schedules(problem.native, objective.per_ns, objective.per_byte)
    best = _outcome(problem, seeds[0], spent)
    left = _left(budget, spent, time.perf_counter() - started)
    if left is not None and not _reaches(seeds[0], bound):
        starts = [named.schedule for named in seeds[:MOST_STARTS]]
        found = anneal(
            problem,
            objective,
            starts,
            left,
            seed=seed,
            threads=threads,
            stop_at=bound,
            cancel=cancel,
        )
        best = replace(
            found if _is_better(found, best, objective) else best,
            evaluations=spent + found.evaluations,
            was_interrupted=found.was_interrupted,
        )
    return replace(
        best,
        seconds=time.perf_counter() - started,
        time_bound_ns=time_bound,
        peak_bound=peak_bound,
    )


def _outcome(problem: ScheduleProblem, named: NamedSchedule, evaluations: int) -> DeviceOutcome:
    figures = _native.simulate_devices(problem.native, named.schedule)
    if figures is None:
        raise AssertionError("a completed schedule waits in a circle")
    return DeviceOutcome(
        schedule=named.schedule,
        figures=figures,
        evaluations=evaluations,
        seconds=0.0,
        note=f"best heuristic: {named.name}",
    )


def _left(budget: Budget, spent: int, seconds: float) -> Budget | None:
    """Return what the heuristics have left of a budget; None: nothing."""
    evaluations = None if budget.evaluations is None else budget.evaluations - spent
    rest = None if budget.seconds is None else budget.seconds - seconds
    if (evaluations is not None and evaluations < 1) or (rest is not None and rest <= 0):
        return None
    return Budget(evaluations=evaluations, seconds=rest)


def _reaches(named: NamedSchedule, bound: float) -> bool:
    return named.score.overflow == 0 and named.score.value <= bound


def _is_better(found: DeviceOutcome, other: DeviceOutcome, objective: Objective) -> bool:
    ours = _native.score_devices(found.figures, objective.per_ns, objective.per_byte)
    theirs = _native.score_devices(other.figures, objective.per_ns, objective.per_byte)
    return ours.is_better_than(theirs)
