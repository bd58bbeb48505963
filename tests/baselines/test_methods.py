"""Every method by name: legal, deterministic, never below the optimum."""

import pytest

from regal.baselines.methods import METHODS
from regal.search.types import Budget
from tests.search.problems import best_peak, build, random_problem, slow_peak, wide_problem

COUNTED = sorted(set(METHODS) - {"cp-sat"})
STRONG = ["annealing", "brkga", "brkga-tuned", "local-search", "memetic"]


def test_the_names_are_those_of_the_documentation() -> None:
    assert list(METHODS) == [
        "file-order",
        "random",
        "dfs",
        "bfs",
        "greedy-memory",
        "lpmf",
        "xla-list",
        "xla-dfs",
        "inductor-dfs",
        "ort-default",
        "brkga",
        "brkga-tuned",
        "local-search",
        "annealing",
        "memetic",
        "cp-sat",
    ]


@pytest.mark.parametrize("name", COUNTED)
def test_a_method_returns_a_legal_order_that_is_not_below_the_optimum(name: str) -> None:
    misses = 0
    for seed in range(40):
        problem = random_problem(seed, most_ops=6)
        outcome = METHODS[name](
            problem.native, Budget(evaluations=400), seed=1, threads=1, stop_at=0
        )
        best = best_peak(problem)
        assert sorted(outcome.order.tolist()) == list(range(problem.n_ops))
        assert outcome.peak_bytes == slow_peak(problem, outcome.order.tolist())
        assert outcome.peak_bytes >= best
        assert outcome.evaluations <= 400
        misses += outcome.peak_bytes > best
    assert misses == 0 or name not in STRONG


@pytest.mark.parametrize("name", COUNTED)
def test_the_same_seed_gives_the_same_order_with_any_threads(name: str) -> None:
    problem = wide_problem(1, 25)
    orders = [
        METHODS[name](
            problem.native, Budget(evaluations=500), seed=7, threads=threads, stop_at=0
        ).order.tolist()
        for threads in (1, 3)
    ]
    assert orders[0] == orders[1]


def test_random_is_the_best_of_its_orders() -> None:
    problem = wide_problem(2, 25)
    peaks = [
        METHODS["random"](
            problem.native, Budget(evaluations=n), seed=3, threads=1, stop_at=0
        ).peak_bytes
        for n in (1, 100, 101, 1000)
    ]
    assert peaks == sorted(peaks, reverse=True)
    assert peaks[-1] < peaks[0]


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_reached_bound_is_reported_as_optimal(name: str) -> None:
    problem = build(edges=[(0, 1)], touches=[[0], [0, 1]], bytes_of=[2, 3], outputs=[1])
    outcome = METHODS[name](
        problem.native,
        Budget(evaluations=9, seconds=5),
        seed=1,
        threads=1,
        stop_at=5,
    )
    assert outcome.is_optimal
    assert outcome.lower_bound == 5
    assert outcome.peak_bytes == 5
