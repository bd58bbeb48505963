"""What the documents show works as shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from regal.cli.main import main
from regal.data import load_index

ROOT = Path(__file__).parents[1]
NEEDS_A_FILE = re.compile(r'"\w+\.(onnx|tflite|pb)"')
MODEL = ROOT / "examples" / "models" / "wakeword_streaming_int8.tflite"


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_plan_in_the_formats_page_is_one_of_the_graph_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph, plan = (tmp_path / "tiny.json", tmp_path / "plan.json")
    for path, text in zip((graph, plan), blocks("docs/formats.md", "json"), strict=True):
        path.write_text(text)
    assert main(["check", str(graph), str(plan)]) == 0
    assert "128 B" in capsys.readouterr().out


def test_the_buffers_in_the_formats_page_are_placed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (text,) = blocks("docs/formats.md", "text")
    path = tmp_path / "buffers.csv"
    path.write_text(text)
    assert main(["allocate", str(path), "--capacity", "128"]) == 0
    assert main(["allocate", str(path), "--capacity", "127"]) == 1
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "code",
    [code for code in blocks("docs/python.md", "python") if not NEEDS_A_FILE.search(code)],
    ids=lambda code: code.split()[1],
)
def test_a_piece_of_the_python_page_runs(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(code, {})
    assert capsys.readouterr().out


def test_the_numbers_in_the_readme_are_those_of_the_model(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (shown,) = blocks("README.md", "text")
    assert main(["optimize", str(MODEL)]) == 0
    lines = capsys.readouterr().out.splitlines()
    is_same = re.compile("peak memory|arena|repeat with")
    assert [line for line in lines if is_same.match(line)] == [
        line for line in shown.splitlines() if is_same.match(line)
    ]


@pytest.mark.parametrize(
    "page", ["README.md", "docs/dataset.md", "docs/evaluate.md", "docs/cli.md"]
)
def test_the_graphs_that_a_page_names_are_in_the_set(page: str) -> None:
    text = (ROOT / page).read_text()
    named = re.findall(r"[a-z]+/[\w.-]+/[\w.-]+/(?:inference|training|joint)-b\d+[\w-]*", text)
    assert set(named) <= {entry.key for entry in load_index()}


def test_the_example_of_the_data_set_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks("docs/dataset.md", "python")
    exec(code, {})
    assert "resnet18" in capsys.readouterr().out
