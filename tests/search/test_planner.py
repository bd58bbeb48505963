from dataclasses import replace

import pytest

from regal.graph.builder import GraphBuilder
from regal.graph.types import LoadedModel
from regal.plan.check import require_valid_plan
from regal.plan.file import plan_from_json, plan_to_json
from regal.graph.file import model_hash
from regal.plan.types import ModelPlan
from regal.search.methods import METHODS, method_named
from regal.search.planner import before_plan, plan_graph
from regal.search.types import Budget
from tests.graphs import random_graph
from tests.oracles.memory import best_peak, slow_peak


def planned(graph, method="regal", evaluations=2000, seed=0, threads=1):  # type: ignore[no-untyped-def]
    return plan_graph(
        graph,
        method_named(method),
        Budget(evaluations=evaluations),
        seed,
        threads,
        never_worse=method == "regal",
    ).plan


@pytest.mark.parametrize("seed", range(60))
def test_the_plan_of_a_small_graph_is_the_best_of_all_orders(seed: int) -> None:
    graph = random_graph(seed, 1 + seed % 7)
    plan = planned(graph)
    assert plan.peak_bytes == best_peak(graph)
    assert plan.peak_bound <= plan.peak_bytes
    assert plan.peak_bytes == slow_peak(graph, plan.order, in_place=True)


@pytest.mark.parametrize("seed", range(40))
def test_the_before_is_the_order_of_the_file_without_in_place(seed: int) -> None:
    graph = random_graph(seed, 6)
    plan = before_plan(graph)
    assert plan.order == tuple(range(6))
    assert plan.in_place == ()
    assert plan.peak_bytes == slow_peak(graph, plan.order, in_place=False)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "cp-sat"])
def test_every_method_returns_a_checked_plan_with_a_true_bound(method: str) -> None:
    for seed in range(8):
        graph = random_graph(seed, 6, alignment=4)
        plan = planned(graph, method, evaluations=200)
        best = best_peak(graph)
        assert plan.peak_bound <= best <= plan.peak_bytes
        require_valid_plan(graph, plan)


def test_the_plan_file_is_read_back_as_it_was_written() -> None:
    graph = random_graph(3, 7)
    model = LoadedModel(framework="graph", entries=(graph,), source=None)
    plan = ModelPlan(
        graph_hash=model_hash(model), method="regal", seed=0, evaluations=9, plans=(planned(graph),)
    )
    assert plan_from_json(plan_to_json(model, plan).encode(), model) == plan


def test_bodies_are_planned_and_their_block_lies_in_the_arena() -> None:
    b = GraphBuilder("body")
    p = b.input("p", 4)
    body = b.build(outputs=b.op("Neg", b.op("Big", [p], [20]), [4]))
    g = GraphBuilder("outer")
    x = g.input("x", 4)
    y = g.op("If", [x], [4], subgraphs=[body, body])
    graph = g.build(outputs=y)
    plan = planned(graph)
    # Body: p 4 + big 20, then big 20 + out 4. Outer step: x 4 + y 4 + body 24.
    assert plan.bodies[0][0].peak_bytes == 24
    assert plan.peak_bytes == 32
    assert plan.workspaces[0].bytes >= 24
    assert plan.arena_bytes >= 32


def test_the_number_of_threads_changes_nothing() -> None:
    graph = random_graph(5, 60)
    assert planned(graph, threads=1) == planned(graph, threads=3)


def test_an_order_that_packs_worse_than_the_file_is_not_taken() -> None:
    for seed in range(30):
        graph = random_graph(seed, 12, alignment=8)
        in_file = replace(before_plan(graph))
        assert planned(graph).arena_bytes <= in_file.arena_bytes
