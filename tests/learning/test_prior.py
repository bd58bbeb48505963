"""How the default method's policy is trained; in a child process, skipped without torch."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="not installed: torch")


def run_checks(*names: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.learning.prior_checks", *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    passed = [line for line in done.stdout.splitlines() if line.startswith("passed")]
    assert passed == [f"passed {name}" for name in names]


def test_modes_cover_the_problems_and_suit_the_state() -> None:
    run_checks("modes_cover_the_problems_one_by_one", "the_mode_that_suits_a_state_comes_first")


def test_arms_that_pay_are_chosen_more_often() -> None:
    run_checks("an_arm_that_pays_is_chosen_more_often", "a_run_remembers_what_was_open_and_chosen")


def test_an_exported_policy_says_the_same_and_zeros_change_nothing() -> None:
    run_checks("an_exported_policy_says_the_same", "a_network_of_zeros_leaves_the_search_as_it_is")


def test_a_training_run_leaves_a_policy_and_resumes_exactly() -> None:
    run_checks("a_run_leaves_a_policy_and_goes_on_exactly")
