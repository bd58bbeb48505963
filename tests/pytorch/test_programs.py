"""Whatever the program, results are those of eager PyTorch, bit for bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.pytorch.run_child import needs_torch, results_of

if TYPE_CHECKING:
    from pathlib import Path

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
MORE_PROGRAMS = (
    "frozen parameters",
    "recurrent cells",
    "kinds of normalization",
    "a choice in training",
    "sources that are written later",
    "complex numbers",
    "views of inputs are written",
    "inputs are returned",
    "scattered writes",
    "mapped gradients",
    "samples",
    "accumulated gradients",
    "an optimizer in the graph",
    "other sizes",
    "free sizes in training",
    "channels last",
    "gradients of inputs",
    "hooks on saved values",
    "sixteen bits",
    "recomputation with random numbers",
    "threads",
)


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return results_of("tests.pytorch.programs")


@pytest.fixture(scope="module")
def more() -> dict[str, Any]:
    return results_of("tests.pytorch.more_programs")


def test_every_program_is_looked_at(found: dict[str, Any], more: dict[str, Any]) -> None:
    assert sorted(found) == sorted(PROGRAMS)
    assert sorted(more) == sorted(MORE_PROGRAMS)


@pytest.mark.parametrize("program", PROGRAMS)
def test_results_equal_those_of_eager_pytorch(found: dict[str, Any], program: str) -> None:
    assert found[program]


@pytest.mark.parametrize("program", MORE_PROGRAMS)
def test_results_of_further_programs_equal_those_of_eager_pytorch(
    more: dict[str, Any], program: str
) -> None:
    assert more[program]


def test_two_processes_that_share_gradients_train_as_they_do_eagerly(tmp_path: Path) -> None:
    # The module is compiled before it is wrapped, or with what wraps it; small buckets cut graphs.
    ranks = results_of("tests.pytorch.distributed", str(tmp_path))["ranks"]
    assert len(ranks) == 2
    for rank in ranks:
        assert rank["warnings"] == []
        assert len(rank["equal"]) == 4
        assert all(rank["equal"].values())
