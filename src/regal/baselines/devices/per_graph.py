"""The plain learning baseline: REINFORCE on the one graph, a table of logits, no network."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from regal.baselines.devices.reinforce import Learner, allowed_devices, learned_outcome, sampled

if TYPE_CHECKING:
    from regal._native import Cancel
    from regal.baselines.devices.reinforce import Ints, Parameters, Reals
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.types import DeviceOutcome, Objective
    from regal.search.types import Budget

LEARNING_RATE = 0.1  # chosen on the training side, of 0.03, 0.1 and 0.3
ENTROPY_BONUS = 0.01
NEVER = -1e9  # logit of a device that cannot run an op


def per_graph_reinforce(
    problem: ScheduleProblem,
    objective: Objective,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    cancel: Cancel | None = None,
) -> DeviceOutcome:
    """Return the best schedule that was sampled while a table of logits learned this graph.

    Each group of ops that must stay together has a logit per device, 0 at first. A sample draws all
    devices, is list-scheduled (memory: run in a memory-saving order) and simulated: one evaluation.
    REINFORCE with a moving baseline makes better samples more likely. Nothing is learned from other
    graphs, no heuristic placement is shown.

    Source: Williams 1992 (REINFORCE); the cost and the baseline are those of `graph_as_sequence`.
    Cost: per 16 evaluations 16 simulations and O(16 N D).
    """
    started = time.perf_counter()
    table = _Table(problem, np.random.default_rng(seed))
    learner = Learner(table.weights, LEARNING_RATE)
    return learned_outcome(
        problem, objective, budget, table, learner, started=started, threads=threads, cancel=cancel
    )


class _Table:
    """A `Sampler`: a logit per group of ops and device, 0 at first."""

    def __init__(self, problem: ScheduleProblem, rng: np.random.Generator) -> None:
        self._groups: Ints = problem.native.group.astype(np.int64)
        allowed = allowed_devices(self._groups, problem)
        self.weights: Parameters = {"logits": np.where(allowed, 0.0, NEVER)}
        self._rng = rng

    def draw(self, count: int) -> Ints:
        """Return (count, N) devices."""
        self._odds = odds = _chances(self.weights["logits"])
        self._drawn = np.stack([sampled(odds, self._rng.random(len(odds))) for _ in range(count)])
        return self._drawn[:, self._groups]

    def slope(self, blame: Reals) -> Parameters:
        """Return the gradient at what was drawn last; see `Sampler`."""
        return {"logits": _slope(self._odds, self._drawn, blame)}


def _chances(logits: Reals) -> Reals:
    powers: Reals = np.exp(logits - logits.max(axis=1, keepdims=True))
    powers /= powers.sum(axis=1, keepdims=True)
    return powers


def _slope(chances: Reals, drawn: Ints, blame: Reals) -> Reals:
    """Return the gradient of mean blame * log chance - bonus * entropy, where devices are allowed.

    Args:
        chances: (G, D).
        drawn: (B, G) devices.
        blame: (B,), over B.
    """
    slope: Reals = -blame.sum() * chances
    for devices, weight in zip(drawn, blame, strict=True):
        slope[np.arange(len(devices)), devices] += weight
    logs = np.log(np.where(chances > 0, chances, 1.0))
    entropy = -(chances * logs).sum(axis=1, keepdims=True)
    slope += ENTROPY_BONUS * chances * (logs + entropy)
    return slope
