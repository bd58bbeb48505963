"""The PyTorch and JAX frontends, each tested in a process of its own where it is installed."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from regal.child import run_module

HERE = Path(__file__).parent
LONGEST = 240.0  # seconds; only a process that hangs takes as long


@pytest.mark.parametrize(
    "path",
    [
        "torch/check_eager.py",
        "torch/check_fx.py",
        "torch/check_in_place.py",
        "jax/check_jaxpr.py",
    ],
)
def test_the_frontend_passes_its_own_tests(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    framework = path.partition("/")[0]
    if find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    monkeypatch.syspath_prepend(str(HERE.parents[1]))
    run = run_module("pytest", [str(HERE / path), "-p", "no:cacheprovider"], LONGEST)
    assert run.end == "", run.stdout
    assert " passed" in run.stdout
