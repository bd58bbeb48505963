"""Systems by name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from regal.devices.file import system_from_dict, system_to_dict
from regal.devices.kinds import OP_KINDS
from regal.devices.presets import FOLDER, preset_names, system_named
from regal.devices.toml import system_from_toml, system_to_toml
from regal.errors import UsageError


def test_the_presets_are_those_of_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "devices.md").read_text()
    assert preset_names() == ("cpu", "edge-cpu-npu", "gpu-nvlink-4", "gpu-pcie-2", "sram-dram")
    assert all(f"`{name}`" in page for name in preset_names())


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_reads_writes_and_copies(name: str) -> None:
    system = system_named(name)
    assert system.name == name
    assert system_from_toml(system_to_toml(system), name) == system
    assert system_from_dict(json.loads(json.dumps(system_to_dict(system))), "x") == system
    copies = system_named(f"{name}:3")
    assert len(copies.devices) == 3
    assert len({device.flops_per_s[key] for device in copies.devices for key in ["int8"]}) == 1


@pytest.mark.parametrize("name", preset_names())
def test_every_number_of_a_preset_has_a_comment_on_its_line_or_above(name: str) -> None:
    lines = (FOLDER / f"{name}.toml").read_text().splitlines()
    keys = ("flops", "bandwidth", "latency", "launch", "memory", "pools")
    numbers = [i for i, line in enumerate(lines) if line.startswith(keys)]
    assert len(numbers) >= 4
    bare = [lines[i] for i in numbers if "#" not in lines[i] and not lines[i - 1].startswith("#")]
    assert not bare


def test_one_is_the_cpu_and_more_are_gpus() -> None:
    assert [d.name for d in system_named("1").devices] == ["cpu0"]
    many = system_named("5")
    assert [d.name for d in many.devices] == [f"gpu{i}" for i in range(5)]
    assert many.devices[0] == system_named("gpu-pcie-2").devices[0]
    assert len(many.links) == 20


def test_a_file_is_a_system_and_can_be_copied(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(system_to_toml(system_named("edge-cpu-npu")))
    assert [d.kind for d in system_named(str(path)).devices] == ["cpu", "npu"]
    assert [d.name for d in system_named(f"{path}:2").devices] == ["cpu0", "cpu1"]


@pytest.mark.parametrize("text", ["", "gpu", "cpu:x:2", "1:2"])
def test_an_unknown_name_lists_the_presets(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        system_named(text)
    assert str(caught.value) == (
        f"unknown devices '{text}'; give a number, a .toml file, or one of cpu, edge-cpu-npu,"
        " gpu-nvlink-4, gpu-pcie-2, sram-dram (:N for N devices like its first)"
    )


@pytest.mark.parametrize("text", ["0", "257", "9" * 5000, "cpu:0", "cpu:", "cpu:-1", "cpu:²"])
def test_a_number_of_devices_that_is_none_is_quoted(text: str) -> None:
    with pytest.raises(UsageError, match="give a number from 1 to 256"):
        system_named(text)


def test_naming_a_system_loads_nothing_heavy() -> None:
    heavy = "numpy onnx onnxruntime rich tensorflow"
    code = (
        "import sys; from regal.devices.presets import system_named; system_named('4');"
        f"print([m for m in '{heavy}'.split() if m in sys.modules])"
    )
    run = [sys.executable, "-c", code]
    src = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(run, capture_output=True, text=True, check=True,
                          env={"PYTHONPATH": src})  # fmt: skip
    assert done.stdout.strip() in ("[]", "['numpy']")


def test_the_documentation_lists_the_kinds_of_ops_and_a_system_that_reads() -> None:
    page = (Path(__file__).parents[2] / "docs" / "devices.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    for kind, text in OP_KINDS.items():
        assert f"| `{kind}` | {text} |" in rows
    example = page.split("```toml\n")[1].split("```")[0]
    system = system_from_toml(example, "docs/devices.md")
    assert [device.name for device in system.devices] == ["cpu0", "npu0", "npu1"]
