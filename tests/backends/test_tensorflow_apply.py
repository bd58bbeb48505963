"""Plans written into TensorFlow files: devices, constants, steps, forms of files."""

from __future__ import annotations

import gzip
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
import pytest

import regal
from regal.backends import backend_of, schedule_backend_of
from regal.backends.tensorflow import apply, apply_schedule, encoded, verify
from regal.backends.tensorflow.devices import (
    logical_cpus,
    tensorflow_devices,
    worker_devices,
)
from regal.backends.tensorflow.nodes import Nodes
from regal.backends.tensorflow.step import initializers, step_nodes
from regal.backends.types import RuntimeCheck, Verification
from regal.errors import BackendError, PlanError, UsageError
from regal.files import write_all
from regal.frontends.tensorflow import load
from regal.frontends.tensorflow.read import read_graph_file
from regal.frontends.tensorflow.schema import parse
from tests.backends.simple_plans import model_plan, plan_in_order
from tests.backends.simple_schedules import model_schedule, random_schedule, system
from tests.backends.test_tensorflow_run import call
from tests.corpus import corpus_file
from tests.systems import device
from tests.tf_graphs import (
    FLOAT,
    NUMBER_OF,
    assign_add,
    branches,
    constant,
    graph,
    node,
    placeholder,
    read,
    save,
    switch,
    unary,
    variable,
)

if TYPE_CHECKING:
    from pathlib import Path

    from regal.backends.tensorflow.judge import Trial
    from regal.backends.types import AppliedModel
    from regal.frontends.tensorflow.schema import Proto
    from regal.graph.types import LoadedModel

pytestmark = pytest.mark.skipif(
    find_spec("tensorflow") is None, reason="TensorFlow is not installed"
)

HALF = [0, 0, 1, 1, 0, 0, 1, 1, 0]  # of branches(4): two branches on each device
DEPTH_FIRST = [0, 4, 1, 5, 2, 6, 3, 7, 8]


def loaded(message: Proto, tmp_path: Path) -> LoadedModel:
    return load(save(message, tmp_path / "m.pb"), {}, {})


def nodes_in(applied: AppliedModel) -> dict[str, Proto]:
    return {made.name: made for made in parse("GraphDef", applied.files[""]).node}


def training() -> Proto:
    """Return a step that adds to a counter, with an initializer and a saver beside it."""
    return graph(
        [
            placeholder("x", [4]),
            variable("v", [4]),
            constant("zeros", np.zeros(4)),
            node("AssignVariableOp", "v/Assign", "v", "zeros", dtype=FLOAT),
            node("NoOp", "init", "^v/Assign"),
            node("VarIsInitializedOp", "v/check", "v"),
            assign_add("up", "v", "x"),
            read("new", "v", "^up"),
            unary("Neg", "y", "new"),
        ]
    )


def test_every_planned_node_gets_its_device_and_waits_for_the_one_before(tmp_path: Path) -> None:
    model = loaded(branches(), tmp_path)
    nodes = nodes_in(apply_schedule(model, model_schedule(model, [HALF], [DEPTH_FIRST])))
    assert {name: made.device for name, made in nodes.items() if name.startswith("wide")} == {
        "wide0": "/device:CPU:0",
        "wide1": "/device:CPU:0",
        "wide2": "/device:CPU:1",
        "wide3": "/device:CPU:1",
    }
    assert list(nodes["wide1"].input) == ["x", "eight", "^small0"]
    assert list(nodes["wide2"].input) == ["x", "eight/regal_1"]
    assert list(nodes["wide3"].input) == ["x", "eight/regal_1", "^small2"]


def test_constants_lie_on_every_device_that_reads_them(tmp_path: Path) -> None:
    model = loaded(branches(), tmp_path)
    applied = apply_schedule(model, model_schedule(model, [HALF], [DEPTH_FIRST]))
    nodes = nodes_in(applied)
    assert nodes["axis"].device == "/device:CPU:0"
    assert nodes["axis/regal_1"].device == "/device:CPU:1"
    assert nodes["axis/regal_1"].attr["value"] == nodes["axis"].attr["value"]
    assert nodes["small3"].input[1] == "axis/regal_1"
    assert "copied 2 constants that several devices read" in applied.notes


def test_devices_are_numbered_by_kind_or_named_by_the_caller(tmp_path: Path) -> None:
    three = replace(system(3), devices=(device("a"), device("b", "gpu"), device("c", "gpu")))
    assert tensorflow_devices(three) == ("/device:CPU:0", "/device:GPU:0", "/device:GPU:1")
    assert logical_cpus(2) == ("/device:CPU:0", "/device:CPU:1")
    assert worker_devices(2)[1] == "/job:worker/replica:0/task:1/device:CPU:0"
    model = loaded(branches(), tmp_path)
    schedule = model_schedule(model, [HALF], [DEPTH_FIRST])
    nodes = nodes_in(apply_schedule(model, schedule, devices=["/device:TPU:0", "/device:TPU:1"]))
    assert nodes["wide2"].device == "/device:TPU:1"
    with pytest.raises(UsageError, match="1 different TensorFlow devices are named for the 2"):
        apply_schedule(model, schedule, devices=["/device:TPU:0", "/device:TPU:0"])


def test_the_source_is_not_changed_by_applying(tmp_path: Path) -> None:
    model = loaded(branches(), tmp_path)
    schedule = model_schedule(model, [HALF], [DEPTH_FIRST])
    first = apply_schedule(model, schedule).files
    assert apply_schedule(model, schedule).files == first


def test_a_plan_of_another_model_is_refused(tmp_path: Path) -> None:
    small = loaded(branches(2), tmp_path)
    large = loaded(branches(3), tmp_path)
    with pytest.raises(PlanError, match="orders 5 ops; the file has 7"):
        apply_schedule(large, random_schedule(small, 0))
    with pytest.raises(PlanError, match="orders 5 ops; the file has 7"):
        apply(large, model_plan(small))


def test_a_tflite_or_graph_file_has_no_place_for_devices() -> None:
    for framework in ("tflite", "graph"):
        with pytest.raises(BackendError, match="cannot say which device runs an op"):
            schedule_backend_of(framework)
    assert schedule_backend_of("tensorflow") is backend_of("tensorflow")


def test_on_one_device_only_the_order_is_written(tmp_path: Path) -> None:
    message = branches()
    message.node[3].device = "/device:GPU:7"
    model = loaded(message, tmp_path)
    plan = replace(model_plan(model), plans=(plan_in_order(model.graph, DEPTH_FIRST),))
    nodes = nodes_in(apply(model, plan))
    assert nodes["wide0"].device == "/device:GPU:7"
    assert not nodes["wide1"].device
    assert list(nodes["wide1"].input) == ["x", "eight", "^small0"]
    assert sorted(nodes) == sorted(made.name for made in message.node)


def test_what_sets_up_a_step_is_not_chained_to_it(tmp_path: Path) -> None:
    model = loaded(training(), tmp_path)
    assert step_nodes(Nodes(training().node)) == {"x", "v", "up", "new", "y"}
    assert initializers(Nodes(training().node)) == ("v/Assign",)
    placement = [0] * len(model.graph.ops)
    applied = apply_schedule(model, model_schedule(model, [placement]))
    nodes = nodes_in(applied)
    assert not any("v/" in text or "init" in text for text in nodes["up"].input)
    assert list(nodes["v/Assign"].input) == ["v", "zeros"]
    assert any(note.startswith("3 ops wait for nothing") for note in applied.notes)


def test_state_order_through_an_initializer_holds_across_devices(tmp_path: Path) -> None:
    """The file order is use, initializer, update; the initializer is not run with the step."""
    message = graph(
        [
            placeholder("x", [4]),
            constant("zeros", np.zeros(4)),
            node("VariableV2", "v", dtype=FLOAT, shape=[4]),
            unary("Identity", "read", "v"),
            unary("Neg", "use", "read"),
            node("Assign", "v/Assign", "v", "zeros", T=FLOAT),
            node("AssignAdd", "up", "v", "x", T=FLOAT),
        ]
    )
    model = loaded(message, tmp_path)
    placement = [int(op.name == "use") for op in model.graph.ops]
    nodes = nodes_in(apply_schedule(model, model_schedule(model, [placement])))
    assert "^use" in nodes["up"].input
    assert not any(text.startswith("^") for text in (*nodes["v"].input, *nodes["v/Assign"].input))


def test_a_variable_waits_for_nothing_although_the_file_does_not_initialize_it(
    tmp_path: Path,
) -> None:
    message = graph(
        [
            placeholder("x", [4]),
            unary("Neg", "first", "x"),
            node("VariableV2", "v", dtype=FLOAT, shape=[4]),
            node("AssignAdd", "up", "v", "first", T=FLOAT),
        ]
    )
    model = loaded(message, tmp_path)
    nodes = nodes_in(apply_schedule(model, model_schedule(model, [[0] * len(model.graph.ops)])))
    assert list(nodes["v"].input) == []


def test_a_file_that_only_sets_up_is_a_step() -> None:
    nodes = [
        variable("v", [4]),
        constant("zeros", np.zeros(4)),
        node("AssignVariableOp", "a", "v", "zeros", dtype=FLOAT),
    ]
    assert step_nodes(Nodes(nodes)) == {"v", "zeros", "a"}


def test_a_switch_reads_from_its_own_device(tmp_path: Path) -> None:
    message = graph(
        [
            placeholder("p", [], "bool"),
            placeholder("x", [4]),
            unary("Neg", "a", "x"),
            switch("s", "a", "p"),
            unary("Abs", "y", "s"),
        ]
    )
    model = loaded(message, tmp_path)
    nodes = nodes_in(apply_schedule(model, model_schedule(model, [[0, 1, 1]])))
    assert nodes["s"].input[0] == "regal_order/input_0"
    assert nodes["regal_order/input_0"].device == nodes["s"].device == "/device:CPU:1"
    assert list(nodes["regal_order/input_0"].input) == ["a"]


def test_variables_lie_where_they_are_used_and_stay_with_their_users(tmp_path: Path) -> None:
    message = training()
    up = next(made for made in message.node if made.name == "up")
    up.attr["_class"].list.s.extend([b"loc:@v", b"loc:@x"])
    model = loaded(message, tmp_path)
    placement = [1 if op.colocation else 0 for op in model.graph.ops]
    nodes = nodes_in(apply_schedule(model, model_schedule(model, [placement])))
    assert nodes["v"].device == nodes["up"].device == "/device:CPU:1"
    assert list(nodes["up"].attr["_class"].list.s) == [b"loc:@v"]


def test_a_file_is_written_in_the_form_that_its_name_asks_for(tmp_path: Path) -> None:
    message = branches()
    data = message.SerializeToString()
    for name in ("o.pb", "o.pbtxt", "o.pbtxt.gz", "o.pb.gz"):
        out = tmp_path / name
        written = encoded(data, out)
        assert encoded(data, out) == written
        out.write_bytes(written)
        plain = gzip.decompress(written) if name.endswith(".gz") else written
        assert plain.startswith(b"node {") == (".pbtxt" in name)
        assert read_graph_file(out).message == message


def test_equal_plans_give_equal_files(tmp_path: Path) -> None:
    model = loaded(branches(), tmp_path)
    data = apply_schedule(model, model_schedule(model, [HALF], [DEPTH_FIRST])).files[""]
    assert data == parse("GraphDef", data).SerializeToString(deterministic=True)


def test_no_order_is_asked_of_a_file_for_several_devices_that_runs_on_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = loaded(branches(), tmp_path)
    asked: list[list[Trial]] = []

    def judge(trials: list[Trial], *_: object, **__: object) -> Verification:
        asked.append(trials)
        return Verification(checks=())

    # By name: the package has a function of this name, too.
    monkeypatch.setattr(import_module("regal.backends.tensorflow.verify"), "judged", judge)
    for placement, units in ((HALF, 0), ([0] * 9, 1)):
        applied = apply_schedule(model, model_schedule(model, [placement]))
        out = tmp_path / "o.pb"
        write_all(applied.files, out, inputs=[], force=True)
        verify(tmp_path / "m.pb", out, seed=0)
        assert len(asked.pop()[0].units) == units


def test_one_command_plans_writes_and_verifies_a_graph_on_one_device(tmp_path: Path) -> None:
    result = regal.optimize(save(branches(), tmp_path / "m.pb"), tmp_path / "o.pb")
    assert result.verification is not None
    (check,) = result.verification.checks
    assert (check.outputs_equal, check.order_honored) == (True, True)
    # One wide tensor, beside the rows that are there already.
    assert check.after["peak_bytes"] == 8 * 256 * 256 * 4 + 4 * 256 * 4
    assert (tmp_path / "o.pb").is_file()


def test_a_graph_that_would_write_files_is_not_run(tmp_path: Path) -> None:
    name = node("Const", "name", dtype="string")
    name.attr["value"].tensor.dtype = NUMBER_OF["string"]
    name.attr["value"].tensor.tensor_shape.SetInParent()
    name.attr["value"].tensor.string_val.append(b"a file")
    path = save(graph([name, node("WriteFile", "w", "name", "name")]), tmp_path / "m.pb")
    verification = verify(path, path, seed=0)
    assert not verification.checks
    assert verification.skipped == "node 'w' (WriteFile) writes files, so nothing is run"


@pytest.mark.corpus
def test_a_training_step_of_the_corpus_keeps_its_savers_apart() -> None:
    model = load(corpus_file("tf/pensieve_a3c.meta"), {}, {})
    applied = apply_schedule(model, random_schedule(model, 1))
    graph_def = parse("MetaGraphDef", applied.files[""]).graph_def
    savers = {made.name for made in graph_def.node if made.op in ("SaveV2", "RestoreV2")}
    assert savers
    assert not any(
        text[1:] in savers and not made.name.startswith("save/")
        for made in graph_def.node
        for text in made.input
        if text.startswith("^")
    )
    assert sum(made.device == "/device:CPU:1" for made in graph_def.node) > 100


def test_an_order_into_a_function_and_out_again_is_not_called_whole(tmp_path: Path) -> None:
    model = loaded(call(), tmp_path)
    index = {op.name.rpartition("/")[2]: i for i, op in enumerate(model.graph.ops)}
    for names, is_whole in (("a u v w b y", True), ("a u b v w y", False)):
        order = [index[name] for name in names.split()]
        applied = apply_schedule(model, model_schedule(model, [[0] * len(order)], [order]))
        assert applied.is_order_whole is is_whole
        said = [note for note in applied.notes if "cannot be written into the graph" in note]
        assert len(said) == (not is_whole)


def test_leaving_an_order_is_a_fault_only_where_it_was_written_whole() -> None:
    """The runtime's verdict on placement counts in any case."""
    check = RuntimeCheck(
        runtime="x", outputs_equal=True, before={}, after={}, invocations=1,
        placement_honored=True, order_honored=False,
    )  # fmt: skip
    assert check.is_honored(whole_order=False)
    assert not check.is_honored(whole_order=True)
    assert not replace(check, placement_honored=False).is_honored(whole_order=False)


@pytest.mark.corpus
def test_a_result_of_a_loop_that_the_step_does_not_need_is_not_waited_for() -> None:
    """Two values leave the loop; the one for a queue comes out of another queue, which is empty."""
    model = load(corpus_file("tf/grappler_queues_and_loops.pbtxt"), {}, {})
    applied = apply_schedule(model, random_schedule(model, 1))
    waits = {text for made in nodes_in(applied).values() for text in made.input if text[0] == "^"}
    assert "^while/Exit" in waits
    assert "^while/Exit_1" not in waits
