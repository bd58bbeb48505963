"""CP-SAT against all orders, and its limits."""

import threading

import pytest

from regal import _native
from regal.baselines import cp_sat as module
from regal.baselines.cp_sat import cp_sat
from regal.errors import UsageError
from regal.search.classic import best_classic
from regal.search.types import Budget
from tests.search.problems import best_peak, random_problem, slow_peak, wide_problem

pytest.importorskip("ortools")


def test_tiny_problems_are_solved_with_proof() -> None:
    unproven = 0
    for seed in range(40):
        problem = random_problem(seed)
        outcome = cp_sat(problem.native, Budget(seconds=20), seed=1, threads=1, stop_at=0)
        best = best_peak(problem)
        assert outcome.peak_bytes == slow_peak(problem, outcome.order.tolist())
        assert outcome.lower_bound <= best <= outcome.peak_bytes, seed
        unproven += outcome.lower_bound < best
    assert unproven <= 1  # where in-place pairs of one op compete, see _add_in_place


def test_it_improves_the_best_classic_order() -> None:
    problem = wide_problem(13, 5)
    hint = best_classic(problem.native).peak_bytes
    outcome = cp_sat(problem.native, Budget(seconds=20), seed=1, threads=2, stop_at=0)
    assert outcome.is_optimal
    assert outcome.peak_bytes < hint


def test_a_known_bound_becomes_the_result_without_any_solving() -> None:
    problem = wide_problem(13, 5)
    peak = best_classic(problem.native).peak_bytes
    outcome = cp_sat(problem.native, Budget(seconds=0), seed=1, threads=1, stop_at=peak)
    assert outcome.is_optimal
    assert outcome.lower_bound == peak


def test_it_needs_a_time_limit() -> None:
    problem = wide_problem(13, 5)
    with pytest.raises(UsageError, match="give a time limit"):
        cp_sat(problem.native, Budget(evaluations=10), seed=1, threads=1, stop_at=0)


def test_too_many_ops_return_the_classic_order_and_say_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = wide_problem(13, 5)
    monkeypatch.setattr(module, "MOST_OPS", 15)
    outcome = cp_sat(problem.native, Budget(seconds=20), seed=1, threads=1, stop_at=0)
    assert outcome.order.tolist() == best_classic(problem.native).order.tolist()
    assert outcome.note == "cp-sat: 16 ops are more than 15; classic order returned"


def test_cancel_from_another_thread_returns_a_legal_order() -> None:
    problem = wide_problem(1, 60)
    cancel = _native.Cancel()
    timer = threading.Timer(0.2, cancel.cancel)
    timer.start()
    outcome = cp_sat(
        problem.native, Budget(seconds=120), seed=1, threads=1, stop_at=0, cancel=cancel
    )
    timer.join()
    assert outcome.was_interrupted
    assert outcome.seconds < 120
    assert outcome.peak_bytes == slow_peak(problem, outcome.order.tolist())
