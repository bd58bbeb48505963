"""Our operation counts are those that TensorFlow publishes, op by op."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from regal.cost.work import op_flops
from tests.cost.ops import single

CHILD = "tests.cost.tensorflow_registry_child"
MOST_SECONDS = 120
FEWEST_CASES = 35

pytestmark = pytest.mark.skipif(
    find_spec("tensorflow") is None, reason="tensorflow is not installed"
)


@pytest.fixture(scope="module")
def published() -> dict[str, dict[str, Any]]:
    """What TensorFlow says, from a child: its libraries do not stand beside those of others."""
    child = subprocess.run(
        [sys.executable, "-m", CHILD],
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    found: dict[str, dict[str, Any]] = json.loads(child.stdout)
    return found


def test_the_counts_are_those_of_the_registry(published: dict[str, dict[str, Any]]) -> None:
    assert len(published) >= FEWEST_CASES
    for name, case in published.items():
        attributes = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in case["attributes"].items()
        }
        ours = single(
            "tensorflow",
            case["kind"],
            [tuple(shape) for shape in case["inputs"]],
            [tuple(shape) for shape in case["outputs"]],
            attributes,
        )
        assert case["flops"], name
        assert op_flops(ours.ops[0], ours.tensors, "tensorflow") == case["flops"], name
