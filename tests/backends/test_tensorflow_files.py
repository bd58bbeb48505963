"""Saved models as folders, and what a run leaves in the folder of the user: nothing."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from regal.backends.tensorflow import apply_schedule
from regal.backends.tensorflow.judge import run_request
from regal.backends.tensorflow.request import Case, Job, Request
from regal.cli.main import main
from regal.files import write_all
from regal.frontends.tensorflow import load
from regal.frontends.tensorflow.schema import new, parse
from tests.backends.simple_schedules import model_schedule, random_schedule
from tests.tf_graphs import (
    binary,
    graph,
    node,
    placeholder,
    save,
    unary,
)

if TYPE_CHECKING:
    from pathlib import Path

    from regal.frontends.tensorflow.schema import Proto

pytestmark = pytest.mark.skipif(
    find_spec("tensorflow") is None, reason="TensorFlow is not installed"
)

STRING = 7  # TensorFlow's number of the type


def saved_model(folder: Path) -> Path:
    """Write a SavedModel whose signature calls a function, with variables and an asset."""
    message = new("SavedModel")
    message.saved_model_schema_version = 1
    meta = message.meta_graphs.add()
    meta.meta_info_def.tags.append("serve")
    body = meta.graph_def.library.function.add()
    body.signature.name = "F"
    body.signature.input_arg.add(name="t", type=1)
    body.signature.output_arg.add(name="r", type=1)
    body.node_def.extend(
        [unary("Neg", "u", "t"), unary("Abs", "v", "t"), binary("AddV2", "w", "u:y:0", "v:y:0")]
    )
    body.ret["r"] = "w:z:0"
    call = node("PartitionedCall", "call", "x")
    call.attr["Tin"].list.type.append(1)
    call.attr["Tout"].list.type.append(1)
    call.attr["f"].func.name = "F"
    meta.graph_def.versions.producer = 1395
    meta.graph_def.node.extend([placeholder("x", [4]), call, unary("Neg", "z", "call")])
    signature = meta.signature_def["serving_default"]
    for key, where in (("x", signature.inputs), ("z", signature.outputs)):
        where[key].name = f"{key}:0"
        where[key].dtype = 1
    (folder / "variables").mkdir(parents=True)
    (folder / "variables" / "variables.index").write_bytes(b"index")
    (folder / "fingerprint.pb").write_bytes(b"of the old graph")
    (folder / "saved_model.pb").write_bytes(message.SerializeToString())
    return folder


def test_a_saved_model_gets_devices_inside_its_functions(tmp_path: Path) -> None:
    model = load(saved_model(tmp_path / "in"), {}, {})
    names = [op.name for op in model.graph.ops]
    placement = [int(name.endswith("/v")) for name in names]
    applied = apply_schedule(model, model_schedule(model, [placement]))
    graph_def = parse("SavedModel", applied.files[""]).meta_graphs[0].graph_def
    devices = {made.name: made.device for made in graph_def.library.function[0].node_def}
    assert devices == {"u": "/device:CPU:0", "v": "/device:CPU:1", "w": "/device:CPU:0"}
    assert applied.files["variables/variables.index"] == b"index"
    assert sorted(applied.files) == ["", "variables/variables.index"]


def test_a_saved_model_folder_is_written_whole(tmp_path: Path) -> None:
    model = load(saved_model(tmp_path / "in"), {}, {})
    applied = apply_schedule(model, random_schedule(model, 0))
    (tmp_path / "out").mkdir()
    write_all(applied.files, tmp_path / "out" / "saved_model.pb", inputs=[], force=False)
    again = load(tmp_path / "out", {}, {})
    assert sorted(op.name for op in again.graph.ops) == sorted(op.name for op in model.graph.ops)
    assert (tmp_path / "out" / "variables" / "variables.index").read_bytes() == b"index"


def test_one_command_makes_a_folder_of_a_folder_and_leaves_the_original(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = saved_model(tmp_path / "in"), tmp_path / "out"
    few = ["--devices", "2", "--evaluations", "20", "--no-verify"]
    assert main(["optimize", str(folder), "-o", str(out), *few]) == 0
    assert capsys.readouterr().out.count(f"written       {out / 'saved_model.pb'}") == 1
    assert sorted(str(path.relative_to(out)) for path in out.rglob("*.*")) == [
        "saved_model.pb",
        "variables/variables.index",
    ]
    assert main(["optimize", str(folder), "-o", str(folder), "--force", *few]) == 2
    assert "an input is never overwritten" in capsys.readouterr().err


def text_constant(name: str, text: bytes) -> Proto:
    made = node("Const", name)
    made.attr["dtype"].type = made.attr["value"].tensor.dtype = STRING
    made.attr["value"].tensor.tensor_shape.SetInParent()
    made.attr["value"].tensor.string_val.append(text)
    return made


def test_what_a_graph_writes_by_a_relative_name_is_not_left_where_the_user_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Graphs that write are refused before; here one is run all the same."""
    user, folder = tmp_path / "user", tmp_path / "child"
    user.mkdir()
    folder.mkdir()
    monkeypatch.chdir(user)
    wanted = graph(
        [
            text_constant("name", b"dropped.txt"),
            text_constant("text", b"x"),
            node("WriteFile", "write", "name", "text"),
        ]
    )
    case = Case(name="before", graph=str(save(wanted, tmp_path / "m.pb")))
    job = Job(cases=(case,), feeds=(), fetches=(), targets=("write",), init=())
    run_request(Request(jobs=(job,), n_devices=1, seed=0, invocations=1), folder, 120)
    assert (folder / "dropped.txt").read_bytes() == b"x"
    assert list(user.iterdir()) == []
