"""REINFORCE on a table of logits: its gradient, what it learns, and its curve."""

from __future__ import annotations

import numpy as np
import pytest

from regal.baselines.devices import per_graph as module
from regal.baselines.devices.per_graph import per_graph_reinforce
from regal.search.devices.types import Objective
from regal.search.types import Budget
from tests.baselines.devices.problems import schedule_problem_of, task_graph

TIME = Objective(name="time", per_ns=1, per_byte=0)


def test_the_gradient_is_that_of_finite_differences() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(3, 2))
    drawn = np.array([[0, 1, 1], [1, 1, 0]])
    blame = np.array([0.7, -0.2])

    def loss(table: np.ndarray) -> float:
        chances = module._chances(table)
        logs = np.log(chances)
        chosen = logs[np.arange(3), drawn].sum(axis=1)
        entropy = -(chances * logs).sum()
        return float((blame * chosen).sum() - module.ENTROPY_BONUS * entropy)

    slope = module._slope(module._chances(logits), drawn, blame)
    for i in range(3):
        for d in range(2):
            step = np.zeros((3, 2))
            step[i, d] = 1e-5
            assert slope[i, d] == pytest.approx(
                (loss(logits + step) - loss(logits - step)) / 2e-5, abs=1e-6
            )


def test_it_learns_where_each_op_is_fast() -> None:
    """Of the 2^20 placements one is best; drawn at random, 3,200 of them miss it."""
    problem = schedule_problem_of(task_graph([[1, 10], [10, 1]] * 10, []))
    budget = Budget(evaluations=3_200)
    found = per_graph_reinforce(problem, TIME, budget, seed=0, threads=1)
    assert found.figures.time == 10
    assert found.schedule.placement.tolist() == [0, 1] * 10


def test_an_op_never_goes_to_a_device_that_cannot_run_it() -> None:
    problem = schedule_problem_of(task_graph([[1, -1], [-1, 1]] * 3, []))
    found = per_graph_reinforce(problem, TIME, Budget(evaluations=20), seed=0, threads=1)
    assert found.schedule.placement.tolist() == [0, 1] * 3


def test_its_curve_goes_down_to_its_result() -> None:
    problem = schedule_problem_of(task_graph([[1, 10], [10, 1]] * 10, []))
    found = per_graph_reinforce(problem, TIME, Budget(evaluations=640), seed=0, threads=1)
    values = [point.value for point in found.curve]
    assert values == sorted(values, reverse=True)
    assert len(set(values)) == len(values) > 1
    assert values[-1] == found.figures.time
