"""Whatever a call gets wrong: one line, exit code 2, nothing written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from onnx import TensorProto

from regal.errors import UsageError
from regal.files import write_atomically
from regal.graph.file import model_to_json
from regal.graph.types import LoadedModel
from regal.options import Options
from regal.pipeline import optimize
from tests.graphs import random_graph
from tests.hostile_runs import run_main
from tests.onnx_models import branches, node, save, tensor
from tests.onnx_models import graph as onnx_graph
from tests.onnx_models import model as onnx_model

LONG = "a" * 300
UNREADABLE = "/proc/self/mem"  # a file for the file system, an error for who reads it


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.json"
    loaded = LoadedModel(framework="graph", entries=(random_graph(3, 6),), source=None)
    path.write_text(model_to_json(loaded))
    return path


def refused(*argv: object) -> str:
    code, out, err = run_main([str(word) for word in argv])
    assert (code, out) == (2, "")
    assert err.startswith("regal: error: ")
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize("seed", ["-1", str(1 << 62), "9" * 5000, "x", "²", "1.0"])
@pytest.mark.parametrize("command", ["optimize", "compare"])
def test_a_seed_that_the_kernel_cannot_take_is_refused(
    command: str, seed: str, model: Path
) -> None:
    assert "seed" in refused(command, model, f"--seed={seed}")


def test_the_largest_seed_works_in_every_round_of_the_search(model: Path) -> None:
    code, _, err = run_main(["compare", str(model), "--seed", str((1 << 62) - 1),
                             "--methods", "regal,random,brkga,memetic,annealing",
                             "--evaluations", "3000"])  # fmt: skip
    assert (code, err) == (0, "")
    with pytest.raises(UsageError, match="seed is -1"):
        optimize(model, None, Options(seed=-1))


@pytest.mark.parametrize("option", ["--evaluations", "--threads", "--capacity"])
@pytest.mark.parametrize("value", ["²", "9" * 5000, "-1", ""])
def test_a_number_that_is_none_is_quoted(option: str, value: str, model: Path) -> None:
    assert f"'{value}' is not a" in refused("optimize", model, f"{option}={value}")


def test_a_header_of_a_model_that_is_no_tflite_is_refused_before_anything_is_written(
    model: Path,
) -> None:
    out, header = model.with_name("out.json"), model.with_name("plan.h")
    assert "TFLite" in refused("optimize", model, "-o", out, "--header", header)
    assert sorted(model.parent.iterdir()) == [model]


def test_two_outputs_of_one_name_are_seen_through_folders_and_links(model: Path) -> None:
    folder = model.parent
    (folder / "link").symlink_to(folder)
    for other in (folder / ".." / folder.name / "x.json", folder / "link" / "x.json"):
        assert "different files" in refused(
            "optimize", model, "-o", folder / "x.json", "--plan", other
        )


@pytest.mark.parametrize("name", ["out.parts.json", "out.gpu0.0.onnx"])
def test_names_of_the_parts_beside_a_model_are_taken(name: str, tmp_path: Path) -> None:
    source = save(branches(), tmp_path / "model.onnx")
    for option in ("--plan", "--report", "--trace"):
        argv = ("-o", tmp_path / "out.onnx", "--devices", "2", option, tmp_path / name)
        assert "choose another one" in refused("optimize", source, *argv)
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("devices", ["9999", "257", "0", "cpu:9999", "sram-dram:0", "9" * 400])
@pytest.mark.parametrize("command", ["optimize", "compare", "validate"])
def test_a_number_of_devices_that_nobody_has_is_refused(
    command: str, devices: str, model: Path
) -> None:
    assert "give a number from 1 to 256" in refused(command, model, "--devices", devices)


def test_no_method_is_not_all_methods(model: Path) -> None:
    assert "unknown method ''" in refused("compare", model, "--methods", "")


@pytest.mark.parametrize("devices", ["1", "2", "sram-dram"])
def test_a_plan_of_another_graph_is_refused(devices: str, model: Path, tmp_path: Path) -> None:
    other = LoadedModel(framework="graph", entries=(random_graph(4, 6),), source=None)
    path, plan = tmp_path / "other.json", tmp_path / "plan.json"
    path.write_text(model_to_json(other))
    assert run_main(["optimize", str(path), "--devices", devices, "--plan", str(plan)])[0] == 0
    for command in (("check", model, plan), ("apply", model, plan, "-o", tmp_path / "x.json")):
        assert "is a plan of another graph" in refused(*command)


@pytest.mark.parametrize("name", ["x.csv", "x.CSV"])
def test_buffers_are_said_to_be_no_model(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("id,lower,upper,size\na,0,1,4\n")
    assert "regal allocate reads buffers" in refused("inspect", tmp_path / name)


def test_names_that_the_file_system_refuses_are_named(model: Path) -> None:
    assert "too long" in refused("inspect", f"{LONG}.json")
    assert "too long" in refused("optimize", model, "-o", model.with_name(LONG))
    assert "too long" in refused("check", model, LONG)
    assert "too long" in refused("allocate", LONG)


@pytest.mark.skipif(not Path(UNREADABLE).exists(), reason="needs /proc")
def test_files_that_cannot_be_read_are_named(model: Path) -> None:
    link = model.with_name("link.json")
    link.symlink_to(UNREADABLE)
    assert "cannot be read" in refused("inspect", link)
    assert "cannot be read" in refused("check", model, UNREADABLE)
    assert "cannot be read" in refused("allocate", UNREADABLE)


def test_a_folder_is_not_said_to_be_missing(model: Path) -> None:
    assert "is not a file" in refused("check", model, model.parent)
    assert "is not a file" in refused("allocate", model.parent)
    assert "is not a file" in refused("verify", model, model.parent)


def test_a_pipe_is_not_replaced_by_a_file_even_with_force(model: Path) -> None:
    pipe = model.with_name("pipe.json")
    os.mkfifo(pipe)
    assert "device or pipe" in refused("optimize", model, "-o", pipe, "--force")
    assert pipe.is_fifo()


def test_ctrl_c_while_writing_leaves_neither_a_half_nor_a_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "out", b"data")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_one_line(model: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "regal", "inspect", str(model)],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "regal: error: No space left on device\n"


def test_weights_that_lie_beside_a_model_are_an_input(tmp_path: Path) -> None:
    made = onnx_graph([node("Add", ["x", "w"], ["y"])], [tensor("x", [4])], ["y"])
    weight = made.initializer.add(
        name="w", data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL, dims=[4]
    )
    weight.external_data.add(key="location", value="w.bin")
    (tmp_path / "w.bin").write_bytes(bytes(16))
    path = save(onnx_model(made), tmp_path / "m.onnx")
    err = refused("optimize", path, "--plan", tmp_path / "w.bin", "--force")
    assert "an input is never overwritten" in err
    assert (tmp_path / "w.bin").read_bytes() == bytes(16)
