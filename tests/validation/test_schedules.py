"""Schedules for several devices: diverse, checked, executed."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regal.cost.roofline import graph_cost
from regal.devices.presets import system_named
from regal.errors import BackendError
from regal.graph.types import LoadedModel
from regal.plan.problem import planned_workspace
from regal.plan.schedule_check import require_valid_model_schedule
from regal.plan.schedule_problem import ScheduleProblem, schedule_problem
from regal.search.devices.types import Objective
from regal.search.types import Budget
from regal.validation.executors import ExecutorOptions
from regal.validation.report import validation_to_dict
from regal.validation.schedule_plans import RandomSchedules, schedule_plans, split_schedule
from regal.validation.validate import ValidationOptions, validate_model
from tests.graphs import random_graph
from tests.onnx_models import branches, save

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
TIME = Objective(name="time", per_ns=1, per_byte=0)
ONCE = Budget(evaluations=1)


def problem_of(model: LoadedModel, devices: str) -> ScheduleProblem:
    system, graph = system_named(devices), model.graph
    cost = graph_cost(graph, system)
    return schedule_problem(graph, system, cost, planned_workspace(graph, {}), in_place=False)


def plain(seed: int, n: int, colocated: bool = False) -> LoadedModel:
    graph = random_graph(seed, n, alignment=1)
    if colocated:
        ops = [replace(op, colocation=f"g{i % 3}") for i, op in enumerate(graph.ops)]
        graph = replace(graph, ops=tuple(ops))
    return LoadedModel(framework="graph", entries=(graph,), source=None)


@given(st.integers(0, 30), st.integers(1, 12), st.booleans())
@settings(deadline=None, max_examples=30)
def test_random_schedules_keep_groups_together(seed: int, n: int, colocated: bool) -> None:
    problem = problem_of(plain(seed, n, colocated), "cpu:3")
    for method in (RandomSchedules(0.5), split_schedule):
        found = method(problem, TIME, ONCE, seed=seed, threads=1)
        placement = np.asarray(found.schedule.placement)
        for group in set(problem.groups.tolist()) - {-1}:
            assert len(set(placement[problem.groups == group].tolist())) == 1
        again = method(problem, TIME, ONCE, seed=seed, threads=1)
        assert np.asarray(again.schedule.placement).tolist() == placement.tolist()


def test_a_split_gives_each_device_one_stretch_of_the_file() -> None:
    problem = problem_of(plain(1, 20), "cpu:3")
    for seed in range(20):
        found = split_schedule(problem, TIME, ONCE, seed=seed, threads=1)
        placement = np.asarray(found.schedule.placement).tolist()
        assert placement == sorted(placement)


def test_an_op_stays_with_what_it_reads_as_often_as_asked() -> None:
    problem = problem_of(plain(2, 60), "cpu:4")
    cuts = {}
    for stay in (1.0, 0.5, 0.0):
        moved = 0
        for seed in range(20):
            found = RandomSchedules(stay)(problem, TIME, ONCE, seed=seed, threads=1)
            placement = np.asarray(found.schedule.placement)
            edges = problem.data_edges
            moved += int((placement[edges[:, 0]] != placement[edges[:, 1]]).sum())
        cuts[stay] = moved
    assert cuts[1.0] < cuts[0.5] < cuts[0.0]


def test_schedules_are_diverse_and_pass_the_checker() -> None:
    model, system = plain(3, 15), system_named("cpu:2")
    costs = [graph_cost(graph, system) for graph in model.entries]
    plans = schedule_plans(model, system, costs, 9, seed=0)
    names = [name for name, _ in plans]
    assert names[0] == "before"
    assert len(names) == len(set(names)) == 9
    placements = {plan.plans[0].schedule.placement for _, plan in plans}
    assert len(placements) >= 5
    for _, plan in plans:
        require_valid_model_schedule(model, costs, plan)


def test_a_graph_of_one_op_soon_has_no_other_schedules() -> None:
    model, system = plain(0, 1), system_named("cpu:2")
    costs = [graph_cost(graph, system) for graph in model.entries]
    assert 1 <= len(schedule_plans(model, system, costs, 9, seed=0)) <= 2


def test_onnx_runtime_executes_schedules_on_two_threads(tmp_path: Path) -> None:
    options = ValidationOptions(
        plans=3, repeats=1, devices="cpu:2", executor=ExecutorOptions(invocations=1)
    )
    found = validate_model(save(branches(), tmp_path / "m.onnx"), options)
    document = json.loads(json.dumps(validation_to_dict(found), allow_nan=False))
    schema = json.loads((SCHEMAS / "validation.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)
    assert found.system == "cpu:2"
    assert [trial.measured.failure for trial in found.trials] == [""] * 3
    assert all(trial.measured.time_ns for trial in found.trials)
    assert found.time is not None
    assert found.time.count == 3


def test_a_kind_of_model_that_nothing_spreads_is_a_failure_in_words(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    from tests.frontends.tflite_models import diamond
    from tests.frontends.tflite_writer import write_tflite

    path = tmp_path / "m.tflite"
    path.write_bytes(write_tflite(diamond()))
    with pytest.raises(BackendError, match="a 'tflite' file cannot say which device runs an op"):
        validate_model(path, ValidationOptions(plans=2, devices="cpu:2"))
