"""Plan files for several devices: they come back as they were, and broken ones are refused."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from regal.cost.types import GraphCost
from regal.errors import PlanError, RegalError
from regal.graph.builder import GraphBuilder
from regal.graph.file import model_hash
from regal.graph.types import Graph, LoadedModel
from regal.plan.file import plan_from_json, plan_to_json
from regal.plan.schedule import ModelSchedule
from regal.plan.schedule_check import require_valid_model_schedule
from regal.plan.schedule_costs import require_possible_costs
from regal.plan.schedule_file import is_schedule_file, schedule_from_json, schedule_to_json
from regal.plan.types import ModelPlan
from regal.search.devices.planner import before_schedule
from regal.search.packing import before_plan
from tests.graphs import random_graph
from tests.hostile_json import spoiled
from tests.search.test_device_packing import random_plan
from tests.systems import cost_of, device, random_cost, random_system, system_of

SCHEMA = Path(__file__).parents[2] / "docs" / "schemas" / "plan.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))


def model_of(*graphs: Graph) -> LoadedModel:
    return LoadedModel(framework="graph", entries=graphs, source=None)


def random_case(seed: int) -> tuple[LoadedModel, list[GraphCost], ModelSchedule]:
    graphs = [random_graph(seed + 1000 * i, seed % 7, alignment=4) for i in range(1 + seed % 2)]
    system = random_system(seed, 1 + seed % 3)
    model = model_of(*graphs)
    return (
        model,
        [random_cost(graph, system, seed) for graph in graphs],
        ModelSchedule(
            graph_hash=model_hash(model),
            system=system,
            objective="time",
            method="random",
            seed=seed,
            evaluations=1,
            plans=tuple(random_plan(graph, system, seed) for graph in graphs),
        ),
    )


def example() -> tuple[LoadedModel, dict[str, Any]]:
    """Return x -> a -> b on two devices, and its plan file."""
    g = GraphBuilder("example")
    out = g.op("B", g.op("A", [g.input("x", 4)], [4], name="a"), [4], name="b")
    model = model_of(g.build(outputs=out))
    system = system_of(2)
    costs = [cost_of(model.graph, system, 3)]
    text = schedule_to_json(model, costs, before_schedule(model, system, costs))
    return model, json.loads(text)


def read_and_judge(data: bytes, model: LoadedModel) -> ModelSchedule:
    schedule, costs = schedule_from_json(data, model, "p.json")
    return require_valid_model_schedule(model, costs, schedule)


def message_of(model: LoadedModel, document: dict[str, Any]) -> str:
    with pytest.raises(PlanError) as error:
        read_and_judge(json.dumps(document).encode(), model)
    return str(error.value)


def test_a_schedule_comes_back_as_it_was_and_follows_its_schema() -> None:
    for seed in range(150):
        model, costs, schedule = random_case(seed)
        text = schedule_to_json(model, costs, schedule)
        if seed < 15:
            assert list(VALIDATOR.iter_errors(json.loads(text))) == []
        again, costs_again = schedule_from_json(text.encode(), model)
        assert (again, list(costs_again)) == (schedule, costs), seed
        require_valid_model_schedule(model, costs_again, again)
        assert schedule_to_json(model, costs_again, again) == text, seed


def test_only_plans_with_a_system_are_for_several_devices() -> None:
    model, document = example()
    assert is_schedule_file(json.dumps(document).encode())
    one = ModelPlan(
        graph_hash=model_hash(model),
        method="before",
        seed=0,
        evaluations=0,
        plans=(before_plan(model.graph),),
    )
    assert not is_schedule_file(plan_to_json(model, one).encode())
    assert not is_schedule_file(b"[1]")
    assert not is_schedule_file(b"{")


def test_the_file_of_an_example_reads_well() -> None:
    _, document = example()
    assert document["placement"] == {"a": "d0", "b": "d0"}
    assert document["order"] == {"d0": ["a", "b"], "d1": []}
    assert document["times_ns"] == {"a": [0, 3], "b": [3, 6]}
    assert (document["time_s"], document["time_ns"], document["peak_bytes"]) == (6e-9, 6, 8)
    assert document["peak_bytes_per_device"] == {"d0": 8, "d1": 0}
    assert document["homes"] == {"0": "d0"}
    assert document["costs"]["a"] == {"ns": [3, 3], "source": "file"}
    first = {"device": "d0", "offset": 4, "bytes": 4, "first_step": 0, "last_step": 0}
    assert document["offsets"]["0"] | {"offset": 4} == {**first, "start_ns": 0, "end_ns": 3}


def test_what_is_wrong_with_a_file_is_named() -> None:
    changes: list[tuple[list[str], Any, str]] = [
        (["schema"], "x", "'p.json' has schema 'x'; a plan file has 'regal.plan/1'"),
        (["entries"], [1], "'p.json' has 2 entries, the model 1"),
        (["devices"], ["d0"], "'p.json' lists devices ['d0'], not ['d0', 'd1']"),
        (["placement"], {"a": "d0"}, "plan has no placement for op 'b'"),
        (["placement", "c"], "d0", "plan names op 'c', which the model does not have"),
        (["placement", "b"], "d9", "plan names device 'd9', which its system does not have"),
        (
            ["order", "d0"],
            ["b", "a"],
            "plan of 'example' orders the ops of 'd0' otherwise than by the times at which they"
            " start there",
        ),
        (["time_s"], 7e-9, "plan states time_s = 7e-09, it is 6e-09"),
        (["peak_bytes"], 4, "plan states peak_bytes = 4, it is 8"),
        (["fusion_groups"], [[0]], "plan has fusion_groups [[0]]; expected none"),
        (
            ["costs", "a", "ns"],
            [3, 0],
            "plan gives op 'a' the times [3, 0]; it needs 2 of at least 1 ns, or -1 where it"
            " cannot run",
        ),
        (["costs", "a", "ns"], [2, 3], "plan of 'example' states time_ns = 6, it is 5"),
        (["costs", "a", "ns"], [-1, 3], "op 'a' is placed on 'd0', which cannot run it"),
        (
            ["costs", "a", "source"],
            "guess",
            "plan holds 'guess', expected one of bytes, roofline, profile, file",
        ),
        (["seed"], True, "plan holds True, expected an integer below 2^62"),
        (["evaluations"], -1, "plan holds -1, expected 0 or more"),
        (["lower_bound", "peak_bytes"], -1, "plan holds -1, expected 0 or more"),
        (["objective"], "speed", "plan holds 'speed', expected one of time, memory, balanced"),
        (["peak_bytes"], 8.0, "plan holds 8.0, expected an integer below 2^62"),
        (["layouts"], None, "plan has layouts None; expected none"),
        (["copies"], [{}], "'p.json' is not a whole plan: 'storage' is missing"),
        (["offsets", "01"], {}, "plan places storage '01', expected a number"),
    ]
    for path, value, message in changes:
        model, document = example()
        node = document
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = value
        assert message_of(model, document) == message
    model, document = example()
    del document["system"]["links"][0]
    assert message_of(model, document) == "system '2 devices' has no link from 'd0' to 'd1'"


def test_a_plan_without_a_system_is_on_one_device_in_all_its_parts() -> None:
    model, _ = example()
    one = ModelPlan(
        graph_hash=model_hash(model),
        method="before",
        seed=0,
        evaluations=0,
        plans=(before_plan(model.graph),),
    )
    text = plan_to_json(model, one)
    assert plan_from_json(text.encode(), model) == one
    changes: list[tuple[list[str], Any, str]] = [
        (["devices"], ["cpu0", "cpu1"], "'p.json' has no system, but lists devices"),
        (["placement", "b"], "cpu1", "plan of 'example' does not place each op on 'cpu0'"),
        (["placement"], {"a": "cpu0"}, "plan of 'example' does not place each op on 'cpu0'"),
        (["transfers"], [{"tensor": 1}], "plan has transfers [{'tensor': 1}]; expected none"),
        (["offsets", "0", "device"], "gpu0", "plan names device 'gpu0'; it has 'cpu0' alone"),
        (["lower_bound", "arena_bytes"], -4, "plan holds -4, expected 0 or more"),
    ]
    for path, value, message in changes:
        document = json.loads(text)
        node = document
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = value
        with pytest.raises(PlanError) as error:
            plan_from_json(json.dumps(document).encode(), model, "p.json")
        assert str(error.value).startswith(message)


def test_a_plan_states_the_times_of_the_file_and_none_where_an_op_cannot_run() -> None:
    """Measured times and those of another cost model may be any."""
    graph = example()[0].graph
    ops = (replace(graph.ops[0], times_ns={"cpu": 7, "": 5}), graph.ops[1])
    model = model_of(replace(graph, ops=ops))
    cpu, npu = device("c"), replace(device("n", "npu"), flops_per_s={"int8": 1e9})
    system = replace(system_of(2), devices=(cpu, npu))

    def judge(a: tuple[int, int], b: tuple[int, int]) -> None:
        cost = GraphCost(op_ns=(a, b), sources=("file", "roofline"))
        require_possible_costs(model, system, [cost])

    judge((7, 5), (9, -1))
    judge((7, 5), (900, -1))
    with pytest.raises(PlanError, match=r"plan gives op 'a' 6 ns on 'c'; the model's file says 7"):
        judge((6, 5), (9, -1))
    with pytest.raises(PlanError, match=r"gives op 'b' 9 ns on 'n', which cannot run it"):
        judge((7, 5), (9, 9))


def test_a_plan_of_another_model_is_refused() -> None:
    _, document = example()
    assert message_of(model_of(random_graph(3, 3)), document).startswith(
        "'p.json' is a plan of another graph: its hash is"
    )


def test_spoiled_files_end_in_one_line_or_in_a_plan_that_is_right() -> None:
    cases = [random_case(seed) for seed in range(30)]
    documents = [json.loads(schedule_to_json(*case)) for case in cases]
    accepted, refused = 0, []
    for seed in range(600):
        data = spoiled(documents[seed % 30], random.Random(seed))
        try:
            read_and_judge(data, cases[seed % 30][0])
            accepted += 1
        except RegalError as error:
            refused.append(str(error))
    assert accepted > 10
    assert len(refused) > 300
    assert not any("\n" in message for message in refused)
