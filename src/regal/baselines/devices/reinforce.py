"""REINFORCE on one graph: what the learning baselines share."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from regal import _native
from regal.baselines.devices.rules import is_used_up
from regal.cost.types import FORBIDDEN
from regal.search.devices.outcomes import simulated_outcome
from regal.search.devices.types import CurvePoint

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from regal._native import Cancel, NamedSchedule
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.types import DeviceOutcome, Objective
    from regal.search.types import Budget

    Flags = NDArray[np.bool_]
    Ints = NDArray[np.int64]
    Reals = NDArray[np.float64]
    Parameters = dict[str, Reals]

SAMPLES = 16  # per update
MOST_NORM = 1.0  # of a gradient
MEMORY = 0.9  # of the moving baseline


class Sampler(Protocol):
    """What is learned: chances of devices, and how they change with its weights."""

    def draw(self, count: int) -> Ints:
        """Return (count, N) devices."""

    def slope(self, blame: Reals) -> Parameters:
        """Return the gradient of mean blame * log chance - bonus * entropy at what was drawn last.

        Args:
            blame: (B,), over B.
        """


def learned_outcome(
    problem: ScheduleProblem,
    objective: Objective,
    budget: Budget,
    sampler: Sampler,
    learner: Learner,
    *,
    started: float,
    threads: int,
    cancel: Cancel | None,
) -> DeviceOutcome:
    """Return the best schedule that was sampled while the sampler learned, and its curve.

    Each sample is one evaluation: it is list-scheduled (memory: run in a memory-saving order) and
    simulated.
    """
    order = (
        _native.PlacementOrder.LIST if objective.per_ns > 0 else _native.PlacementOrder.SAFE_MEMORY
    )
    best: NamedSchedule | None = None
    curve: list[CurvePoint] = []
    done = 0
    was_interrupted = False
    try:
        while best is None or not (
            was_interrupted or done == budget.evaluations or is_used_up(budget, started)
        ):
            left = SAMPLES if budget.evaluations is None else budget.evaluations - done
            count = min(SAMPLES, left)
            found = _native.placed_schedules(
                problem.native,
                np.ascontiguousarray(sampler.draw(count)),
                order,
                True,
                objective.per_ns,
                objective.per_byte,
                threads,
            )
            done += count
            for schedule in found:
                if best is None or schedule.score.is_better_than(best.score):
                    best = schedule
            if best is not None and best.score.overflow == 0:
                value = best.score.value
                if not curve or value < curve[-1].value:
                    seconds = time.perf_counter() - started
                    curve.append(CurvePoint(evaluations=done, seconds=seconds, value=value))
            blame = learner.blame(np.array([cost_of(schedule, problem) for schedule in found]))
            learner.update(sampler.slope(blame / count))
            was_interrupted = cancel is not None and cancel.is_cancelled
    except KeyboardInterrupt:
        if best is None:
            raise
        was_interrupted = True
    outcome = simulated_outcome(
        problem, best.schedule, done, started, was_interrupted=was_interrupted
    )
    return replace(outcome, curve=tuple(curve))


def allowed_devices(of_op: Ints, problem: ScheduleProblem) -> Flags:
    """Return (G, D): whether all ops of a group can run on a device; `of_op`: op -> group."""
    refusals = np.zeros((int(of_op.max(initial=-1)) + 1, problem.n_devices), dtype=np.int64)
    np.add.at(refusals, of_op, problem.durations == FORBIDDEN)
    allowed: Flags = refusals == 0
    return allowed


def sampled(probabilities: Reals, chances: Reals) -> Ints:
    """Return one device per row; only devices of a chance above 0."""
    sums = np.cumsum(probabilities, axis=1)
    sums /= sums[:, -1:]
    devices: Ints = (sums <= chances[:, None]).sum(axis=1)
    return devices


def cost_of(schedule: NamedSchedule, problem: ScheduleProblem) -> float:
    """Return what the network learns to lower: relative changes, overflow before all else."""
    score = schedule.score
    cost = float(np.log(max(score.value, 1e-9)))
    if score.overflow > 0:
        cost += 1 + score.overflow / max(1, int(problem.capacity.min()))
    return cost


class Learner:
    """REINFORCE's moving baseline, and Adam on the weights, in place."""

    def __init__(self, weights: Parameters, rate: float) -> None:
        """Learn `weights`, with steps of about `rate`."""
        self._weights = weights
        self._rate = rate
        self._mean: float | None = None
        self._spread = 0.0
        self._first = {name: np.zeros_like(value) for name, value in weights.items()}
        self._second = {name: np.zeros_like(value) for name, value in weights.items()}
        self._updates = 0

    def blame(self, costs: Reals) -> Reals:
        """Return how much worse each sample is than expected, in spreads, within +-3."""
        mean, spread = float(costs.mean()), float(costs.std())
        if self._mean is None:
            self._mean, self._spread = mean, spread
        blame = np.clip((costs - self._mean) / (self._spread + 1e-6), -3, 3)
        self._mean = MEMORY * self._mean + (1 - MEMORY) * mean
        self._spread = MEMORY * self._spread + (1 - MEMORY) * spread
        return blame

    def update(self, slope: Parameters) -> None:
        """Take one step downhill."""
        self._updates += 1
        norm = float(np.sqrt(sum((value**2).sum() for value in slope.values())))
        scale = min(1.0, MOST_NORM / max(norm, 1e-12))
        for name, value in slope.items():
            own = value * scale
            self._first[name] = 0.9 * self._first[name] + 0.1 * own
            self._second[name] = 0.999 * self._second[name] + 0.001 * own**2
            first = self._first[name] / (1 - 0.9**self._updates)
            second = self._second[name] / (1 - 0.999**self._updates)
            self._weights[name] -= self._rate * first / (np.sqrt(second) + 1e-8)
