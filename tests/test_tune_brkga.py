"""The tuning of BRKGA can be cut off and goes on where it was."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

ROOT = Path(__file__).parents[1]

if TYPE_CHECKING:
    from types import ModuleType


@pytest.fixture
def tuning(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    tune_brkga = import_module("tune_brkga")
    monkeypatch.setattr(tune_brkga, "ROUNDS", ((3, 20, 1), (2, 30, 2)))
    monkeypatch.setattr(tune_brkga, "TRAINING", ("wakeword",))
    monkeypatch.setattr(tune_brkga, "SYSTEMS", ("2",))
    return tune_brkga


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    name = "wakeword_streaming_int8.tflite"
    for folder in ("tflite", "onnx"):
        (tmp_path / folder).mkdir()
    (tmp_path / "tflite" / name).write_bytes((ROOT / "examples" / "models" / name).read_bytes())
    return tmp_path


def run(tuning: ModuleType, corpus: Path, out: Path, *argv: str) -> str:
    sys.argv = ["tune_brkga", str(corpus), "--out", str(out), *argv]
    assert tuning.main() == 0
    return out.with_suffix(".json").read_text()


def test_a_run_that_was_cut_off_ends_as_if_it_had_not_been(
    tuning: ModuleType, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", sys.argv)
    whole = run(tuning, corpus, corpus / "a")
    rows = (corpus / "a.jsonl").read_text()
    lines = rows.splitlines(keepends=True)
    (corpus / "b.jsonl").write_text("".join(lines[:2]) + lines[2][:40])
    assert run(tuning, corpus, corpus / "b", "--resume") == whole
    assert (corpus / "b.jsonl").read_text() == rows

    def nothing(*_: object) -> None:
        raise AssertionError("a row that is there is measured again")

    monkeypatch.setattr(tuning, "measured", nothing)
    assert run(tuning, corpus, corpus / "b", "--resume") == whole
    monkeypatch.setattr(tuning, "SYSTEMS", ("4",))
    with pytest.raises(AssertionError, match="measured again"):
        run(tuning, corpus, corpus / "b", "--resume")
