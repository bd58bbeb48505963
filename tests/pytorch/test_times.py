"""Times of calls where they stand in a graph."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pytorch.run_child import needs_torch, results_of

pytestmark = needs_torch


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return results_of("tests.pytorch.time_checks")


def test_equal_calls_count_by_their_mean_in_the_best_pass_after_the_first(
    found: dict[str, Any],
) -> None:
    assert found["means"]["all passes"] == [{"relu": 20}, False]


def test_a_long_pass_is_the_only_one(found: dict[str, Any]) -> None:
    assert found["means"]["long ones"] == [{"relu": 150_000_001}, False]


def test_without_time_the_pass_that_warms_up_counts_or_one_behind_it(found: dict[str, Any]) -> None:
    assert found["means"]["no time"] == [{"relu": 8}, True]
    assert found["means"]["one at any rate"] == [{"relu": 20}, True]


def test_compiled_groups_are_timed_once(found: dict[str, Any]) -> None:
    assert found["regions"]["before they are compiled"] == {}
    assert found["regions"]["copies"] == 2
    assert found["regions"]["keys"]
    assert found["regions"]["positive"]
    assert found["regions"]["known ones"]


def test_a_group_is_slow_that_takes_longer_than_its_ops(found: dict[str, Any]) -> None:
    assert found["regions"]["slow"] == [[[1, 2]], []]


def test_runs_after_memory_is_kept_get_hardly_any_new_pages(found: dict[str, Any]) -> None:
    if not found["has glibc"]:
        pytest.skip("other libraries keep what they like")
    assert min(found["new pages"]) < 100


def test_trials_run_at_other_depths_of_the_stack(found: dict[str, Any]) -> None:
    assert found["depths"] == [0, 37, 74, 111]
