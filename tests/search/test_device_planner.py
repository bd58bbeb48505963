"""From a model to checked schedules: what comes first, what is kept, what repeats."""

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from regal._native import Cancel, complete_schedule, score_devices, simulate_devices
from regal.cost.types import GraphCost
from regal.devices.types import System
from regal.errors import UsageError
from regal.graph.builder import GraphBuilder
from regal.graph.types import Graph, LoadedModel
from regal.plan.schedule import ModelSchedule
from regal.plan.schedule_check import require_valid_model_schedule
from regal.plan.schedule_problem import ScheduleProblem
from regal.search.devices.objectives import Weights, objective_of
from regal.search.devices.planner import DeviceSearch, before_schedule, plan_schedules
from regal.search.devices.types import DeviceOutcome, Objective
from regal.search.meter import Meter
from regal.search.types import Budget
from tests.graphs import random_graph
from tests.systems import cost_of, random_cost, random_system, system_of


class RandomPlacements:
    """A method that tries random placements in the order of the graph."""

    def __init__(self) -> None:
        self.budgets: list[int | None] = []

    def __call__(
        self,
        problem: ScheduleProblem,
        objective: Objective,
        budget: Budget,
        *,
        seed: int,
        threads: int,
        cancel: Cancel | None = None,
    ) -> DeviceOutcome:
        """Return the best of a few."""
        self.budgets.append(budget.evaluations)
        rng = random.Random(seed)
        tries = min(budget.evaluations or 5, 5)
        outcomes = []
        for _ in range(tries):
            of_group = [rng.randrange(problem.n_devices) for _ in range(problem.native.n_groups)]
            placement = [of_group[g] for g in problem.native.group.tolist()]
            found = complete_schedule(
                problem.native, np.array(placement, dtype=np.int64), np.arange(problem.n_ops)
            )
            figures = simulate_devices(problem.native, found)
            assert figures is not None
            outcomes.append((found, figures))
        best = outcomes[0]
        for other in outcomes[1:]:
            scores = [
                score_devices(o[1], objective.per_ns, objective.per_byte) for o in (other, best)
            ]
            if scores[0].is_better_than(scores[1]):
                best = other
        return DeviceOutcome(schedule=best[0], figures=best[1], evaluations=tries, seconds=0.0)


def model_of(*graphs: Graph) -> LoadedModel:
    return LoadedModel(framework="graph", entries=graphs, source=None)


def planned(
    model: LoadedModel,
    system: System,
    costs: Sequence[GraphCost],
    *,
    objective: str = "time",
    evaluations: int | None = None,
    seed: int = 0,
    method: RandomPlacements | None = None,
) -> tuple[ModelSchedule, ModelSchedule]:
    before = before_schedule(model, system, costs)
    search = DeviceSearch(
        method=method or RandomPlacements(),
        method_name="random",
        objective=objective,
        meter=Meter(evaluations=evaluations),
        seed=seed,
    )
    return before, plan_schedules(model, system, costs, search, before)


def test_before_everything_runs_on_the_first_device_that_may_run_it() -> None:
    graph = random_graph(5, 6)
    system = system_of(3)
    cost = cost_of(graph, system, 3)
    rows = list(cost.op_ns)
    rows[2] = (-1, -1, 3)
    before = before_schedule(model_of(graph), system, [replace(cost, op_ns=tuple(rows))])
    assert before.plans[0].schedule.placement == (0, 0, 2, 0, 0, 0)


def test_before_on_one_device_takes_the_order_that_is_given() -> None:
    g = GraphBuilder("order")
    x = g.input("x", 1)
    a, b = g.op("A", [x], [1]), g.op("B", [x], [1])
    graph = g.build(outputs=[*a, *b])
    system = system_of(1)
    before = before_schedule(model_of(graph), system, [cost_of(graph, system)], [1, 0])
    assert before.plans[0].schedule.order == (1, 0)


def test_before_may_exceed_the_memory_and_says_by_how_much() -> None:
    g = GraphBuilder("large")
    out = g.op("A", [g.input("x", 5), g.parameter("w", 10)], [5])
    graph = g.build(outputs=out)
    system = system_of(2, memory=12)
    before = before_schedule(model_of(graph), system, [cost_of(graph, system)])
    assert before.plans[0].figures.overflow_bytes == 5 + 10 + 5 - 12


def test_a_found_schedule_is_never_worse_than_today() -> None:
    for seed in range(60):
        graph = random_graph(seed, 1 + seed % 8)
        system = random_system(seed, 1 + seed % 3)
        cost = random_cost(graph, system, seed)
        objective = ("time", "memory", "balanced")[seed % 3]
        before, found = planned(model_of(graph), system, [cost], objective=objective, seed=seed)
        require_valid_model_schedule(model_of(graph), [cost], found)
        old, new = before.plans[0].figures, found.plans[0].figures
        judge = objective_of(
            objective, Weights(), before_time_ns=old.time_ns, before_peak_bytes=old.peak
        )
        scores = [
            (f.overflow_bytes, judge.value(f.time_ns, f.peak), f.time_ns, f.peak)
            for f in (new, old)
        ]
        assert scores[0] <= scores[1], seed
        assert found.plans[0].time_bound_ns <= new.time_ns
        assert found.plans[0].peak_bound <= new.peak


def test_equal_seeds_give_equal_schedules() -> None:
    graph = random_graph(7, 8)
    system = system_of(2)
    cost = random_cost(graph, system, 7)
    first, again = (planned(model_of(graph), system, [cost], seed=3)[1] for _ in range(2))
    assert first == again


def test_the_main_entry_gets_what_the_others_leave() -> None:
    graphs = random_graph(1, 6), random_graph(2, 6)
    system = system_of(2)
    costs = [cost_of(graph, system) for graph in graphs]
    method = RandomPlacements()
    _, found = planned(model_of(*graphs), system, costs, evaluations=12, method=method)
    assert method.budgets == [12, 7]
    assert found.evaluations == 10


def test_bodies_are_blocks_of_their_op_on_its_device() -> None:
    b = GraphBuilder("body")
    inner = b.op("Inner", [b.input("i", 4)], [4], name="inner")
    body = b.build(outputs=inner)
    g = GraphBuilder("outer")
    x = g.input("x", 4)
    first = g.op("A", [x], [4], name="a")
    out = g.op("If", first, [4], name="if", subgraphs=[body, body])
    graph = g.build(outputs=out)
    system = system_of(2)
    _, found = planned(model_of(graph), system, [cost_of(graph, system)])
    (plan,) = found.plans
    assert [p.peak_bytes for p in plan.bodies[1]] == [8, 8]
    assert plan.workspaces[1].bytes == 8
    assert plan.workspaces[1].device == plan.schedule.placement[1]


def test_balanced_weighs_time_and_peak_by_what_they_are_before() -> None:
    balanced = objective_of(
        "balanced", Weights(time=3.0, memory=1.0), before_time_ns=10, before_peak_bytes=0
    )
    assert balanced.value(20, 5) == 3.0 * 20 / 10 + 5.0
    assert objective_of("time", Weights(), before_time_ns=9, before_peak_bytes=9).value(4, 7) == 4
    assert objective_of("memory", Weights(), before_time_ns=9, before_peak_bytes=9).value(4, 7) == 7
    with pytest.raises(
        UsageError, match="unknown objective 'speed'; known: time, memory, balanced"
    ):
        objective_of("speed", Weights(), before_time_ns=1, before_peak_bytes=1)
    with pytest.raises(UsageError, match="give numbers of 0 or more"):
        Weights(time=-1.0)
