"""`regal profile` and `regal validate` on the command line."""

import io
import json
import sys
from pathlib import Path

import pytest

from regal.cli.main import main
from regal.cost.profile import read_profile
from tests.onnx_models import branches, save


def run(*argv: object) -> int:
    return main([str(word) for word in argv])


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return save(branches(), tmp_path / "m.onnx")


def test_a_profile_is_written_and_what_it_covers_is_printed(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = model.with_name("p.json")
    assert run("profile", model, "-o", out, "--runs", 2, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    found = read_profile(out)
    assert document["ops"] == document["covered_ops"] == found.ops
    assert document["total_ns"] == found.total_ns
    assert document["slowest"][0]["ns"] == max(time.ns for time in found.times.values())
    assert run("profile", model, "-o", out, "--runs", 2, "--force") == 0
    text = capsys.readouterr().out
    assert f"ops           {found.ops} of {found.ops} measured" in text
    assert f"written       {out}" in text


def test_a_validation_with_a_profile_says_where_its_times_come_from(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = model.with_name("p.json")
    assert run("profile", model, "-o", out, "--runs", 2) == 0
    capsys.readouterr()
    few = ("--plans", 2, "--repeats", 1, "--invocations", 1)
    assert run("validate", model, "--profile", out, *few, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document["sources"]) == ["profile"]
    assert len(document["plans"]) == 2
    assert run("validate", model, *few) == 0
    assert "op times      from roofline" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("profile", "{m}", "-o", "{m}"), "has the ending of another kind of file"),
        (("profile", "{m}", "-o", "{p}"), "exists; pass --force to replace it"),
        (("profile", "{m}"), "the following arguments are required: -o/--out"),
        (("profile", "{m}", "-o", "{n}", "--runs", "0"), "'0' is not a whole number above 0"),
        (("profile", "{m}", "-o", "{n}", "--timeout", "x"), "'x' is not a time"),
        (("profile", "{m}x", "-o", "{n}"), "does not exist"),
        (("validate", "{m}", "--profile", "{m}"), "is not JSON"),
        (("validate", "{m}", "--profile", "{n}"), "profile file '{n}' does not exist"),
        (("validate", "{m}", "--devices", "tpu"), "unknown devices 'tpu'; give a number, a .toml"),
        (("validate", "{m}", "--plans", "9999"), "give 1 to 1000 of each"),
    ],
)
def test_wrong_use_is_one_line(
    argv: tuple[str, ...], message: str, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"m": model, "p": model.with_name("p.json"), "n": model.with_name("n.json")}
    names["p"].write_text("{}")
    assert run(*(word.format(**names) for word in argv)) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("regal: error: ")
    assert printed.err.count("\n") == 1
    assert message.format(**names) in printed.err
    assert not names["n"].exists()


def test_names_that_the_terminal_cannot_show_are_escaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(branches(), tmp_path / "m\N{GREEK SMALL LETTER MU}.onnx")
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, encoding="ascii"))
    out = tmp_path / "p.json"
    assert run("profile", path, "-o", out, "--runs", 1, "--warmup", 1) == 0
    assert b"m\\u03bc.onnx" in shown.getvalue()
