"""Local search, annealing and the memetic search."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from regal import _native
from regal.errors import PlanError
from regal.search.local import improve_order
from regal.search.memetic import LEAST_PLANS, memetic
from regal.search.types import Budget
from tests.search.problems import best_peak, build, random_problem, slow_peak, wide_problem

NO_PAIRS = np.zeros((0, 3), dtype=np.int64)
BOTH = pytest.mark.parametrize("is_annealing", [False, True])


@BOTH
def test_tiny_problems_are_solved(is_annealing: bool) -> None:
    misses = 0
    for seed in range(120):
        problem = random_problem(seed, most_ops=6)
        start = _native.classic_order(problem.native, _native.Classic.FILE_ORDER)
        outcome = improve_order(
            problem.native, start, Budget(evaluations=2000), seed=seed, is_annealing=is_annealing
        )
        assert outcome.peak_bytes == slow_peak(problem, outcome.order.tolist()), seed
        best = best_peak(problem)
        assert outcome.peak_bytes >= best
        misses += outcome.peak_bytes > best
    assert misses <= 2


@BOTH
def test_the_peak_kept_up_move_by_move_is_the_simulated_one(is_annealing: bool) -> None:
    for seed in range(60):
        problem = random_problem(seed, most_ops=25)
        start = _native.classic_order(problem.native, _native.Classic.BFS)
        before = _native.simulate(problem.native, start).peak_bytes
        last = before
        for evaluations in (1, 20, 300):
            outcome = improve_order(
                problem.native,
                start,
                Budget(evaluations=evaluations),
                seed=seed,
                is_annealing=is_annealing,
            )
            verdict = _native.check_order(problem.native, outcome.order, NO_PAIRS)
            assert verdict.fault == _native.OrderFault.NONE
            simulated = _native.simulate(problem.native, outcome.order).peak_bytes
            assert outcome.peak_bytes == simulated, seed
            assert simulated <= last
            last = simulated


@BOTH
def test_it_improves_a_bad_order_a_lot_and_repeats_itself(is_annealing: bool) -> None:
    problem = wide_problem(1, 40)
    start = np.arange(problem.n_ops, dtype=np.int64)
    timed = improve_order(
        problem.native, start, Budget(seconds=0.05), seed=3, is_annealing=is_annealing
    )
    counted = improve_order(
        problem.native,
        start,
        Budget(evaluations=timed.evaluations),
        seed=3,
        is_annealing=is_annealing,
    )
    assert counted.order.tolist() == timed.order.tolist()
    assert counted.evaluations == timed.evaluations
    long = improve_order(
        problem.native, start, Budget(evaluations=50_000), seed=3, is_annealing=is_annealing
    )
    assert long.peak_bytes < 0.8 * _native.simulate(problem.native, start).peak_bytes


def test_one_evaluation_is_the_start_itself() -> None:
    problem = wide_problem(1, 10)
    start = np.arange(problem.n_ops, dtype=np.int64)
    outcome = improve_order(problem.native, start, Budget(evaluations=1), seed=1)
    assert outcome.order.tolist() == start.tolist()
    assert outcome.evaluations == 1


def test_it_ends_by_itself_where_no_op_can_move() -> None:
    problem = build(edges=[(0, 1), (1, 2)], touches=[[0], [0, 1], [1]], bytes_of=[1, 2])
    outcome = improve_order(problem.native, np.arange(3), Budget(evaluations=10**9), seed=1)
    assert outcome.evaluations == 1


def test_it_ends_at_the_bound_and_when_cancelled() -> None:
    problem = wide_problem(2, 40)
    start = np.arange(problem.n_ops, dtype=np.int64)
    good = improve_order(problem.native, start, Budget(evaluations=5000), seed=3)
    ended = improve_order(
        problem.native, start, Budget(evaluations=10**9), seed=3, stop_at=good.peak_bytes
    )
    assert ended.is_optimal
    assert ended.evaluations <= 5000
    cancel = _native.Cancel()
    timer = threading.Timer(0.05, cancel.cancel)
    timer.start()
    cancelled = improve_order(problem.native, start, Budget(seconds=60), seed=3, cancel=cancel)
    timer.join()
    assert cancelled.was_interrupted
    assert cancelled.seconds < 60


def test_an_illegal_start_is_refused() -> None:
    problem = build(edges=[(0, 1)], touches=[[0], [0]], bytes_of=[1])
    with pytest.raises(PlanError, match="order of 2 steps is no permutation of 2 ops"):
        improve_order(problem.native, np.array([0, 0]), Budget(evaluations=1), seed=1)


def test_memetic_search_repeats_itself_whatever_ended_it() -> None:
    problem = wide_problem(3, 40)
    for budget in (Budget(seconds=0.1), Budget(seconds=0.0), Budget(evaluations=LEAST_PLANS)):
        first = memetic(problem.native, budget, seed=2, threads=2, stop_at=0)
        again = memetic(
            problem.native, Budget(evaluations=first.evaluations), seed=2, threads=1, stop_at=0
        )
        assert again.order.tolist() == first.order.tolist()
        assert again.evaluations == first.evaluations


def test_memetic_search_counts_plans_and_moves() -> None:
    problem = wide_problem(3, 40)
    outcome = memetic(problem.native, Budget(evaluations=7000), seed=2, threads=1, stop_at=0)
    fewer = memetic(problem.native, Budget(evaluations=50), seed=2, threads=1, stop_at=0)
    assert outcome.evaluations == 7000
    assert fewer.evaluations == 50
    assert outcome.peak_bytes < fewer.peak_bytes
