"""Graphs from a running TensorFlow: concrete functions, training steps, Keras models, tf.Graph."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from regal import frontends
from regal.child import run_module
from regal.errors import PlanError
from regal.graph.memory import state_bytes
from regal.graph.types import Graph, Role
from regal.plan.check import require_valid_plan
from regal.search.packing import before_plan
from tests.frontends.tensorflow_models import names, needs_tensorflow, op_named, peak, waits

pytestmark = needs_tensorflow
FIXTURES = Path(__file__).with_name("tensorflow_fixtures")


class Made:
    """What the child made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.facts: dict[str, Any] = json.loads(folder.joinpath("facts.json").read_text())

    def graph(self, name: str) -> Graph:
        return frontends.load(self.folder / f"{name}.json").graph


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return the graphs of one child process for all tests."""
    folder = tmp_path_factory.mktemp("objects")
    run = run_module("tests.frontends.tensorflow_objects", [str(folder)], 300)
    assert folder.joinpath("facts.json").is_file(), run.stderr[-2000:]
    return Made(folder)


def test_a_keras_model_is_its_call_with_its_weights_as_state(made: Made) -> None:
    graph = made.graph("inference")
    assert [graph.tensors[t].shape for t in graph.inputs] == [(2, 16, 16, 3)]
    assert state_bytes(graph) == made.facts["weights"]
    assert sum(op.kind == "Conv2D" for op in graph.ops) == 2
    assert not any(op.subgraphs for op in graph.ops)
    # Both summands (2 x 14 x 14 x 8 floats each): convolution, bias and sum work in place.
    assert peak(graph) == 2 * 12_544


def test_a_training_step_has_gradients_and_writes_all_its_variables(made: Made) -> None:
    graph = made.graph("training")
    kinds = [op.kind for op in graph.ops]
    assert kinds.count("Conv2DBackpropFilter") == 2
    # Weights, their momenta, learning rate and step counter.
    assert state_bytes(graph) == 2 * made.facts["weights"] + 4 + 8
    assert [graph.tensors[t].shape for t in graph.outputs] == [()]
    written = [op for op in graph.ops if op.kind.startswith("Assign")]
    assert len(written) >= 2 * 6 + 1


def test_a_training_step_reads_its_weights_before_it_changes_them(made: Made) -> None:
    graph = made.graph("training")
    plan = before_plan(graph, None)
    require_valid_plan(graph, plan)
    place = {op.name: i for i, op in enumerate(graph.ops)}
    write = next(op for op in graph.ops if op.kind == "AssignVariableOp" and op.colocation)
    read = next(
        graph.ops[i]
        for i in write.control_inputs
        if graph.ops[i].kind == "ReadVariableOp" and graph.ops[i].colocation == write.colocation
    )
    order = [i for i in range(len(graph.ops)) if i != place[read.name]]
    order.insert(order.index(place[write.name]) + 1, place[read.name])
    with pytest.raises(PlanError):
        require_valid_plan(graph, replace(plan, order=tuple(order)))


def test_a_recurrent_layer_is_a_loop_that_runs_once_per_step(made: Made) -> None:
    (loop,) = [op for op in made.graph("recurrent").ops if op.subgraphs]
    assert loop.kind == "While"
    assert loop.attributes["trip_count"] == 12
    assert not [note for note in made.facts["notes"]["recurrent"] if "depend on data" in note]


def test_captured_values_become_variables_and_constants(made: Made) -> None:
    graph = made.graph("captures")
    assert [graph.tensors[t].name for t in graph.inputs] == ["x:0"]
    roles = sorted(t.role for t in graph.tensors if t.role in (Role.STATE, Role.CONSTANT))
    assert roles.count(Role.STATE) == 1
    assert state_bytes(graph) == 60
    write = next(op for op in graph.ops if op.kind == "AssignAddVariableOp")
    assert any(graph.ops[i].kind == "ReadVariableOp" for i in write.control_inputs)


def test_fetches_choose_what_is_planned(made: Made) -> None:
    fetched, whole = made.graph("fetched"), made.graph("whole")
    assert [fetched.tensors[t].name for t in fetched.outputs] == ["y:0"]
    assert "update" in names(fetched)
    assert "other" not in names(fetched)
    assert "other" in names(whole)


def test_what_is_no_function_graph_or_model_is_refused(made: Made) -> None:
    first, *rest = made.facts["refused"]
    assert first.endswith("is no concrete function; get one with get_concrete_function(...)")
    assert rest == [
        "str is no tf.Graph",
        "Sequential is no Keras model with known inputs; call it once on a batch",
        "the model has no input 'z'; it has: x",
    ]


def test_a_keras_file_and_a_saved_model_hold_the_same_graph(made: Made) -> None:
    in_memory = made.graph("inference")
    for path in (made.folder / "model.keras", made.folder / "saved"):
        graph = frontends.load(path, dims={"batch": 2}).graph
        assert sorted(op.kind for op in graph.ops if op.kind in ("Conv2D", "MatMul", "Mean")) == [
            "Conv2D",
            "Conv2D",
            "MatMul",
            "Mean",
        ]
        assert peak(graph) == peak(in_memory)
        assert state_bytes(graph) == state_bytes(in_memory)


def test_loops_and_branches_that_tensorflow_1_writes(made: Made) -> None:
    graph = frontends.load(FIXTURES / "control_flow_v1.pbtxt").graph
    (loop,) = [op for op in graph.ops if op.kind == "WhileFrame"]
    assert loop.attributes["trip_count"] == 3
    (inner,) = [op for op in loop.subgraphs[0].ops if op.kind == "WhileFrame"]
    assert inner.attributes["trip_count"] == 2
    # x, the value of the outer and of the inner loop, and the inner one's next: 64 each. The
    # counters of both loops: 4 where they leave, 4 where they are added to, and 1 of a test.
    assert peak(graph) == 4 * 64 + 4 + 4 + 4 + 1


def test_a_training_step_that_tensorflow_1_writes(made: Made) -> None:
    graph = frontends.load(FIXTURES / "training_v1.pbtxt").graph
    assert state_bytes(graph) == 2 * (6 + 2) * 4
    update = "train/update_w/ApplyMomentum"
    assert waits(graph, update) >= {"w/read", "MatMul", "w/Momentum/read"}
    # The weights and their momentum are restored after the step that changes both.
    after = [op.name for op in graph.ops if op.kind == "Assign" and update in waits(graph, op.name)]
    assert len(after) == 2
    assert all(name.startswith("save/") for name in after)
    assert op_named(graph, "save/SaveV2").devices == ("cpu",)
    assert op_named(graph, "save/SaveV2").colocation == ""


def test_functions_that_tensorflow_2_writes(made: Made) -> None:
    graph = frontends.load(FIXTURES / "functions_v2.pbtxt").graph
    bodies = {op.kind: op for op in graph.ops if op.subgraphs}
    assert set(bodies) == {"StatelessWhile", "StatelessIf", "PartitionedCall"}
    assert bodies["StatelessWhile"].attributes["trip_count"] == 7
    assert sum(op.kind == "PartitionedCall" for op in graph.ops) == 2
