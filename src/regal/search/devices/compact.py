"""What the searches over keys share: the compact problem, their limits, their outcomes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regal import _native
from regal.search.devices.outcomes import simulated_outcome

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from regal._native import Cancel, CompactDevices, DeviceDecoder, DeviceSchedule
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.types import DeviceOutcome, Objective
    from regal.search.types import Budget

NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The best schedule of one search over keys, and what led to it."""

    schedule: DeviceSchedule
    evaluations: int
    was_interrupted: bool
    chromosomes: NDArray[np.uint32]  # (k, genes): best first; none where only seeds were looked at


def compact_devices(problem: ScheduleProblem) -> CompactDevices:
    """Return the problem as the searches read it.

    Cost: O((ops + touches + edges) log), once per problem.
    """
    return _native.CompactDevices(problem.native)


def decoder_for(objective: Objective) -> DeviceDecoder:
    """Return the decoder that finds the better schedules for this objective."""
    is_timed = objective.per_ns > 0
    return _native.DeviceDecoder.EFT if is_timed else _native.DeviceDecoder.INHERIT


def evaluations_of(budget: Budget) -> int:
    """Return how many evaluations a budget allows."""
    return NO_LIMIT if budget.evaluations is None else budget.evaluations


def seconds_of(budget: Budget) -> float:
    """Return how many seconds a budget allows."""
    return math.inf if budget.seconds is None else budget.seconds


def outcome_of(
    problem: ScheduleProblem, found: Found, started: float, cancel: Cancel | None
) -> DeviceOutcome:
    """Return what a search found as the outcome of a method."""
    return simulated_outcome(
        problem,
        found.schedule,
        found.evaluations,
        started,
        was_interrupted=found.was_interrupted or (cancel is not None and cancel.is_cancelled),
    )
