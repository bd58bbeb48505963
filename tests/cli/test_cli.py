from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tools.make_cli_docs import PAGE, cli_page

from regal.backends.types import RuntimeCheck, Verification
from regal.cli.main import build_parser, main
from regal.cli.output import verification_text
from regal.graph.file import model_to_json
from regal.graph.types import LoadedModel
from regal.inspection import short
from tests.frontends.tflite_models import chain
from tests.frontends.tflite_writer import write_tflite
from tests.graphs import random_graph
from tests.onnx_models import branches, save

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    graph = random_graph(11, 12, alignment=4)
    path = tmp_path / "model.json"
    path.write_text(model_to_json(LoadedModel(framework="graph", entries=(graph,), source=None)))
    return path


def run(capsys: pytest.CaptureFixture[str], *argv: object) -> tuple[int, str, str]:
    code = main([str(word) for word in argv])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def json_of(capsys: pytest.CaptureFixture[str], *argv: object) -> dict[str, Any]:
    code, out, err = run(capsys, *argv, "--json")
    assert (code, err) == (0, "")
    document: dict[str, Any] = json.loads(out)
    return document


def require_schema(document: dict[str, Any], name: str) -> None:
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)


def test_optimize_prints_a_result_of_its_schema_and_writes_nothing(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = set(model.parent.iterdir())
    document = json_of(capsys, "optimize", model)
    require_schema(document, "result")
    assert document["after"]["peak_bytes"] <= document["before"]["peak_bytes"]
    assert document["verify_skipped"]
    assert set(model.parent.iterdir()) == files


def test_a_verified_result_is_of_its_schema(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tflite_micro")
    path = tmp_path / "model.tflite"
    path.write_bytes(write_tflite(chain()))
    document = json_of(capsys, "optimize", path, "-o", tmp_path / "out.tflite")
    require_schema(document, "result")
    assert document["verified"]["runtimes"][0]["runtime"].startswith("tflite-micro")


def test_inspect_and_compare_print_objects_of_their_schemas(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    require_schema(json_of(capsys, "inspect", model), "inspection")
    document = json_of(capsys, "compare", model, "--methods", "file-order,cp-sat,regal")
    require_schema(document, "comparison")


@pytest.mark.parametrize("capacity", [[], ["--capacity", "12"], ["--capacity", "3"]])
def test_allocate_prints_an_object_of_its_schema(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], capacity: list[str]
) -> None:
    path = tmp_path / "b.csv"
    path.write_text("id,lower,upper,size\na,0,2,4\nb,1,3,8\n")
    _, out, _ = run(capsys, "allocate", path, *capacity, "--json")
    require_schema(json.loads(out), "allocation")


def test_optimize_plan_check_apply_agree(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = model.parent
    plan, out, again = folder / "plan.json", folder / "out.json", folder / "again.json"
    result = json_of(capsys, "optimize", model, "-o", out, "--plan", plan)
    require_schema(json.loads(plan.read_text()), "plan")
    checked = json_of(capsys, "check", model, plan)
    assert checked["peak_bytes"] == result["after"]["peak_bytes"]
    json_of(capsys, "apply", model, plan, "-o", again)
    assert again.read_bytes() == out.read_bytes()
    require_schema(json.loads(out.read_text()), "graph")
    assert json_of(capsys, "inspect", out)["ops"] == result["ops"]


def test_the_same_seed_gives_the_same_plan_file_byte_for_byte(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plans = []
    for name, threads in (("a", 1), ("b", 3)):
        path = model.parent / f"{name}.json"
        json_of(capsys, "optimize", model, "--plan", path, "--seed", 4, "--threads", threads,
                "--evaluations", 500)  # fmt: skip
        plans.append(path.read_bytes())
    assert plans[0] == plans[1]


def test_all_switches_of_choices_give_checked_plans_and_more_choices_never_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in range(6):
        path = tmp_path / f"{seed}.json"
        graph = random_graph(seed, 9, concats=True)
        path.write_text(
            model_to_json(LoadedModel(framework="graph", entries=(graph,), source=None))
        )
        arenas = [
            json_of(capsys, "optimize", path, *switches)["after"]["arena_bytes"]
            for switches in (
                (),
                ("--no-in-place",),
                ("--no-sub-buffers",),
                ("--no-in-place", "--no-sub-buffers"),
            )
        ]
        assert arenas[0] == min(arenas)
        assert arenas[3] == max(arenas)


def test_a_changed_plan_is_refused_with_the_rule_it_breaks(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = model.parent / "plan.json"
    json_of(capsys, "optimize", model, "--plan", plan)
    document = json.loads(plan.read_text())
    document["peak_bytes"] -= 1
    plan.write_text(json.dumps(document))
    code, out, err = run(capsys, "check", model, plan)
    assert (code, out) == (2, "")
    assert re.fullmatch(
        r"regal: error: plan of 'random11' claims a peak of \d+ bytes; it is \d+\n", err
    )


def test_a_plan_of_another_model_is_refused(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = model.parent / "plan.json"
    json_of(capsys, "optimize", model, "--plan", plan)
    other = model.parent / "other.json"
    graph = random_graph(12, 12)
    other.write_text(model_to_json(LoadedModel(framework="graph", entries=(graph,), source=None)))
    code, _, err = run(capsys, "check", other, plan)
    assert code == 2
    assert "is a plan of another graph" in err


def test_an_existing_output_needs_force_and_the_input_is_never_overwritten(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = model.parent / "out.json"
    out.write_text("keep me")
    code, _, err = run(capsys, "optimize", model, "-o", out)
    assert (code, err) == (2, f"regal: error: output '{out}' exists; pass --force to replace it\n")
    assert out.read_text() == "keep me"
    code, _, err = run(capsys, "optimize", model, "-o", model, "--force")
    assert code == 2
    assert "an input is never overwritten" in err
    assert run(capsys, "optimize", model, "-o", out, "--force")[0] == 0


def test_a_capacity_that_no_plan_meets_ends_with_1_and_says_why(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, "optimize", model, "--capacity", "1")
    assert code == 1
    assert "does not fit" in out
    assert "impossible by order and packing" in out
    assert run(capsys, "optimize", model, "--capacity", "1M")[0] == 0


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["optimize"], "the following arguments are required: MODEL; see regal optimize --help"),
        (["optimise", "x"], "argument COMMAND: invalid choice: 'optimise'"),
        (["inspect", "none.json"], "model file 'none.json' does not exist"),
        (["inspect", "."], "model '.' is not a file"),
        (["optimize", "x.json", "--time", "-3"], "argument --time: '-3' is not a time"),
        (["optimize", "x.json", "--evaluations", "0"], "argument --evaluations: '0' is not"),
        (["optimize", "x.json", "--shape", "a"], "argument --shape: 'a' is not NAME=DIMS"),
        (["optimize", "x.json", "--dim", "a=b"], "argument --dim: 'a=b' is not NAME=N"),
        (["optimize", "x.json", "--weights", "time=x"], "argument --weights: 'time=x': 'x' is not"),
        (["optimize", "x.json", "--objective", "speed"], "argument --objective: invalid choice"),
        (["allocate", "none.csv"], "file 'none.csv' does not exist"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, *argv)
    assert (code, out) == (2, "")
    assert err.startswith(f"regal: error: {message}")
    assert err.count("\n") == 1


def test_an_unknown_method_lists_the_known_ones(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "optimize", model, "--method", "magic")
    assert code == 2
    assert "unknown method 'magic'; known: regal, exact, windows, file-order" in err


def test_compare_has_a_row_per_method_best_first(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json_of(capsys, "compare", model, "--methods", "file-order,regal,dfs")
    peaks = [row["peak_bytes"] for row in document["methods"]]
    assert peaks == sorted(peaks)
    assert {row["method"] for row in document["methods"]} == {
        "runtime", "file-order", "regal", "dfs",
    }  # fmt: skip


def test_compare_states_a_gap_although_no_compared_method_proves_a_bound(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json_of(capsys, "compare", model, "--methods", "random,dfs", "--evaluations", 3)
    bound = document["lower_bound"]["peak_bytes"]
    assert 0 < bound <= json_of(capsys, "optimize", model)["after"]["peak_bytes"]
    assert all(row["gap"] >= 0 for row in document["methods"])


def test_an_output_with_the_ending_of_another_kind_of_model_is_refused(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, plan = model.with_name("out.onnx"), model.with_name("plan.json")
    json_of(capsys, "optimize", model, "--plan", plan)
    for argv in (
        ["optimize", model, "-o", out],
        ["apply", model, plan, "-o", out],
        ["convert", model, "-o", out],
        ["verify", model, out],
    ):
        code, _, err = run(capsys, *argv)
        assert code == 2
        assert "has the ending of another kind of file" in err
    assert not out.exists()


def test_inspect_lists_what_is_live_at_the_peak(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json_of(capsys, "inspect", model)
    live = sum(tensor["bytes"] for tensor in document["live_at_peak"])
    assert live + document["workspace_at_peak"] == document["peak_bytes"]
    assert document["lower_bound"]["peak_bytes"] <= document["peak_bytes"]
    assert max(document["bytes_at_step"]) == document["peak_bytes"]


def test_inspect_of_an_applied_onnx_model_shows_the_peak_of_its_own_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = save(branches(6), tmp_path / "m.onnx"), tmp_path / "o.pbtxt"
    result = json_of(capsys, "optimize", source, "-o", out, "--no-verify")
    peak = result["after"]["peak_bytes"]
    assert json_of(capsys, "inspect", source)["file_order_peak_bytes"] > peak
    assert json_of(capsys, "inspect", out)["file_order_peak_bytes"] == peak
    assert f"file order    {peak:,} B" in run(capsys, "inspect", out)[1]


def test_convert_writes_a_graph_that_is_the_same_model(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = model.parent / "copy.json"
    json_of(capsys, "convert", model, "-o", out)
    assert out.read_bytes() == model.read_bytes()
    text = model.parent / "copy.txt"
    json_of(capsys, "convert", model, "-o", text, "--text")
    assert text.read_text().startswith('graph "random11" graph, align 4')


def test_every_file_that_optimize_writes_is_named(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, plan = model.with_name("out.json"), model.with_name("plan.json")
    _, text, _ = run(capsys, "optimize", model, "-o", out, "--plan", plan)
    assert [line.split(maxsplit=1)[1] for line in text.splitlines() if "written " in line] == [
        str(out),
        str(plan),
    ]


def test_check_and_apply_speak_to_people_without_json(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = model.with_name("plan.json")
    peak = json_of(capsys, "optimize", model, "--plan", plan)["after"]["peak_bytes"]
    _, text, _ = run(capsys, "check", model, plan)
    assert "checked       yes\n" in text
    assert f"peak          {peak:,} B\n" in text
    _, text, _ = run(capsys, "apply", model, plan, "-o", model.with_name("out.json"))
    assert "[" not in text.replace(str(model.parent), "")


def test_allocate_says_what_it_found_and_why_nothing_fits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "b.csv"
    path.write_text("id,lower,upper,size\na,0,3,4\nb,2,9,8\n")
    code, text, _ = run(capsys, "allocate", path, "-o", tmp_path / "o.csv")
    assert code == 0
    assert "arena         12 B; equals its bound\n" in text
    assert f"written       {tmp_path / 'o.csv'}" in text
    code, text, _ = run(capsys, "allocate", path, "--capacity", 11)
    assert code == 1
    assert "infeasible: capacity 11 B: buffers live at step 2 need 12 B" in text
    assert "arena" not in text


def test_a_remark_of_the_runtime_is_shown_although_outputs_are_equal() -> None:
    check = RuntimeCheck(
        runtime="r 1", outputs_equal=True, before={}, after={}, invocations=2, detail="peak rose"
    )
    assert verification_text(Verification(checks=(check,))).endswith("peak rose")


def test_names_that_converters_joined_are_shortened_in_the_middle() -> None:
    assert short("conv/Relu;conv/BiasAdd") == "conv/Relu;conv/BiasAdd"
    name = short("model/begin" + "/x" * 100 + "/last")
    assert len(name) == 63
    assert name.startswith("model/begin")
    assert name.endswith("x/last")


def test_the_command_line_page_is_current() -> None:
    assert cli_page() == PAGE.read_text()


def test_every_option_has_a_help_text() -> None:
    for action in build_parser()._actions:
        for command in (action.choices or {}).values() if isinstance(action.choices, dict) else ():
            assert all(option.help for option in command._actions), command.prog
