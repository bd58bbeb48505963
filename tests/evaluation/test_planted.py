"""Planted graphs: the schedule they were cut out of is legal, and nothing can be better."""

from __future__ import annotations

import itertools

import pytest

from regal import _native
from regal.cost.roofline import graph_cost
from regal.devices.presets import system_named
from regal.evaluation.planted import PLANTED, planted_graph
from regal.plan.schedule_problem import schedule_problem
from regal.plan.schedule_rows import in_place_rows, native_of
from regal.search.devices.methods import device_method_named
from regal.search.devices.types import Objective
from regal.search.types import Budget

CASES = [
    (kind, n_ops, devices, seed)
    for kind in PLANTED
    for n_ops, devices in ((4, 2), (20, 2), (21, 3), (60, 4))
    for seed in range(4)
]


@pytest.mark.parametrize(("kind", "n_ops", "devices", "seed"), CASES)
def test_the_planted_schedule_is_legal_and_reaches_the_proven_bound(
    kind: str, n_ops: int, devices: int, seed: int
) -> None:
    planted = planted_graph(kind, n_ops, devices, seed)
    system = system_named(str(devices))
    problem = schedule_problem(planted.graph, system, graph_cost(planted.graph, system))
    schedule = native_of(planted.graph, problem, planted.schedule)
    rows = in_place_rows(planted.graph, problem, planted.schedule)
    verdict, figures = _native.check_schedule(problem.native, schedule, rows)
    assert verdict.fault is _native.ScheduleFault.NONE
    if kind == "time":
        work = sum(op.times_ns[""] for op in planted.graph.ops)
        assert figures.time == planted.time_ns == work / devices
        assert _native.device_time_bound(problem.native) == planted.time_ns
    else:
        kept = sum(planted.graph.tensors[t].bytes for t in planted.graph.outputs)
        assert figures.most == planted.peak_bytes == kept / devices


def test_no_method_is_better_than_what_was_planted() -> None:
    for kind, n_ops, devices, seed in CASES[::3]:
        planted = planted_graph(kind, n_ops, devices, seed)
        system = system_named(str(devices))
        problem = schedule_problem(planted.graph, system, graph_cost(planted.graph, system))
        objective = Objective(name=kind, per_ns=kind == "time", per_byte=kind == "memory")
        found = device_method_named("regal")(
            problem, objective, Budget(evaluations=500), seed=0, threads=1
        )
        least = planted.time_ns if kind == "time" else planted.peak_bytes
        assert least is not None
        assert objective.value(found.figures.time, found.figures.most) >= least


def test_the_seed_decides_the_graph_and_the_file_order_tells_nothing() -> None:
    assert planted_graph("time", 40, 2, 1).graph == planted_graph("time", 40, 2, 1).graph
    assert planted_graph("time", 40, 2, 1).graph != planted_graph("time", 40, 2, 2).graph
    placement = planted_graph("memory", 40, 2, 0).schedule.placement
    changes = sum(a != b for a, b in itertools.pairwise(placement))
    assert changes > 5  # one chain after the other would change once
