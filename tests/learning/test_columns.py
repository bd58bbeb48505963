"""How learned columns are trained; in a child process, skipped where torch is not installed."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MISSING = [name for name in ("torch", "onnxscript") if find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")


def run_checks(*names: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.learning.columns_checks", *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    passed = [line for line in done.stdout.splitlines() if line.startswith("passed")]
    assert passed == [f"passed {name}" for name in names]


def test_an_untrained_network_is_the_plain_heuristic_for_time_and_for_memory() -> None:
    run_checks(
        "a_new_network_says_the_plain_heuristic",
        "time_and_memory_have_heads_of_their_own",
        "the_baseline_of_a_task_is_the_plain_rule",
    )


def test_choices_lie_around_the_rule_and_equal_devices_have_one_name() -> None:
    run_checks(
        "choices_are_pairs_around_the_rule_and_scored_where_they_lie",
        "with_two_devices_nothing_is_tried_of_the_arch",
        "the_first_op_is_drawn_to_the_first_of_equal_devices",
    )


def test_columns_that_pay_are_learned() -> None:
    run_checks("columns_that_pay_are_learned_from_choices")


def test_an_exported_network_says_the_same_and_guides_the_search() -> None:
    run_checks("an_exported_network_says_the_same_and_guides_the_search")


def test_a_run_leaves_a_policy_and_goes_on_exactly() -> None:
    run_checks("a_run_leaves_a_policy_and_goes_on_exactly")
