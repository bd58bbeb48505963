"""The backend's parts: judge, in-place choices, tracker, memory limit, cache, fallbacks."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from tests.pytorch.run_child import ROOT, needs_torch, results_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_torch

BYTES = 4 * 4096  # of one tensor in tests/pytorch/checks.py


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    packages = tmp_path_factory.mktemp("packages")
    installed(packages)
    cache = tmp_path_factory.mktemp("cache")
    return results_of("tests.pytorch.checks", str(cache), path=packages)


def installed(folder: Path) -> None:
    """Write what an installation writes about its entry points."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    about = folder / "regal_entry_points-0.1.dist-info"
    about.mkdir()
    about.joinpath("METADATA").write_text(
        "Metadata-Version: 2.1\nName: regal-entry-points\nVersion: 0.1\n"
    )
    lines = [
        line
        for group, entries in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {target}" for name, target in entries.items()))
    ]
    about.joinpath("entry_points.txt").write_text("\n".join(lines) + "\n")


def test_the_judge_lets_nodes_move_that_nothing_ties_together(found: dict[str, Any]) -> None:
    assert found["judged"]["same"] == ""
    assert found["judged"]["free to move"] == ""


def test_the_judge_names_a_read_and_a_write_that_have_changed_places(
    found: dict[str, Any],
) -> None:
    assert found["judged"]["read before write"] == (
        "nodes 'copy_' and 'sin' touch the same memory, the first one writes to it, and they have"
        " changed places"
    )


def test_the_judge_keeps_the_order_of_random_numbers(found: dict[str, Any]) -> None:
    assert found["judged"]["random"] == (
        "nodes 'rand_like' and 'randn_like' have effects and changed places"
    )


def test_the_judge_looks_into_bodies_of_control_flow(found: dict[str, Any]) -> None:
    assert found["judged"]["random in a body"] == found["judged"]["random"]


def test_the_judge_refuses_to_overwrite_what_others_need(found: dict[str, Any]) -> None:
    assert "whose memory 'exp' needs, too" in found["judged"]["argument needed later"]
    assert "whose memory 'x_1' needs, too" in found["judged"]["input overwritten"]


def test_the_last_reader_may_overwrite_its_argument(found: dict[str, Any]) -> None:
    assert found["judged"]["result overwritten"] == ""


def test_a_chain_of_elementwise_kernels_needs_one_tensor(found: dict[str, Any]) -> None:
    assert found["overwrites"] == {"peak": BYTES, "equal": True}


def test_wide_branches_run_one_after_the_other(found: dict[str, Any]) -> None:
    # Eager holds four products of 8 rows and the copy that the last one is made of; in the
    # planned order a branch of 8 rows ends in 1 row before the next begins.
    assert found["reorders"]["eager"] >= 4 * 8 * BYTES
    assert found["reorders"]["regal"] <= (8 + 4) * BYTES


def test_the_tracker_follows_storages_and_not_tensors(found: dict[str, Any]) -> None:
    # A view keeps the first storage alive; the third tensor dies before the fourth is made.
    assert found["tracked"] == {"peak": 2 * BYTES, "live": BYTES + BYTES // 2, "after": 0}


def test_a_row_of_a_buffer_is_written_without_a_copy_of_the_buffer(found: dict[str, Any]) -> None:
    # One tensor of its size is what the program itself makes, for relu and the sum.
    assert found["updated"]["equal"]
    assert found["updated"]["peak"] <= (64 * 64 + 4 * 64) * 4


def test_a_memory_limit_makes_the_backward_pass_compute_again(found: dict[str, Any]) -> None:
    assert found["limited"]["limited"] < 0.8 * found["limited"]["free"]


def test_more_memory_never_computes_more_again(found: dict[str, Any]) -> None:
    for rows in found["monotone"]:
        recomputed = [count for _, count, _ in rows]
        assert recomputed == sorted(recomputed, reverse=True)
        fits = [peak <= limit for limit, _, peak in rows]
        assert fits == sorted(fits)  # no limit is missed that a lower one meets


def test_what_computes_more_again_is_predicted_to_take_longer(found: dict[str, Any]) -> None:
    # The same twice: how much is computed again must not depend on the speed of the machine.
    rows = found["frontier"]
    assert len(rows) > 4
    assert [time for _, _, time in rows] == sorted(time for _, _, time in rows)


def test_gradients_that_are_handed_over_die_in_the_backward_pass(found: dict[str, Any]) -> None:
    assert found["handed over"] == {"alive": [False, False], "role": "input"}


def test_what_is_compiled_holds_no_input_of_its_first_call(found: dict[str, Any]) -> None:
    assert found["released"] == [False, False]


def test_an_order_is_remembered_and_what_is_broken_is_written_again(
    found: dict[str, Any],
) -> None:
    cached = found["cached"]
    assert cached["stored"] == [False, True, False, False]
    assert len(set(cached["peaks"])) == 1
    assert cached["rewritten"] == [True, True]
    assert cached["files"] == 1


def test_the_key_of_an_order_tells_ways_of_searching_apart(found: dict[str, Any]) -> None:
    assert found["cached"]["same key"]
    assert not found["cached"]["other key"]


def test_an_order_that_was_found_in_less_time_is_none_for_more(found: dict[str, Any]) -> None:
    assert not found["cached"]["stored for another time"]


def test_what_cannot_be_planned_runs_as_it_was_and_a_log_says_why(found: dict[str, Any]) -> None:
    assert found["falls back"]["equal"] == [True, True]
    unplanned, shared = found["falls back"]["reasons"]
    assert unplanned.startswith("the inference graph keeps its order: ")
    assert shared == (
        "the original graph runs: the result of 'cos' lies in memory that is not its own"
    )


def test_options_that_do_not_exist_are_refused(found: dict[str, Any]) -> None:
    unknown, budget, objective, cache, seconds, seed, empty = found["refused"]
    assert unknown.startswith("unknown option 'bugdet'; known: objective, budget,")
    assert budget == "option 'budget' is 0; give a whole number, 1 or more"
    assert "speed" in objective
    assert cache == "option 'cache' is 3; give a folder, True or False"
    assert seconds == "option 'seconds' is 'soon'; give a number, 0 or more, or None"
    assert seed == "option 'seed' is None; give a whole number, 0 or more"
    assert empty == "option 'cache' is ''; give a folder, True or False"


def test_the_backend_is_found_by_its_name(found: dict[str, Any]) -> None:
    assert found["by name"] == {"listed": True, "same": True, "equal": True}
