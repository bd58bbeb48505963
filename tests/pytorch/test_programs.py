"""Whatever the program, results are those of eager PyTorch, bit for bit."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pytorch.run_child import needs_torch, results_of

pytestmark = needs_torch

PROGRAMS = (
    "mutated inputs",
    "aliased outputs",
    "random numbers",
    "a choice",
    "a loop",
    "a scan",
    "sizes that data decide",
    "free sizes",
    "a training step",
    "tied weights",
    "a checkpoint",
    "a retained graph",
    "autocast",
    "no gradients",
    "recomputation",
    "global state",
)


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return results_of("tests.pytorch.programs")


def test_every_program_is_looked_at(found: dict[str, Any]) -> None:
    assert sorted(found) == sorted(PROGRAMS)


@pytest.mark.parametrize("program", PROGRAMS)
def test_results_equal_those_of_eager_pytorch(found: dict[str, Any], program: str) -> None:
    assert found[program]
