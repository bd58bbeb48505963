"""Offsets of schedules: exact lives on every device, and one device as the one-device planner."""

import random
from pathlib import Path

import numpy as np
import pytest

from regal._native import complete_schedule, simulate_devices
from regal.cost.types import GraphCost
from regal.devices.types import System
from regal.frontends import load
from regal.graph.builder import GraphBuilder
from regal.graph.types import Graph
from regal.plan.problem import planned_workspace
from regal.plan.schedule import SchedulePlan
from regal.plan.schedule_check import check_schedule_plan
from regal.plan.schedule_problem import schedule_problem
from regal.search.devices.packing import packed_schedule
from regal.search.packing import before_plan, plan_of_order
from tests.graphs import random_graph
from tests.systems import random_cost, random_system, system_of

MODELS = sorted((Path(__file__).parents[2] / "examples" / "models").glob("*.*"))


def random_plan(graph: Graph, system: System, seed: int) -> SchedulePlan:
    """Return the checked plan of a random placement in the order of the graph."""
    cost = random_cost(graph, system, seed)
    bodies = {
        i: tuple(before_plan(body) for body in op.subgraphs)
        for i, op in enumerate(graph.ops)
        if op.subgraphs
    }
    problem = schedule_problem(graph, system, cost, planned_workspace(graph, bodies))
    rng = random.Random(seed)
    of_group = [rng.randrange(len(system.devices)) for _ in range(problem.native.n_groups)]
    placement = np.array([of_group[g] for g in problem.native.group], dtype=np.int64)
    found = complete_schedule(problem.native, placement, np.arange(problem.n_ops))
    figures = simulate_devices(problem.native, found)
    assert figures is not None
    plan = packed_schedule(graph, problem, found, figures, bodies, time_bound_ns=0, peak_bound=0)
    check_schedule_plan(graph, system, cost, plan)
    return plan


def test_random_schedules_are_packed_without_a_fault() -> None:
    spread = 0
    for seed in range(300):
        graph = random_graph(seed, 1 + seed % 9, alignment=1 + seed % 3, concats=seed % 2 == 1)
        plan = random_plan(graph, random_system(seed, 1 + seed % 3), seed)
        spread += len(plan.schedule.transfers) > 0
        for peak, arena in zip(plan.figures.peak_bytes, plan.arena_bytes, strict=True):
            assert peak <= arena, seed
    assert spread > 100


def one_device_arenas(graph: Graph) -> tuple[SchedulePlan, int, int]:
    bodies = {
        i: tuple(before_plan(body) for body in op.subgraphs)
        for i, op in enumerate(graph.ops)
        if op.subgraphs
    }
    one = plan_of_order(graph, tuple(range(len(graph.ops))), bodies, peak_bound=0)
    return random_plan(graph, system_of(1), 0), one.peak_bytes, one.arena_bytes


def test_one_device_has_the_peak_and_the_arena_of_the_one_device_planner() -> None:
    for seed in range(200):
        graph = random_graph(seed, 1 + seed % 9, alignment=1 + seed % 3, concats=seed % 2 == 1)
        plan, peak, arena = one_device_arenas(graph)
        assert plan.figures.peak_bytes == (peak,), seed
        assert plan.arena_bytes == (arena,), seed


@pytest.mark.parametrize("path", [p for p in MODELS if p.suffix != ".md"], ids=lambda p: p.name)
def test_the_shipped_models_have_the_same_plan_on_one_device(path: Path) -> None:
    for graph in load(path).entries:
        plan, peak, arena = one_device_arenas(graph)
        assert plan.figures.peak_bytes == (peak,)
        assert plan.arena_bytes == (arena,)
        assert [copy.allocation.device for copy in plan.copies] == [0] * len(plan.copies)


def test_lives_that_meet_between_the_starts_of_ops_may_share_bytes() -> None:
    # Steps of op starts alone would see the transferred copies of a and b together on device 1.
    g = GraphBuilder("relay")
    x = g.input("x", 1)
    (a,) = g.op("A", [x], [8], name="a")
    (b,) = g.op("B", [a], [8], name="b")
    (c,) = g.op("C", [a], [1], name="c")
    (d,) = g.op("D", [b], [1], name="d")
    graph = g.build(outputs=[c, d])
    system = system_of(2, latency=0, gigabytes_per_s=8.0)  # a copy takes 1 ns
    cost = GraphCost(op_ns=((1, 1), (4, 4), (1, 1), (1, 1)), sources=("file",) * 4)
    problem = schedule_problem(graph, system, cost)
    found = complete_schedule(
        problem.native, np.array([0, 0, 1, 1], dtype=np.int64), np.arange(4, dtype=np.int64)
    )
    figures = simulate_devices(problem.native, found)
    assert figures is not None
    # Device 1: copy of a in [1, 3) with c in [2, 3); copy of b in [5, 7) with d in [6, 7).
    assert figures.op_start.tolist() == [0, 1, 2, 6]
    assert figures.peak.tolist()[1] == 8 + 1 + 1
    plan = packed_schedule(graph, problem, found, figures, {}, time_bound_ns=0, peak_bound=0)
    check_schedule_plan(graph, system, cost, plan)
    on_1 = {copy.storage: copy for copy in plan.copies if copy.allocation.device == 1}
    steps = {s: (c.allocation.first_step, c.allocation.last_step) for s, c in on_1.items()}
    assert steps == {a: (0, 1), c: (1, 3), b: (2, 3), d: (3, 3)}
    assert plan.arena_bytes[1] == 10
