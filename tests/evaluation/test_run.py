"""Running a suite: nothing twice, nothing lost, whatever methods do to their process."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest

from regal.data.entries import SHIPPED
from regal.errors import UsageError
from regal.evaluation.rows import newest, read_rows, row_to_json
from regal.evaluation.run import Folders, run_suite
from regal.evaluation.suite import BudgetRule, GraphsRule
from tests.evaluation.fakes import FAKES
from tests.evaluation.made import row, suite

if TYPE_CHECKING:
    from regal.evaluation.rows import Row
    from regal.evaluation.suite import Suite

FOLDERS = Folders(data=SHIPPED)
SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"


def run(runs: Suite, path: Path) -> list[Row]:
    return run_suite(runs, path, FOLDERS, methods=FAKES)


def test_a_method_that_hangs_or_dies_costs_its_own_runs_only(tmp_path: Path) -> None:
    runs = suite("optimum", "sleeper", "dier", seeds=(0, 1), limit_seconds=3.0)
    rows = {(one.method, one.seed): one for one in run(runs, tmp_path / "rows.jsonl")}
    assert rows["sleeper", 0].failure == "did not finish within 3 s"
    assert rows["dier", 0].failure == "the process died with exit code 3"
    assert [one for one in rows.values() if not one.failure] == [
        rows["optimum", 0], rows["optimum", 1], rows["sleeper", 1], rows["dier", 1],
    ]  # fmt: skip


def test_what_has_a_row_is_not_run_again_and_a_cut_off_row_is(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    few = suite("optimum", "brkga", seeds=(0,))
    first = run(few, path)
    more = replace(few, seeds=(0, 1))
    path.write_text(path.read_text() + '{"schema":"regal.row/1","id":"cut')
    second = run(more, path)
    assert [one for one in second if one.seed == 0] == first  # times and all
    assert len(newest(read_rows(path))) == len(second) == 4
    assert run(more, path) == second


def test_failures_stay_until_they_are_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    runs = suite("optimum", "raiser")
    (_, failed) = run(runs, path)
    assert failed.failure == "ZeroDivisionError: no luck today"
    lucky = {**FAKES, "raiser": FAKES["optimum"]}
    assert run_suite(runs, path, FOLDERS, methods=lucky)[1] == failed
    assert run_suite(runs, path, FOLDERS, methods=lucky, retry=True)[1].failure == ""


def test_rows_say_what_was_run_where_and_with_what(tmp_path: Path) -> None:
    runs = suite("optimum", objectives=("time", "balanced"))
    rows = run(runs, tmp_path / "rows.jsonl")
    assert [one.objective for one in rows] == ["time"]  # its optimum is known for time alone
    (one,) = rows
    assert (one.graph, one.family, one.split) == (
        "planted/time/d2-n20-0", "planted-time", "planted",
    )  # fmt: skip
    assert (one.ops, one.n_devices, one.seed, one.budget) == (20, 2, 0, "50 evaluations")
    assert one.machine["cores"] > 0
    assert one.machine["workers"] == 1
    assert one.version
    assert one.before == 200_000
    text = (tmp_path / "rows.jsonl").read_text()
    assert text == row_to_json(one)
    schema = json.loads((SCHEMAS / "row.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(json.loads(text))


def test_a_budget_may_be_the_time_that_another_method_took(tmp_path: Path) -> None:
    budgets = (
        BudgetRule(evaluations=50, methods=("optimum", "raiser", "dier")),
        BudgetRule(evaluations=50, seconds_of="optimum", methods=("regal",)),
        BudgetRule(evaluations=50, seconds_of="raiser", methods=("brkga",)),
    )
    # The process that ran "optimum" dies before "regal" is its turn: the time is still known.
    runs = suite("optimum", "raiser", "dier", "regal", "brkga", budgets=budgets)
    found = {one.method: one for one in run(runs, tmp_path / "r.jsonl")}
    assert found["regal"].asked_seconds == found["optimum"].seconds
    assert found["regal"].asked_evaluations is None
    assert found["regal"].failure == ""
    assert found["brkga"].failure == "the run of 'raiser' that decides its time failed"


def test_a_graph_that_cannot_be_loaded_fails_all_its_runs(tmp_path: Path) -> None:
    (tmp_path / "broken.onnx").write_bytes(b"nothing")
    graphs = (GraphsRule(files=("broken.onnx",)),)
    runs = suite("optimum", graphs=graphs, objectives=("time", "memory"))
    rows = run_suite(
        runs, tmp_path / "r.jsonl", Folders(data=SHIPPED, files=(tmp_path,)), methods=FAKES
    )
    assert len(rows) == 2
    assert all("broken.onnx" in one.failure for one in rows)


def test_a_file_with_the_structure_of_a_held_out_graph_is_not_tuned_on(tmp_path: Path) -> None:
    from regal.data.entries import load_graph, load_index
    from regal.graph.file import model_to_json
    from regal.graph.types import LoadedModel

    entry = min((e for e in load_index() if e.split == "test"), key=lambda e: e.ops)
    model = LoadedModel(framework="graph", entries=(load_graph(entry),), source=None)
    (tmp_path / "twin.json").write_text(model_to_json(model))
    runs = suite("brkga", graphs=(GraphsRule(files=("twin.json",)),), purpose="tuning")
    folders = Folders(data=SHIPPED, files=(tmp_path,))
    (one,) = run_suite(runs, tmp_path / "r.jsonl", folders)
    assert "which is held out; tuning must not look at it" in one.failure
    (fine,) = run_suite(replace(runs, purpose="report"), tmp_path / "s.jsonl", folders)
    assert fine.failure == ""


def test_a_row_survives_its_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    one = row(curve=((10, 0.5, 3.0),), optimum=2.0)
    path.write_text(row_to_json(one))
    assert read_rows(path) == [one]


def test_a_file_that_holds_no_rows_is_one_line_of_error(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    for text, message in (("[]\n", "not a row of"), ("{\n", "not JSON")):
        path.write_text(text)
        with pytest.raises(UsageError, match=f"line 1: {message}"):
            read_rows(path)


@pytest.mark.parametrize(
    "change",
    [
        {"value": "x"}, {"value": None}, {"value": math.inf}, {"seed": [1]}, {"id": 3},
        {"time_ns": 2**63}, {"fell_back": 1}, {"machine": []}, {"curve": [[1]]}, {"curve": [1]},
        {"curve": [[1e999, 1, 1]]}, {"extra": 1},
    ],
)  # fmt: skip
def test_a_row_with_a_wrong_type_is_one_line_of_error(
    tmp_path: Path, change: dict[str, object]
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(json.loads(row_to_json(row())) | change) + "\n")
    (key,) = change
    with pytest.raises(UsageError, match=f"line 1: .*{key}"):
        read_rows(path)
