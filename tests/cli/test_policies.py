"""`--policy`, and `regal train`, from the command line."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from regal.cli.main import main
from regal.cli.train import use_of
from tests.onnx_models import branches, save

ROOT = Path(__file__).parents[2]
TOY = """
[data]
problem = "toy"
[network]
hidden = 8
layers = 1
[trainer]
iterations = 4
tasks = 2
samples = 2
valid_every = 2
checkpoint_every = 2
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return save(branches(), tmp_path / "model.onnx")


def planned(capsys: pytest.CaptureFixture[str], model: Path, *more: str) -> dict[str, object]:
    command = ["optimize", str(model), "--devices", "2", "--evaluations", "150", "--json", *more]
    assert main(command) == 0
    document = json.loads(capsys.readouterr().out)
    return {**document["after"], "evaluations": document["evaluations"]}


def test_without_a_policy_the_papers_method_is_brkga(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = planned(capsys, model, "--method", "regal-paper", "--policy", "none")
    assert ours == planned(capsys, model, "--method", "brkga")


def test_an_untrained_policy_plans_too(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = planned(capsys, model, "--method", "regal-paper", "--policy", "untrained")
    assert found["evaluations"] == 150


def test_a_comparison_gives_the_policy_to_the_methods_that_learn(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["compare", str(model), "--devices", "2", "--evaluations", "100", "--json"]
    assert main([*command, "--methods", "regal-paper,brkga", "--policy", "none"]) == 0
    rows = {row["method"]: row for row in json.loads(capsys.readouterr().out)["methods"]}
    assert rows["regal-paper"]["relative"] == rows["brkga"]["relative"]


def test_a_policy_that_is_not_there_is_told(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["optimize", str(model), "--devices", "2", "--policy", "absent.onnx"]) == 2
    assert "policy 'absent.onnx' is neither a file nor one of" in capsys.readouterr().err


@pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed")
def test_training_without_torch_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", str(tmp_path / "c.toml"), "-o", str(tmp_path / "out")]) == 2
    assert "pip install 'regal[train]'" in capsys.readouterr().err


def train(tmp_path: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run `regal train` in a process of its own: no torch beside OR-tools."""
    config = tmp_path / "toy.toml"
    config.write_text(TOY)
    command = [sys.executable, "-m", "regal", "train", str(config), "-o", str(tmp_path / "run")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        [*command, *more], capture_output=True, text=True, check=False, env=environment
    )


@pytest.mark.skipif(
    find_spec("torch") is None or find_spec("onnxscript") is None, reason="torch is not installed"
)
def test_training_shows_progress_and_says_where_the_policy_is(tmp_path: Path) -> None:
    done = train(tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert Path(document["policy"]).is_file()
    assert document["iterations"] == 4
    assert document["searches"] == 16
    assert "iteration 4/4" in done.stderr
    again = train(tmp_path)
    assert again.returncode == 2
    assert "go on with --resume" in again.stderr
    longer = train(tmp_path, "--resume", "--json", "--set", "trainer.iterations=6")
    assert longer.returncode == 0, longer.stderr
    assert json.loads(longer.stdout)["searches"] == 24


def test_a_policy_of_the_paper_is_used_with_its_method() -> None:
    policy = Path("runs/a/policy.onnx")
    paper = "regal optimize MODEL --devices 2 --method regal-paper --policy runs/a/policy.onnx"
    assert use_of("paper", policy) == paper
    assert use_of("prior", policy) == paper.replace(" --method regal-paper", "")
