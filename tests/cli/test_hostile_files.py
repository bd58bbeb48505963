"""Spoiled graph, plan and buffer files end in an answer or in one line: never in a traceback."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.hostile_runs import check_case, run_main

if TYPE_CHECKING:
    from pathlib import Path

CASES = 300

GRAPH: dict[str, Any] = {
    "schema": "regal.graph/1",
    "ops": [{"name": "a", "kind": "A", "inputs": [0], "outputs": [1]}],
    "tensors": [{"name": "x", "bytes": 4}, {"name": "y", "bytes": 4}],
    "inputs": [0],
    "outputs": [1],
}


def test_spoiled_files_end_in_an_answer_or_in_one_line(tmp_path: Path) -> None:
    codes = set()
    for number in range(CASES):
        wrong, code = check_case(number, tmp_path)
        assert not wrong
        codes.add(code)
    assert codes == {0, 1, 2}  # some changes are harmless: the file still says something legal


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offsets": {"0": {"offset": float("inf")}}}, "holds inf, expected an integer below 2^62"),
        ({"peak_bytes": 8.5}, "plan holds 8.5, expected an integer below 2^62"),
        ({"arena_bytes": 1 << 63}, "plan holds 9223372036854775808, expected an integer"),
        ({"seed": True}, "plan holds True, expected an integer below 2^62"),
        ({"offsets": {"00": {"offset": 0}}}, "plan places storage '00', expected a number"),
        ({"entries": 3}, "'plan.json' has 3 entries, the model 1"),
        ({"bodies": {"a": [{}]}}, "plan of op 'a' is not a list of 0 bodies"),
        ({"order": {}}, "'plan.json' is not a whole plan: 'cpu0' is missing"),
        ({"method": ["x" * 500]}, "plan holds ['xxxxxxxxxxxx...xxxxxxxxxxxxx'], expected a string"),
    ],
)
def test_a_plan_with_a_wrong_value_is_refused_with_the_value(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    model, plan = tmp_path / "model.json", tmp_path / "plan.json"
    model.write_text(json.dumps(GRAPH))
    assert run_main(["optimize", str(model), "--plan", str(plan)])[0] == 0
    plan.write_text(json.dumps({**json.loads(plan.read_text()), **change}))
    code, out, err = run_main(["check", str(model), str(plan)])
    assert (code, out) == (2, "")
    assert message in err


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    model = tmp_path / "model.json"
    model.write_text(json.dumps({**GRAPH, "name": "\ud800"}))
    code, _, err = run_main(["inspect", str(model)])
    assert (code, err.count("\n")) == (2, 1)
    assert "'name' is '\\ud800', which is no Unicode text" in err


def test_an_attribute_of_an_unknown_type_is_refused(tmp_path: Path) -> None:
    model = tmp_path / "model.json"
    op = {**GRAPH["ops"][0], "attributes": {"axis": {"deep": 1}}}
    model.write_text(json.dumps({**GRAPH, "ops": [op]}))
    code, _, err = run_main(["inspect", str(model)])
    assert code == 2
    assert "op 0: attribute 'axis' is {'deep': 1}, expected a number, a text or a list" in err


def test_a_converted_graph_is_optimized_into_a_graph_file(tmp_path: Path) -> None:
    """The file names the framework that it came from; only the graph is there to be written."""
    model, out = tmp_path / "model.json", tmp_path / "out.json"
    model.write_text(json.dumps({**GRAPH, "framework": "tflite"}))
    code, _, err = run_main(["optimize", str(model), "-o", str(out)])
    assert (code, err) == (0, "")
    assert json.loads(out.read_text())["framework"] == "tflite"


def test_many_graph_inputs_are_read_in_linear_time(tmp_path: Path) -> None:
    n = 60_000  # a quadratic reader would take minutes
    model = tmp_path / "model.json"
    graph = {**GRAPH, "tensors": [{"bytes": 1}] * n, "inputs": list(range(n - 1)), "ops": []}
    model.write_text(json.dumps({**graph, "outputs": [0]}))
    assert run_main(["convert", str(model), "-o", str(tmp_path / "out.json")])[0] == 0
