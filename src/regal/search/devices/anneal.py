"""Annealing of placements: under list scheduling for time, along a sequence for memory."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal.search.devices.compact import evaluations_of, seconds_of
from regal.search.devices.outcomes import simulated_outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal._native import Cancel, DeviceSchedule
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.types import DeviceOutcome, Objective
    from regal.search.types import Budget


def anneal(
    problem: ScheduleProblem,
    objective: Objective,
    starts: Sequence[DeviceSchedule],
    budget: Budget,
    *,
    seed: int,
    threads: int,
    stop_at: float = -math.inf,
    cancel: Cancel | None = None,
) -> DeviceOutcome:
    """Return the best schedule found from the placements of others; it may be worse than theirs.

    Parts of a device move together: clusters of ops that are dear to part, and runs of ops that
    follow each other. For time each device runs, of its ops that can start, the one with the
    longest way to the end (counting the transfers of this placement), and lengthened ways reorder
    branches; for memory it keeps to a sequence, of which blocks shift. The search cools down in
    cycles, each longer than the one before, from the best so far.

    Args:
        problem: N ops on D devices.
        objective: what is minimized.
        starts: schedules to start from; none: the devices are filled one after the other.
        budget: when to stop.
        seed: the only source of randomness.
        threads: never changes the result.
        stop_at: a bound of the objective's value: the search ends when it is reached.
        cancel: ends the search from another thread.

    Source: simulated annealing (Kirkpatrick et al. 1983); the moves of clusters follow the edge
        zeroing of Sarkar 1989.
    Cost: per evaluation O((ops + reads) log ops + ops * devices): 6 us for 180 ops, 0.1 ms for
        2,000; with contention or memory about three times that.
    """
    started = time.perf_counter()
    shape = (len(starts), problem.n_ops)
    schedule, _, evaluations, was_interrupted = _native.anneal_devices(
        problem=problem.native,
        per_ns=objective.per_ns,
        per_byte=objective.per_byte,
        placements=np.array([start.placement for start in starts], np.int64).reshape(shape),
        orders=np.array([start.order for start in starts], np.int64).reshape(shape),
        seed=seed,
        threads=threads,
        evaluations=evaluations_of(budget),
        seconds=seconds_of(budget),
        value=stop_at,
        cancel=_native.Cancel() if cancel is None else cancel,
    )
    return simulated_outcome(
        problem,
        schedule,
        evaluations,
        started,
        was_interrupted=was_interrupted or (cancel is not None and cancel.is_cancelled),
    )
