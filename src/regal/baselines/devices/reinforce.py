"""REINFORCE on one graph: what the learning baselines share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from regal._native import NamedSchedule
    from regal.plan.schedule_problem import ScheduleProblem

    Ints = NDArray[np.int64]
    Reals = NDArray[np.float64]
    Parameters = dict[str, Reals]

MOST_NORM = 1.0  # of a gradient
MEMORY = 0.9  # of the moving baseline


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
