"""`regal dataset`: a small set from the onnx package, and the set that ships."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from regal.cli.main import main
from regal.data import entry_named, load_graph
from regal.frontends import load


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a build of the onnx package's squeezenet."""
    path = tmp_path_factory.mktemp("dataset")
    command = ["dataset", "build", str(path), "--sources", "onnx/onnx.light", "--only", "squeeze"]
    assert main(command) == 0
    return path


def test_build_says_what_it_made(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["dataset", "build", str(folder), "--sources", "onnx/onnx.light", "--json"]
    assert main([*command, "--only", "squeeze"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["items"] == document["traced"] == document["graphs"] == 1
    assert document["failed"] == 0
    assert document["folder"] == str(folder / "set")


def test_info_counts_and_draws(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plots = tmp_path / "plots"
    assert main(["dataset", "info", "--set", str(folder / "set"), "--plots", str(plots)]) == 0
    out = capsys.readouterr().out
    assert "graphs        1 (1 real, 0 synthetic)" in out
    assert "  squeezenet      1 ########################################" in out
    pictures = sorted(plots.glob("*.svg"))
    assert [path.stem for path in pictures] == [
        "by_family", "by_framework", "by_mode", "by_size", "by_source", "by_split",
    ]  # fmt: skip
    for path in pictures:
        ElementTree.fromstring(path.read_text())


def test_info_as_json_has_what_the_text_says(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dataset", "info", "--set", str(folder / "set"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["by_family"] == {"squeezenet": 1}
    assert document["ops"]["least"] == document["ops"]["most"] == 105


def test_split_of_the_set_that_ships_is_clean(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset", "split"]) == 0
    out = capsys.readouterr().out
    assert "leaks         none: no structure, architecture or family is on two sides" in out
    assert main(["dataset", "split", "--json"]) == 0
    sides = json.loads(capsys.readouterr().out)["sides"]
    assert sides["transfer"]["frameworks"] == ["jax"]
    assert "jax" not in sides["train"]["frameworks"] + sides["valid"]["frameworks"]


def test_an_unknown_source_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset", "build", str(tmp_path), "--sources", "torch/none"]) == 2
    assert capsys.readouterr().err.startswith("regal: error: unknown source 'torch/none'; known: ")


def test_a_missing_set_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset", "info", "--set", str(tmp_path / "none")]) == 2
    assert "cannot be read: No such file or directory" in capsys.readouterr().err


def test_list_prints_the_keys_of_one_side(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset", "list", "--split", "test", "--only", "nasnet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines
    for line in lines:
        assert line.split()[1:3] == ["test", "nasnet"]


def test_a_graph_of_the_set_can_be_optimized(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "graph.json"
    key = "onnx/onnx.light/squeezenet/inference-b1"
    get = ["dataset", "get", key, "--set", str(folder / "set"), "-o", str(out)]
    assert main(get) == 0
    assert load(out).graph == load_graph(entry_named(key, folder / "set"), folder / "set")
    assert main(get) == 2  # never over a file that is there
    assert main([*get, "--force"]) == 0
    capsys.readouterr()
    command = ["optimize", str(out), "--devices", "2", "--objective", "time", "--json"]
    assert main([*command, "--evaluations", "50"]) == 0
    assert json.loads(capsys.readouterr().out)["ops"] == 105


def test_a_key_that_is_not_there_is_one_line_with_those_that_are_near(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["dataset", "get", "torch/timm/resnet18/inference", "-o", str(tmp_path / "g.json")]
    assert main(command) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("regal: error: the data set has no graph 'torch/timm/resnet18/infer")
    assert "did you mean torch/timm/" in line
