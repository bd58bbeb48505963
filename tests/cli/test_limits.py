"""What the command line says where memory or devices do not suffice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from regal.cli.main import main
from tests.onnx_models import branches, save

if TYPE_CHECKING:
    from pathlib import Path

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
