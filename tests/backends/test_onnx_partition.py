"""ONNX models cut into parts for several devices, and what ONNX Runtime makes of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from regal.backends.onnx import apply_schedule, verify_schedule
from regal.backends.onnx.parts import read_parts
from regal.backends.onnx.stages import stages_of
from regal.errors import BackendError, ModelError, PlanError
from regal.frontends.onnx import load
from regal.graph.memory import dependencies
from regal.onnxruntime import parts_session, session
from tests.backends.simple_schedules import (
    graph_schedule,
    model_schedule,
    random_schedule,
)
from tests.corpus import corpus_file
from tests.onnx_models import branches, graph, model, node, save, tensor

if TYPE_CHECKING:
    from pathlib import Path

    from onnx import ModelProto

    from regal.backends.types import AppliedModel, RuntimeCheck
    from regal.graph.types import LoadedModel
    from regal.plan.schedule import ModelSchedule

HALF = [0, 0, 1, 1, 0, 0, 1, 1, 0]  # of branches(4): two branches on each device
CORPUS = (
    "mlon_kws_qoperator.onnx",
    "ort_scan_cntk.onnx",
    "ort_subgraph_shadow.onnx",
    "silero_vad_openvino.onnx",
    "tract_lgbm_classifier.onnx",
)


def written(applied: AppliedModel, path: Path) -> Path:
    for name, data in applied.files.items():
        (path.with_name(name) if name else path).write_bytes(data)
    return path


def check_of(
    loaded: LoadedModel, schedule: ModelSchedule, original: Path, out: Path
) -> RuntimeCheck:
    written(apply_schedule(loaded, schedule, name=out.name), out)
    verification = verify_schedule(original, out, schedule, seed=0)
    assert not verification.skipped
    return verification.checks[0]


def loaded_branches(tmp_path: Path) -> tuple[Path, LoadedModel]:
    path = save(branches(), tmp_path / "m.onnx")
    return path, load(path, {}, {})


def part_models(out: Path) -> dict[str, ModelProto]:
    parts = read_parts(out.with_name(f"{out.stem}.parts.json")).parts
    return {part.file: onnx.load(out.with_name(part.file)) for part in parts}


def test_each_device_gets_one_part_when_nothing_goes_back_and_forth(tmp_path: Path) -> None:
    _, loaded = loaded_branches(tmp_path)
    out = written(
        apply_schedule(loaded, model_schedule(loaded, [HALF]), name="o.onnx"), tmp_path / "o.onnx"
    )
    models = part_models(out)
    # The last node reads what the other device made: it is a stage of its own.
    assert list(models) == ["o.cpu0.0.onnx", "o.cpu1.0.onnx", "o.cpu0.1.onnx"]
    assert [n.output[0] for n in models["o.cpu1.0.onnx"].graph.node] == [
        "wide2",
        "wide3",
        "small2",
        "small3",
    ]
    assert [v.name for v in models["o.cpu0.1.onnx"].graph.input] == [
        "small0",
        "small1",
        "small2",
        "small3",
    ]
    for proto in models.values():
        onnx.checker.check_model(proto, full_check=True)


def test_the_index_says_which_values_go_where(tmp_path: Path) -> None:
    _, loaded = loaded_branches(tmp_path)
    applied = apply_schedule(loaded, model_schedule(loaded, [HALF]), name="o.onnx")
    index = json.loads(applied.files["o.parts.json"])
    assert index["schema"] == "regal.onnx-parts/1"
    assert index["model"] == "o.onnx"
    assert index["inputs"] == ["x"]
    assert index["outputs"] == [{"name": "y", "part": 2}]
    assert index["transfers"] == [
        {"value": "small2", "source": "cpu1", "target": "cpu0"},
        {"value": "small3", "source": "cpu1", "target": "cpu0"},
    ]
    assert index["parts"][1] == {
        "file": "o.cpu1.0.onnx",
        "device": "cpu1",
        "stage": 0,
        "inputs": [{"name": "x", "part": None}],
        "outputs": ["small2", "small3"],
    }


def test_the_whole_model_keeps_its_nodes_in_planned_order_with_their_devices(
    tmp_path: Path,
) -> None:
    _, loaded = loaded_branches(tmp_path)
    order = [0, 4, 2, 6, 1, 5, 3, 7, 8]
    applied = apply_schedule(loaded, model_schedule(loaded, [HALF], [order]), name="o.onnx")
    whole = onnx.ModelProto.FromString(applied.files[""])
    assert [n.output[0] for n in whole.graph.node][:4] == ["wide0", "small0", "wide2", "small2"]
    assert [n.metadata_props[0].value for n in whole.graph.node] == [
        f"cpu{HALF[op]}" for op in order
    ]


def test_a_part_ends_where_another_device_waits_for_what_it_made(tmp_path: Path) -> None:
    """a0 -> b0 on the other device; a1 would keep b0 waiting, by the plan's own times."""
    nodes = [
        node("Relu", ["x"], ["a0"]),
        node("Relu", ["x"], ["a1"]),
        node("Relu", ["a0"], ["b0"]),
    ]
    proto = model(graph(nodes, [tensor("x", [4])], ["a1", "b0"]))
    loaded = load(save(proto, tmp_path / "m.onnx"), {}, {})
    plan = graph_schedule(loaded.graph, [0, 0, 1], [0, 1, 2], 2)
    assert [stage.ops for stage in stages_of(loaded.graph, plan)] == [(0,), (1,), (2,)]
    alone = graph_schedule(loaded.graph, [0, 0, 0], [0, 1, 2], 2)
    assert [stage.ops for stage in stages_of(loaded.graph, alone)] == [(0, 1, 2)]


def test_stages_never_wait_for_each_other_in_a_circle(tmp_path: Path) -> None:
    path = save(branches(6), tmp_path / "m.onnx")
    loaded = load(path, {}, {})
    for seed in range(40):
        schedule = random_schedule(loaded, seed, n_devices=1 + seed % 3)
        plan = schedule.plans[0]
        stages = stages_of(loaded.graph, plan)
        run = [op for stage in stages for op in stage.ops]
        assert sorted(run) == list(range(len(loaded.graph.ops)))
        step = {op: i for i, op in enumerate(run)}
        assert all(step[a] < step[b] for a, b in dependencies(loaded.graph))
        for device in range(3):
            mine = [op for op in plan.schedule.order if plan.schedule.placement[op] == device]
            assert [op for stage in stages if stage.device == device for op in stage.ops] == mine


def test_parts_give_what_the_whole_gives(tmp_path: Path) -> None:
    path, loaded = loaded_branches(tmp_path)
    out = written(
        apply_schedule(loaded, random_schedule(loaded, 3), name="o.onnx"), tmp_path / "o.onnx"
    )
    x = np.random.default_rng(0).standard_normal((1024, 4)).astype(np.float32)
    (expected,) = session(path).run(None, {"x": x})
    found = parts_session(tmp_path / "o.parts.json").run({"x": x})
    assert list(found) == ["y"]
    np.testing.assert_array_equal(found["y"], expected)
    (whole,) = session(out).run(None, {"x": x})
    np.testing.assert_array_equal(whole, expected)


def test_a_missing_input_is_named(tmp_path: Path) -> None:
    _, loaded = loaded_branches(tmp_path)
    written(apply_schedule(loaded, random_schedule(loaded, 3), name="o.onnx"), tmp_path / "o.onnx")
    with pytest.raises(BackendError, match="input 'x' is missing"):
        parts_session(tmp_path / "o.parts.json").run({})


def test_weights_lie_only_in_the_parts_that_read_them(tmp_path: Path) -> None:
    nodes = [
        node("Add", ["x", "w0"], ["a"]),
        node("Add", ["a", "w1"], ["b"]),
        node("Add", ["b", "both"], ["c"]),
        node("Add", ["c", "both"], ["y"]),
    ]
    weights = {name: np.full((4,), i, np.float32) for i, name in enumerate(["w0", "w1", "both"])}
    proto = model(graph(nodes, [tensor("x", [4])], ["y"], weights))
    loaded = load(save(proto, tmp_path / "m.onnx"), {}, {})
    schedule = model_schedule(loaded, [[0, 1, 1, 0]])
    out = written(apply_schedule(loaded, schedule, name="o.onnx"), tmp_path / "o.onnx")
    assert {
        name: sorted(t.name for t in part.graph.initializer)
        for name, part in part_models(out).items()
    } == {"o.cpu0.0.onnx": ["w0"], "o.cpu1.0.onnx": ["both", "w1"], "o.cpu0.1.onnx": ["both"]}


def test_constant_nodes_are_weights_of_every_part_that_reads_them(tmp_path: Path) -> None:
    value = onnx.numpy_helper.from_array(np.full((4,), 3, np.float32))
    nodes = [
        node("Constant", [], ["c"], value=value),
        node("Add", ["x", "c"], ["a"]),
        node("Mul", ["a", "c"], ["y"]),
    ]
    path = save(model(graph(nodes, [tensor("x", [4])], ["y"])), tmp_path / "m.onnx")
    loaded = load(path, {}, {})
    schedule = model_schedule(loaded, [[1, 0, 1]])
    out = tmp_path / "o.onnx"
    check = check_of(loaded, schedule, path, out)
    assert (check.outputs_equal, check.detail, check.placement_honored) == (True, "", True)
    assert {
        name: ([n.op_type for n in part.graph.node], [v.name for v in part.graph.input])
        for name, part in part_models(out).items()
    } == {
        "o.cpu0.0.onnx": (["Constant", "Add"], ["x"]),
        "o.cpu1.0.onnx": (["Constant", "Mul"], ["a"]),
    }


def test_what_a_body_takes_from_outside_is_an_input_of_its_part(tmp_path: Path) -> None:
    then = graph([node("Add", ["far", "w"], ["t"])], [], ["t"])
    other = graph([node("Neg", ["near"], ["e"])], [], ["e"])
    nodes = [
        node("Relu", ["x"], ["far"]),
        node("Sqrt", ["far"], ["near"]),
        node("If", ["flag"], ["y"], then_branch=then, else_branch=other),
    ]
    inputs = [tensor("x", [4]), tensor("flag", [], TensorProto.BOOL)]
    proto = model(graph(nodes, inputs, ["y"], {"w": np.ones(4, np.float32)}))
    path = save(proto, tmp_path / "m.onnx")
    loaded = load(path, {}, {})
    schedule = model_schedule(loaded, [[0, 1, 1]])
    out = tmp_path / "o.onnx"
    check = check_of(loaded, schedule, path, out)
    assert (check.outputs_equal, check.detail) == (True, "")
    part = part_models(out)["o.cpu1.0.onnx"].graph
    assert sorted(v.name for v in part.input) == ["far", "flag"]
    assert [t.name for t in part.initializer] == ["w"]


def test_parts_of_a_model_with_a_free_batch_take_any_batch(tmp_path: Path) -> None:
    nodes = [node("Relu", ["x"], ["a"]), node("Neg", ["a"], ["y"])]
    proto = model(graph(nodes, [tensor("x", ["batch", 4])], ["y"]))
    loaded = load(save(proto, tmp_path / "m.onnx"), {}, {})
    written(
        apply_schedule(loaded, model_schedule(loaded, [[0, 1]]), name="o.onnx"),
        tmp_path / "o.onnx",
    )
    x = np.ones((3, 4), np.float32)
    found = parts_session(tmp_path / "o.parts.json").run({"x": x})
    np.testing.assert_array_equal(found["y"], -x)


def test_external_data_come_along_once(tmp_path: Path) -> None:
    path = corpus_file("onnx/ort_ext_initializers.onnx")
    loaded = load(path, {}, {})
    applied = apply_schedule(loaded, random_schedule(loaded, 0), name="o.onnx")
    assert applied.files["Pads.bin"] == path.with_name("Pads.bin").read_bytes()
    assert "o.parts.json" in applied.files


def test_a_schedule_of_another_model_is_refused(tmp_path: Path) -> None:
    small = load(save(branches(2), tmp_path / "a.onnx"), {}, {})
    large = load(save(branches(3), tmp_path / "b.onnx"), {}, {})
    with pytest.raises(PlanError, match="orders 5 ops; the file has 7 nodes"):
        apply_schedule(large, random_schedule(small, 0))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "cannot be read"),
        ("[]", "is no index of a partitioned model"),
        ('{"schema": "regal.onnx-parts/1"}', "is broken: KeyError 'devices'"),
        (
            json.dumps(
                {
                    "schema": "regal.onnx-parts/1",
                    "model": "m",
                    "devices": ["a"],
                    "inputs": [],
                    "outputs": [],
                    "parts": [
                        {
                            "file": "f",
                            "device": "a",
                            "stage": 0,
                            "inputs": [{"name": "v", "part": 0}],
                            "outputs": [],
                        }
                    ],
                }
            ),
            "part 0 reads from a part that is not before it",
        ),
    ],
)
def test_a_broken_index_is_refused_in_one_line(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "o.parts.json"
    path.write_text(text)
    with pytest.raises(ModelError, match=reason):
        read_parts(path)


@pytest.mark.parametrize("name", CORPUS)
@pytest.mark.corpus
def test_corpus_models_run_in_parts(tmp_path: Path, name: str) -> None:
    path = corpus_file(f"onnx/{name}")
    loaded = load(path, {}, {})
    schedule = random_schedule(loaded, seed=5)
    check = check_of(loaded, schedule, path, tmp_path / name)
    assert (check.outputs_equal, check.detail) == (True, "")
    assert check.invocations == 20
    assert check.placement_honored
    assert check.order_honored
    assert check.run_after is not None
    assert len(check.run_after.peak_bytes) == 2
    assert max(check.run_after.peak_bytes) > 0


def changed(out: Path, file: str, change: str) -> None:
    """Plant a fault into one part of the model at `out`."""
    path = out.with_name(file)
    proto = onnx.load(path)
    nodes = proto.graph.node
    if change == "constant":
        proto.graph.initializer[0].raw_data = np.full((4,), 7, np.float32).tobytes()
    elif change == "order":
        first, second = nodes[0].SerializeToString(), nodes[1].SerializeToString()
        nodes[0].ParseFromString(second)
        nodes[1].ParseFromString(first)
    path.write_bytes(proto.SerializeToString())


def faulty(tmp_path: Path) -> tuple[Path, Path, ModelSchedule]:
    """Return a model of two independent ops and two behind them, cut behind the first two."""
    nodes = [
        node("Add", ["x", "w"], ["a"]),
        node("Mul", ["x", "w"], ["b"]),
        node("Add", ["a", "b"], ["c"]),
        node("Neg", ["c"], ["y"]),
    ]
    proto = model(graph(nodes, [tensor("x", [4])], ["y"], {"w": np.ones(4, np.float32)}))
    path = save(proto, tmp_path / "m.onnx")
    loaded = load(path, {}, {})
    schedule = model_schedule(loaded, [[0, 0, 1, 1]])
    out = written(apply_schedule(loaded, schedule, name="o.onnx"), tmp_path / "o.onnx")
    return path, out, schedule


def test_a_wrong_constant_in_a_part_is_caught(tmp_path: Path) -> None:
    path, out, schedule = faulty(tmp_path)
    changed(out, "o.cpu0.0.onnx", "constant")
    (check,) = verify_schedule(path, out, schedule, seed=0).checks
    assert not check.outputs_equal
    assert check.detail.startswith("output 'y' differs")
    assert check.detail.endswith("in invocation 0")


def test_another_order_in_a_part_is_caught(tmp_path: Path) -> None:
    path, out, schedule = faulty(tmp_path)
    changed(out, "o.cpu0.0.onnx", "order")
    (check,) = verify_schedule(path, out, schedule, seed=0).checks
    assert check.outputs_equal
    assert check.order_honored is False
    assert check.detail == "'cpu0' runs op 'a' after a later one"


def test_an_op_in_the_part_of_another_device_is_caught(tmp_path: Path) -> None:
    path, out, _ = faulty(tmp_path)
    loaded = load(path, {}, {})
    other = model_schedule(loaded, [[0, 1, 1, 1]])
    (check,) = verify_schedule(path, out, other, seed=0).checks
    assert check.outputs_equal
    assert check.placement_honored is False
    assert check.detail.startswith("op 'b' of 'cpu1' lies in parts of ['cpu0']")
    assert not check.is_honored(whole_order=True)
