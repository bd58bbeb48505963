"""What the command line says where memory or devices do not suffice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from regal.cli.main import main
from regal.graph.builder import GraphBuilder
from regal.graph.file import model_to_json
from regal.graph.types import LoadedModel
from tests.cli.test_schedules import require_schema
from tests.onnx_models import branches, save

SYSTEM = """
[[device]]
name = "cpu0"
kind = "cpu"
flops = {{ {dtype} = "24GFLOPS" }}
bandwidth = "12.8GB/s"
launch = "3us"
memory = "{memory}"
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return save(branches(), tmp_path / "model.onnx")


def system(folder: Path, memory: str, dtype: str = "other") -> Path:
    path = folder / "system.toml"
    path.write_text(SYSTEM.format(memory=memory, dtype=dtype))
    return path


def test_one_device_has_a_hard_limit_too(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Parameters count: with one byte less than both, the plan does not fit."""
    assert main(["optimize", str(model), "--json"]) == 0
    free = json.loads(capsys.readouterr().out)
    assert "fits" not in free
    need = free["after"]["peak_bytes"] + free["parameter_bytes"]
    for memory, code in ((need, 0), (need - 1, 1)):
        toml = system(model.parent, str(memory))
        assert main(["optimize", str(model), "--devices", str(toml), "--json"]) == code
        found = json.loads(capsys.readouterr().out)
        assert found["fits"] is (code == 0)
        assert found["after"]["overflow_bytes"] == need - memory
    assert main(["optimize", str(model), "--devices", str(toml)]) == 1
    assert f"memory        does not fit: 1 B above the {need - 1:,} B" in capsys.readouterr().out


def test_a_devices_file_is_an_input_that_is_never_overwritten(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toml = system(model.parent, "1GB")
    text = toml.read_text()
    for option in ("--plan", "--report", "-o"):
        for devices in (str(toml), f"{toml}:1"):
            argv = ["optimize", str(model), "--devices", devices, option, str(toml), "--force"]
            assert main(argv) == 2
            assert "an input is never overwritten" in capsys.readouterr().err
    assert toml.read_text() == text


def test_one_device_that_cannot_run_an_op_is_a_note(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toml = system(model.parent, "1GB", dtype="int8")
    assert main(["optimize", str(model), "--devices", str(toml), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["after"]["time_s"] is None
    assert any(note.startswith("'cpu0' cannot run op '") for note in found["notes"])


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    """Return a model with a peak of 600,000 bytes, more than 512 KB, and a weight of 100,000."""
    g = GraphBuilder("wide")
    a = g.op("pointwise", [g.input("x", 200_000), g.parameter("w", 100_000)], [400_000], name="a")
    graph = g.build(outputs=g.op("pointwise", a, [100_000], name="b"))
    path = tmp_path / "wide.json"
    path.write_text(model_to_json(LoadedModel(framework="graph", entries=(graph,), source=None)))
    return path


def test_what_passes_the_sram_is_spilled_and_the_cost_is_stated(
    wide: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = wide.with_name("plan.json")
    argv = ["optimize", str(wide), "--devices", "sram-dram"]
    assert main([*argv, "--plan", str(plan), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    require_schema(found, "result")
    before, after = found["before"], found["after"]
    assert [pool["name"] for pool in after["pools"]] == ["sram", "sdram"]
    assert after["peak_bytes"] == 600_000
    assert after["pools"][0]["used_bytes"] <= 512 << 10
    assert after["spilled_bytes"] == after["pools"][1]["used_bytes"] > 0
    assert after["time_s"] - found["lower_bound"]["time_s"] == pytest.approx(after["spill_s"])
    assert 0 < after["spill_s"] < before["spill_s"]
    document = json.loads(plan.read_text())
    require_schema(document, "plan")
    assert {pool for pool, _ in document["pools"]["offsets"].values()} == {0, 1}
    assert main(["check", str(wide), str(plan), "--json"]) == 0
    used = [pool["used_bytes"] for pool in after["pools"]]
    assert json.loads(capsys.readouterr().out)["pool_bytes"] == used
    assert main(argv) == 0
    text = capsys.readouterr().out
    assert f"spilled       {after['spilled_bytes']:,} B do not fit in 'sram': that costs" in text
    assert f"B -> {used[0]:,} B of 524,288 B" in text


def test_weights_take_the_sram_where_that_is_faster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of two buffers of 300,000 bytes one fits, but then not the weight that twenty ops read."""
    g = GraphBuilder("heavy")
    w = g.parameter("w", 400_000)
    a = g.op("pointwise", [g.input("x", 100)], [300_000])
    x = g.op("pointwise", g.op("pointwise", a, [300_000]), [100])
    for _ in range(20):
        x = g.op("pointwise", [*x, w], [100])
    graph = g.build(outputs=x)
    path, plan = tmp_path / "heavy.json", tmp_path / "plan.json"
    path.write_text(model_to_json(LoadedModel(framework="graph", entries=(graph,), source=None)))
    argv = ["optimize", str(path), "--devices", "sram-dram", "--plan", str(plan), "--json"]
    assert main(argv) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["after"]["time_s"] <= found["before"]["time_s"]
    assert json.loads(plan.read_text())["pools"]["residents"][0][0] == 0


def test_what_fits_in_the_sram_costs_nothing(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["optimize", str(model), "--devices", "sram-dram", "--json"]) == 0
    after = json.loads(capsys.readouterr().out)["after"]
    assert (after["spilled_bytes"], after["spill_s"]) == (0, 0)


def test_what_passes_all_pools_does_not_fit(wide: Path, capsys: pytest.CaptureFixture[str]) -> None:
    toml = wide.with_name("small.toml")
    toml.write_text(
        SYSTEM.format(dtype="other", memory="unlimited").replace('memory = "unlimited"', "")
        + 'pools = [{ name = "a", memory = "300KB" }, { name = "b", memory = "300KB" }]'
    )
    assert main(["optimize", str(wide), "--devices", str(toml), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["fits"] is False
    assert found["after"]["overflow_bytes"] > 0


def test_pools_of_several_devices_are_said_not_to_be_planned(
    wide: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["optimize", str(wide), "--devices", "sram-dram:2", "--evaluations", "9"]) == 0
    assert "offset per device, not per pool" in capsys.readouterr().out


def test_a_header_is_for_one_device_by_whatever_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = Path(__file__).parents[2] / "examples" / "models" / "wakeword_streaming_int8.tflite"
    header = tmp_path / "plan.h"
    argv = ["optimize", str(source), "--header", str(header), "--devices"]
    assert main([*argv, "sram-dram:2"]) == 2
    assert "a C header describes one device" in capsys.readouterr().err
    assert main([*argv, "sram-dram"]) == 0
    assert header.exists()
