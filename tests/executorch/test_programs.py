"""ExecuTorch programs with our order and offsets: smaller arenas, equal outputs."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

from tests.pytorch.run_child import results_of

pytestmark = pytest.mark.skipif(
    find_spec("executorch") is None, reason="executorch is not installed"
)

PROGRAMS = ("branches", "views", "state", "parts", "a choice", "the other choice")


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return results_of("tests.executorch.programs")


def test_every_program_is_looked_at(found: dict[str, Any]) -> None:
    assert sorted(found["rows"]) == sorted(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_runtime_yields_what_it_yields_with_executorchs_own_plan(
    found: dict[str, Any], name: str
) -> None:
    row = found["rows"][name]
    assert row["equal"]
    assert row["close"]
    assert row["verified"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_arena_is_larger_than_that_of_greedy(found: dict[str, Any], name: str) -> None:
    row = found["rows"][name]
    assert sum(row["offsets"]) <= sum(row["greedy"])
    assert sum(row["ours"]) <= sum(row["offsets"])


@pytest.mark.parametrize("name", ["branches", "state"])
def test_order_makes_the_arena_of_branches_smaller(found: dict[str, Any], name: str) -> None:
    row = found["rows"][name]
    assert sum(row["ours"]) < sum(row["offsets"])


def test_one_branch_at_a_time_takes_what_one_branch_takes(found: dict[str, Any]) -> None:
    # The input, a concatenation of four, its sine, and scalars of 16 bytes: nothing else lives.
    (_, size) = found["rows"]["branches"]["ours"]
    assert 1024 + 2 * 4096 <= size <= 1024 + 2 * 4096 + 10 * 16


def test_options_of_executorchs_pass_are_respected(found: dict[str, Any]) -> None:
    options = found["options"]
    assert options["inputs given by the caller"]
    assert options["aligned"]
    assert options["greedy alone"]


def test_results_written_over_arguments_by_executorch_stay_where_they_belong(
    found: dict[str, Any],
) -> None:
    assert found["options"]["written in place"]
    ours, theirs = found["options"]["written in place, arenas"]
    assert sum(ours) <= sum(theirs)


def test_a_program_has_equal_bytes_each_time(found: dict[str, Any]) -> None:
    assert found["options"]["same bytes"]


def test_each_memory_gets_a_size_of_its_own(found: dict[str, Any]) -> None:
    algorithm = found["algorithm"]
    assert algorithm["memories"] == [1, 1, 1, 1, 3]
    # 64 and 32 floats live together in memory 1; 64 bytes stand behind each memory.
    assert algorithm["sizes"] == [0, 256 + 128 + 64, 0, 256 + 64]
    assert algorithm["a and c share"]


def test_a_backed_tensor_lies_inside_the_one_that_backs_it(found: dict[str, Any]) -> None:
    assert found["algorithm"]["inner"] == 64
    assert found["algorithm"]["refused"] == (
        "a tensor of 64 bytes does not fit at byte 256 of the one of 256 bytes that backs it"
    )


def test_bodies_of_control_flow_have_the_beginning_of_a_memory(found: dict[str, Any]) -> None:
    assert found["algorithm"]["after bodies"] == [[0, 112 + 16], 112]


def test_a_program_without_tensors_has_an_empty_memory(found: dict[str, Any]) -> None:
    assert found["algorithm"]["nothing"] == [0, 0]


def test_an_order_that_breaks_a_dependency_is_refused(found: dict[str, Any]) -> None:
    assert "used before it has been defined" in found["wrong"]
