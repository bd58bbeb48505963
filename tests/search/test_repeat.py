"""A run that the clock ended is repeated by its number of evaluations, byte for byte."""

from __future__ import annotations

import random

import pytest

from regal.graph.types import Graph, LoadedModel
from regal.options import Options
from regal.pipeline import search
from regal.plan.file import plan_to_json
from regal.plan.problem import order_problem
from regal.search.exact import solve_exact
from tests.graphs import random_graph


def model_of(*graphs: Graph) -> LoadedModel:
    return LoadedModel(framework="graph", entries=graphs, source=None)


@pytest.mark.parametrize("seconds", [1e-9, 1e-3, 3e-3, 1e-2, 3e-2])
@pytest.mark.parametrize("method", ["regal", "exact", "windows", "memetic", "brkga", "annealing"])
def test_a_run_that_the_clock_ended_is_repeated_by_its_evaluations(
    method: str, seconds: float
) -> None:
    for seed in range(3):
        rng = random.Random(seed)
        sizes = [rng.choice([5, 30, 60]) for _ in range(1 + seed % 2)]
        graphs = [random_graph(seed + 7 * n, n, concats=True) for n in sizes]
        model = model_of(*graphs)
        timed = search(model, Options(method=method, seconds=seconds, seed=seed))
        assert timed.evaluations > 0
        again = Options(method=method, evaluations=timed.evaluations, seed=seed, threads=2)
        assert plan_to_json(model, search(model, again)) == plan_to_json(model, timed)


@pytest.mark.parametrize("seed", range(12))
def test_an_exact_search_with_a_limit_is_the_start_of_the_one_without(seed: int) -> None:
    problem = order_problem(random_graph(seed, 60)).native
    whole = solve_exact(problem, max_states=3_000)
    for limit in (1, 10, 100, 700, 2_000):
        part = solve_exact(problem, max_states=3_000, limit=limit)
        assert part.states <= limit
        assert part.lower_bound <= whole.lower_bound
        assert part.peak_bytes >= whole.peak_bytes
        # What it reports as spent is enough to repeat it.
        assert solve_exact(problem, max_states=3_000, limit=part.states) == part
    assert solve_exact(problem, max_states=3_000, limit=whole.states) == whole


@pytest.mark.parametrize("seed", range(20))
def test_what_costs_no_evaluation_is_done_with_and_without_a_limit(seed: int) -> None:
    model = model_of(random_graph(seed, 5, concats=True), random_graph(seed + 50, 12))
    whole = search(model, Options(evaluations=60))
    for limit in range(11, 60, 7):
        part = search(model, Options(evaluations=limit))
        again = search(model, Options(evaluations=part.evaluations, threads=2))
        assert (again.evaluations, again.plans) == (part.evaluations, part.plans)
    assert search(model, Options(evaluations=whole.evaluations)).plans == whole.plans
