"""The plain learning baseline: REINFORCE on the one graph, a table of logits, no network."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal.baselines.devices.reinforce import Learner, cost_of, sampled
from regal.baselines.devices.rules import is_used_up
from regal.cost.types import FORBIDDEN
from regal.search.devices.outcomes import simulated_outcome
from regal.search.devices.types import CurvePoint

if TYPE_CHECKING:
    from regal._native import Cancel, NamedSchedule
    from regal.baselines.devices.reinforce import Ints, Reals
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.types import DeviceOutcome, Objective
    from regal.search.types import Budget

SAMPLES = 16  # per update
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
    rng = np.random.default_rng(seed)
    groups: Ints = problem.native.group.astype(np.int64)
    logits = _first_logits(problem, groups)
    weights = {"logits": logits}
    learner = Learner(weights, LEARNING_RATE)
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
            chances = _chances(logits)
            drawn = np.stack([sampled(chances, rng.random(len(chances))) for _ in range(count)])
            found = _native.placed_schedules(
                problem.native,
                np.ascontiguousarray(drawn[:, groups]),
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
            learner.update({"logits": _slope(chances, drawn, blame / count)})
            was_interrupted = cancel is not None and cancel.is_cancelled
    except KeyboardInterrupt:
        if best is None:
            raise
        was_interrupted = True
    outcome = simulated_outcome(
        problem, best.schedule, done, started, was_interrupted=was_interrupted
    )
    return replace(outcome, curve=tuple(curve))


def _first_logits(problem: ScheduleProblem, groups: Ints) -> Reals:
    """Return (G, D) zeros, and NEVER where an op of the group cannot run."""
    refusals = np.zeros((int(groups.max(initial=-1)) + 1, problem.n_devices), dtype=np.int64)
    np.add.at(refusals, groups, problem.durations == FORBIDDEN)
    logits: Reals = np.where(refusals > 0, NEVER, 0.0)
    return logits


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
