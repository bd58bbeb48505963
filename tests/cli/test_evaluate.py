"""`regal evaluate`: from a suite to rows, tables, pictures and a page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from regal.cli.main import main
from regal.evaluation.page import END, marker_of

SUITE = """
name = "tiny"
about = "A tiny suite."
objectives = ["time", "memory"]
systems = ["2"]
[[references]]
method = "brkga"
evaluations = 200
[[methods]]
name = "regal"
[[methods]]
name = "brkga"
[[budgets]]
evaluations = 200
[[graphs]]
planted = "time"
ops = [24]
devices = [2]
[[graphs]]
keys = ["torch/transformers/patchtst/inference-b1"]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a suite and the rows of its run."""
    path = tmp_path_factory.mktemp("evaluate")
    (path / "tiny.toml").write_text(SUITE)
    command = ["evaluate", str(path / "tiny.toml"), "--results", str(path), "--workers", "2"]
    assert main(command) == 0
    return path


def test_a_run_prints_tables_and_repeats_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = (folder / "tiny.jsonl").read_text()
    assert len(rows.splitlines()) == 6
    command = ["evaluate", str(folder / "tiny.toml"), "--results", str(folder)]
    assert main([*command, "--plots", str(folder / "plots")]) == 0
    out = capsys.readouterr().out
    assert "6 runs, 0 of them failed; 2 graphs of 2 families (planted, valid)" in out
    assert "| memory | 2 | 200 evaluations | regal |" in out
    assert (folder / "tiny.jsonl").read_text() == rows
    assert (folder / "plots" / "tiny_gain_time.svg").exists()


def test_json_is_one_object_with_every_comparison(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = str(folder / "tiny.toml")
    assert main(["evaluate", suite, "--results", str(folder), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["runs"]) == ("regal.evaluation/1", 6)
    assert document["failed"] == 0
    assert [(one["objective"], one["pairs"]) for one in document["comparisons"]] == [
        ("time", 2), ("memory", 1),
    ]  # fmt: skip


def test_table_writes_the_tables_into_a_page(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = folder / "page.md"
    page.write_text(f"# Mine\n\n{marker_of('tiny')}\n{END}\n\nMine, too.\n")
    suite = str(folder / "tiny.toml")
    command = ["evaluate", suite, "--table", "--results", str(folder), "--page", str(page)]
    assert main(command) == 0
    text = page.read_text()
    assert text.startswith("# Mine\n")
    assert text.endswith("\n\nMine, too.\n")
    assert "| time | 2 | 200 evaluations | regal |" in text
    assert main(command) == 0
    assert page.read_text() == text
    assert "tiny" in capsys.readouterr().out


def test_the_tables_of_the_results_page_are_those_of_the_committed_rows(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    shown = (root / "docs" / "results.md").read_text()
    page = tmp_path / "results.md"
    page.write_text(shown)
    results = root / "benchmarks" / "results"
    assert main(["evaluate", "--table", "--results", str(results), "--page", str(page)]) == 0
    assert page.read_text() == shown


def test_list_names_the_suites(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--list"]) == 0
    assert "sanity " in capsys.readouterr().out


def test_wrong_use_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    binary = tmp_path / "binary.md"
    binary.write_bytes(b"\xff")
    for argv, message in (
        ([], "give a suite, --list, or --table"),
        (["none"], "unknown suite 'none'"),
        (["--table", "--page", str(tmp_path / "none.md")], "does not exist"),
        (["sanity", "--table", "--results", str(tmp_path)], "row file"),
        (["--table", "--page", str(binary)], "is not UTF-8 text"),
    ):
        assert main(["evaluate", *argv]) == 2
        err = capsys.readouterr().err
        assert err.startswith("regal: error: ")
        assert message in err
        assert err.count("\n") == 1
