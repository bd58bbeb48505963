"""From complete schedules to what methods return: figures, scores, outcomes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal.errors import PlanError
from regal.search.devices.types import DeviceOutcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal._native import DeviceFigures, DeviceSchedule, DeviceScore
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.types import Objective


def simulated(problem: ScheduleProblem, schedule: DeviceSchedule) -> DeviceFigures:
    """Return the figures of a schedule that a search made, which is complete and legal."""
    figures = _native.simulate_devices(problem.native, schedule)
    if figures is None:
        raise AssertionError("a schedule of a search waits in a circle")
    return figures


def score_of(figures: DeviceFigures, objective: Objective) -> DeviceScore:
    """Return what decides between two schedules: overflow, value, time, peak, in this order."""
    return _native.score_devices(figures, objective.per_ns, objective.per_byte)


def simulated_outcome(
    problem: ScheduleProblem,
    schedule: DeviceSchedule,
    evaluations: int,
    started: float,
    *,
    was_interrupted: bool = False,
    note: str = "",
) -> DeviceOutcome:
    """Return the outcome of a search that began at `started` (`time.perf_counter`)."""
    return DeviceOutcome(
        schedule=schedule,
        figures=simulated(problem, schedule),
        evaluations=evaluations,
        seconds=time.perf_counter() - started,
        was_interrupted=was_interrupted,
        note=note,
    )


def completed_outcome(
    problem: ScheduleProblem, placement: Sequence[int], order: Sequence[int]
) -> DeviceOutcome:
    """Return the schedule of a placement and an order, with transfers as the links choose.

    Nothing is searched: it counts no evaluations.

    Args:
        problem: N ops on D devices.
        placement: N devices.
        order: the N ops, writers before readers.

    Raises:
        PlanError: the order runs an op too early.
    """
    schedule = _native.complete_schedule(
        problem.native, np.array(placement, dtype=np.int64), np.array(order, dtype=np.int64)
    )
    figures = _native.simulate_devices(problem.native, schedule)
    if figures is None:
        raise PlanError("an order runs an op before one that it depends on")
    return DeviceOutcome(schedule=schedule, figures=figures, evaluations=0, seconds=0.0)
