"""The command line with several devices."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from regal.cli.main import main
from regal.cost.keys import op_key
from regal.cost.profile import OpTime, Profile, profile_to_json
from regal.frontends import load
from tests.onnx_models import branches, save

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
FEW = ("--evaluations", "60")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return save(branches(), tmp_path / "model.onnx")


def run(capsys: pytest.CaptureFixture[str], *argv: object) -> tuple[int, str, str]:
    code = main([str(word) for word in argv])
    out, err = capsys.readouterr()
    return code, out, err


def json_of(capsys: pytest.CaptureFixture[str], *argv: object) -> dict[str, Any]:
    code, out, err = run(capsys, *argv, "--json")
    assert (code, err) == (0, ""), err
    document: dict[str, Any] = json.loads(out)
    return document


def require_schema(document: dict[str, Any], name: str) -> None:
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)


@pytest.mark.parametrize("objective", ["time", "memory", "balanced"])
@pytest.mark.parametrize("devices", ["2", "4"])
def test_a_result_obeys_its_schema_and_is_never_worse_than_before(
    model: Path, objective: str, devices: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = json_of(capsys, "optimize", model, "--devices", devices, "--objective", objective, *FEW)
    require_schema(found, "result")
    before, after = found["before"], found["after"]
    assert len(after["peak_bytes_per_device"]) == int(devices)
    assert after["peak_bytes"] == max(after["peak_bytes_per_device"])
    if objective == "time":
        assert found["lower_bound"]["time_s"] <= after["time_s"] <= before["time_s"]
    if objective == "memory":
        assert found["lower_bound"]["peak_bytes"] <= after["peak_bytes"] <= before["peak_bytes"]


def test_a_plan_file_is_checked_and_applied(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, out = model.with_name("plan.json"), model.with_name("out.onnx")
    found = json_of(capsys, "optimize", model, "--devices", "2", "--plan", plan, *FEW)
    checked = json_of(capsys, "check", model, plan)
    assert {key: checked[key] for key in found["after"]} == found["after"]
    assert json_of(capsys, "apply", model, plan, "-o", out)["checked"] is True
    assert out.exists()


def test_a_judged_plan_is_told_in_lines_with_units(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = model.with_name("plan.json")
    found = json_of(capsys, "optimize", model, "--devices", "2", "--plan", plan, *FEW)
    lines = run(capsys, "check", model, plan)[1].splitlines()
    peaks = ", ".join(f"{peak:,} B" for peak in found["after"]["peak_bytes_per_device"])
    assert f"peak per device {peaks}" in lines
    assert any(re.fullmatch(r"running time  [\d.]+ [num]?s \(predicted\)", line) for line in lines)


def test_times_are_whole_nanoseconds(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = model.with_name("plan.json")
    found = json_of(capsys, "optimize", model, "--devices", "2", "--plan", plan, *FEW)
    assert found["after"]["time_s"] == json.loads(plan.read_text())["time_ns"] / 10**9


def test_of_many_devices_those_that_run_nothing_are_one_line(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run(capsys, "optimize", model, "--devices", "cpu:256", "--evaluations", "1")
    lines = out.splitlines()
    assert "devices       cpu:256: cpu0 ... cpu255 (256)" in lines
    busy = sum(line.startswith("  cpu") for line in lines)
    assert f"  {256 - busy} more devices run nothing" in lines
    assert 0 < busy <= 16


def test_equal_seeds_and_evaluations_give_equal_plans(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plans = []
    for threads in ("1", "2"):
        plan = model.with_name(f"plan{threads}.json")
        args = ("--devices", "2", "--objective", "time", "--plan", plan, "--threads", threads, *FEW)
        json_of(capsys, "optimize", model, *args)
        plans.append(plan.read_bytes())
    assert plans[0] == plans[1]


def test_the_page_and_the_trace_are_written_beside_the_result(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, trace = model.with_name("page.html"), model.with_name("trace.json")
    for devices in ("1", "2"):
        args = ("--devices", devices, "--report", page, "--trace", trace, "--force")
        json_of(capsys, "optimize", model, *args, *FEW)
        assert page.read_text().startswith("<!doctype html>")
        assert json.loads(trace.read_text())["traceEvents"]


@pytest.mark.parametrize(
    ("devices", "rows"),
    [
        ("1", {"runtime", "regal", "file-order", "dfs", "lpmf", "xla-list", "ort-default"}),
        ("2", {"before", "regal", "single-device", "heft", "etf", "m-topo", "round-robin"}),
    ],
)
def test_a_page_has_a_table_of_the_result_beside_rules_that_need_no_search(
    devices: str, rows: set[str], model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = model.with_name("page.html")
    found = json_of(capsys, "optimize", model, "--devices", devices, "--report", page, *FEW)
    embedded = re.search(r'id="comparison"[^>]*>(.*?)</script>', page.read_text(), re.DOTALL)
    assert embedded is not None
    comparison = json.loads(embedded[1])
    require_schema(comparison, "comparison")
    methods = {row["method"]: row for row in comparison["methods"]}
    assert rows <= set(methods)
    assert methods["regal"]["peak_bytes"] == found["after"]["peak_bytes"]
    assert methods["regal"]["evaluations"] == found["evaluations"]
    least = min(row["peak_bytes"] for row in comparison["methods"])
    assert comparison["methods"][0]["peak_bytes"] == methods["regal"]["peak_bytes"] == least


def test_a_profile_says_on_which_devices_its_times_apply(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = model.with_name("profile.json")
    loaded = load(model)
    first = loaded.graph.ops[0]
    times = {op_key(first, loaded.graph): OpTime(ns=50, spread_ns=1, samples=3)}
    profile.write_text(
        profile_to_json(
            Profile(
                model="m", framework="onnx", runtime="x 1", device_kind="cpu", machine={},
                threads=1, runs=1, warmup=0, overhead_ns=0, total_ns=50, profiled_ns=50, ops=1,
                not_measured={}, times=times,
            )
        )
    )  # fmt: skip
    alike = sum(op_key(op, loaded.graph) in times for op in loaded.graph.ops)
    head = f"profile: {alike} of {len(loaded.graph.ops)} ops have measured times"
    for devices, tail in (
        ("1", ""),
        ("cpu:2", ""),
        ("2", ", which apply to cpu-kind devices only: not to 'gpu0' and 1 more"),
    ):
        argv = ("optimize", model, "--devices", devices, "--profile", profile, *FEW)
        assert head + tail in json_of(capsys, *argv)["notes"]


def test_a_memory_that_nothing_fits_is_a_status_with_the_overflow(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(
        capsys, "optimize", model, "--devices", "2", "--capacity", "64", *FEW, "--json"
    )
    found = json.loads(out)
    assert code == 1
    assert found["fits"] is False
    assert found["after"]["overflow_bytes"] > 0


def test_methods_are_compared_side_by_side(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json_of(
        capsys, "compare", model, "--devices", "2", "--objective", "time",
        "--methods", "regal,heft,single-device", *FEW,
    )  # fmt: skip
    require_schema(found, "comparison")
    rows = found["methods"]
    assert {row["method"] for row in rows} == {"before", "regal", "heft", "single-device"}
    assert rows[0]["relative"] == 1.0


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--devices", "x"], "unknown devices 'x'; give a number, a .toml file, or one of"),
        (["--devices", "0"], "devices '0': give a number from 1 to 256"),
        (["--devices", ""], "unknown devices ''; give a number"),
        (["--devices", "none.toml"], "devices file 'none.toml'"),
        (["--devices", "2", "--method", "x"], "unknown method 'x' for several devices; known"),
        (["--weights", "time=x"], "argument --weights: 'time=x': 'x' is not a number"),
        (["--weights", "speed=1"], "argument --weights: 'speed=1' is not time=W,memory=W"),
        (["--devices", "2", "--profile", "none.json"], "profile file 'none.json' does not exist"),
    ],
)
def test_wrong_use_is_one_line(
    argv: list[str], message: str, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "optimize", model, *argv)
    assert (code, out) == (2, "")
    assert err.startswith(f"regal: error: {message}")
    assert err.count("\n") == 1
