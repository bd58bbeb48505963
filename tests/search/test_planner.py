from dataclasses import replace
from itertools import combinations

import pytest

from regal.graph.builder import GraphBuilder
from regal.graph.file import model_hash
from regal.graph.types import Graph, LoadedModel
from regal.plan.check import require_valid_plan
from regal.plan.file import plan_from_json, plan_to_json
from regal.plan.sub_buffers import compatible, embedded, sub_buffer_choices
from regal.plan.types import ModelPlan, Plan
from regal.search.meter import Meter
from regal.search.methods import METHODS, method_named
from regal.search.packing import before_plan, plan_of_order
from regal.search.planner import Search, peak_floor, plan_model
from tests.graphs import random_graph
from tests.oracles.memory import best_peak, slow_peak


def planned(graph: Graph, method: str = "regal", evaluations: int = 2000, threads: int = 1) -> Plan:
    search = Search(
        method=method_named(method),
        meter=Meter(evaluations=evaluations),
        threads=threads,
        decides_all=method == "regal",
    )
    return plan_model((graph,), search)[0]


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


def with_a_wide_body() -> Graph:
    """Return an op whose body takes much more in the order of the file than in the best one."""
    inner = GraphBuilder("body")
    x = inner.input("x", 2)
    wide = [inner.op("Widen", [x], [100])[0] for _ in range(4)]
    narrow = [inner.op("Narrow", [w], [4])[0] for w in wide]
    outer = GraphBuilder("outer")
    y = outer.op("If", [outer.input("x", 2)], [16], subgraphs=[inner.build(narrow)])
    return outer.build(y)


@pytest.mark.parametrize("method", ["file-order", "random", "exact", "regal"])
def test_a_bound_holds_for_all_plans_of_the_bodies(method: str) -> None:
    graph = with_a_wide_body()
    best = planned(graph)
    assert best.peak_bound == best.peak_bytes
    assert peak_floor(graph) <= best.peak_bytes
    assert planned(graph, method, evaluations=4).peak_bound <= best.peak_bytes


def test_the_body_in_file_order_takes_more() -> None:
    assert before_plan(with_a_wide_body()).peak_bytes > planned(with_a_wide_body()).peak_bytes


def test_an_exact_method_keeps_what_it_has_proven() -> None:
    proofs = 0
    for seed in range(20):
        graph = random_graph(seed, 7)
        plan = planned(graph, "exact")
        assert plan.peak_bound == best_peak(graph) == plan.peak_bytes
        proofs += peak_floor(graph) < plan.peak_bound
    assert proofs  # the cheap bound is not always enough


@pytest.mark.parametrize("method", ["dfs", "lpmf", "random", "file-order"])
def test_a_method_that_proves_nothing_still_states_a_bound(method: str) -> None:
    for seed in range(10):
        graph = random_graph(seed, 6)
        assert 0 < planned(graph, method, evaluations=5).peak_bound <= best_peak(graph)


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


def concat_of_two() -> Graph:
    """Return x -> a, x -> b, concat(a, b) -> y: 8 + 8 bytes into 16."""
    g = GraphBuilder("concat")
    x = g.input("x", 2)
    a = g.op("A", [x], [8])
    b = g.op("B", [x], [8])
    y = g.op("Concat", [*a, *b], [16], parts=[(0, 0), (1, 8)])
    return g.build(outputs=g.op("Sum", y, [1]))


def test_parts_of_a_concatenation_are_written_into_their_place() -> None:
    graph = concat_of_two()
    plan = planned(graph)
    assert before_plan(graph).peak_bytes == 32
    # The whole 16 bytes are live from the first part on: x 2 + y 16.
    assert plan.peak_bytes == 18
    assert {choice[0] for choice in plan.sub_buffers} == {1, 2}
    assert set(plan.offsets) == {0, 3, 4}


def test_a_part_that_would_keep_a_large_whole_alive_stays_apart() -> None:
    g = GraphBuilder("early")
    x = g.input("x", 2)
    early = g.op("A", [x], [2])
    big = g.op("Big", [x], [40], after=[0])
    small = g.op("Small", big, [30])
    y = g.op("Concat", [*early, *small], [32], parts=[(0, 0)])
    graph = g.build(outputs=g.op("Sum", y, [1]), alignment=1)
    plan = planned(graph)
    # With the part inside, 32 bytes would be live beside big and small.
    assert plan.sub_buffers == ()
    assert plan.peak_bytes == 72


@pytest.mark.parametrize("seed", range(40))
def test_no_choice_of_sub_buffers_beats_the_bound(seed: int) -> None:
    graph = random_graph(seed, 2 + seed % 4, concats=True)
    choices = sub_buffer_choices(graph)
    sets = {
        compatible(graph, subset)
        for size in range(len(choices) + 1)
        for subset in combinations(choices, size)
    }
    best = min(best_peak(embedded(graph, chosen)) for chosen in sets)
    plan = planned(graph)
    assert plan.peak_bound <= best <= plan.peak_bytes
    assert plan.arena_bytes <= before_plan(graph).arena_bytes


def test_the_number_of_threads_changes_nothing() -> None:
    graph = random_graph(5, 60)
    assert planned(graph, threads=1) == planned(graph, threads=3)


def test_an_order_that_packs_worse_than_the_file_is_not_taken() -> None:
    for seed in range(30):
        graph = random_graph(seed, 12, alignment=8)
        in_file = replace(before_plan(graph))
        assert planned(graph).arena_bytes <= in_file.arena_bytes


def wide_body() -> Graph:
    """Return x -> A -> c, x -> B -> d, Add(c, d), listed as A, B, C, D: both wide ones at once."""
    g = GraphBuilder("body")
    x = g.input("x", 8)
    a, b = g.op("A", [x], [100]), g.op("B", [x], [100])
    c, d = g.op("C", a, [8]), g.op("D", b, [8])
    return g.build(outputs=g.op("Add", [*c, *d], [8]))


def with_wide_body() -> Graph:
    g = GraphBuilder("outer")
    return g.build(outputs=g.op("If", [g.input("x", 8)], [8], subgraphs=[wide_body()]))


def test_no_bound_holds_a_body_to_an_order_that_could_be_better() -> None:
    graph = with_wide_body()
    # Nothing may be spent: the body stays in the order of the file, 208 bytes instead of 116.
    search = Search(method=method_named("regal"), meter=Meter(seconds=0.0, spent=1))
    (idle,) = plan_model((graph,), search)
    best = planned(graph)
    assert (idle.peak_bytes, best.peak_bytes) == (224, 132)
    assert idle.peak_bound <= 132
    assert best.peak_bound == 132


def test_no_arena_bound_holds_a_body_to_a_packing_that_could_be_better() -> None:
    b = GraphBuilder("body")
    p = b.op("P", [], [3])
    q = b.op("Q", p, [2])
    r = b.op("R", q, [1])
    body = b.build(outputs=b.op("S", r, [4]))
    plan = before_plan(body)
    # The same body, packed one byte worse than its bound.
    loose = replace(plan, arena_bytes=plan.arena_bytes + 1)
    g = GraphBuilder("outer")
    graph = g.build(outputs=g.op("If", [], [1], subgraphs=[body]))
    outer = plan_of_order(graph, (0,), {0: (loose,)}, peak_bound=0)
    assert outer.arena_bytes == loose.arena_bytes + 1
    assert outer.arena_bound == plan.arena_bound + 1
