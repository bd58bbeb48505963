"""Plans for time on disk: read by the next process, and never trusted."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pytorch.run_child import needs_torch, results_of

pytestmark = needs_torch


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    folder = str(tmp_path_factory.mktemp("cache") / "plans")
    first = results_of("tests.pytorch.remembered_checks", folder)
    return first, results_of("tests.pytorch.remembered_checks", folder)


def test_the_second_process_runs_what_the_first_one_chose(
    processes: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    first, second = (each["plans"] for each in processes)
    assert first["roles"] == ["inference", "forward", "backward"]
    assert first["stored"] == [False, False, False]
    assert second["stored"] == [True, True, True]
    for what in ("roles", "chosen", "ns", "groups", "files"):
        assert first[what] == second[what]
    assert first["groups"][0] > 0  # a plan with something to remember


def test_results_are_those_of_eager_code_in_both_processes(
    processes: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    for each in processes:
        assert each["plans"]["inference"] == ""
        assert each["plans"]["training"] == ""


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("half a file", "it cannot be read"),
        ("noise", "it cannot be read"),
        ("no object", "it is damaged"),
        ("empty", "it is damaged"),
        ("another schema", "it was made by"),
        ("another PyTorch", "'torch': '2.12.0'"),
        ("another processor", "'processor': 'abacus'"),
        ("no time", "it has no time of"),
        ("time that is no number", "'soon' is no whole number"),
        ("an op too few", "is in no kernel"),
        ("an op twice", "is in two kernels"),
        ("an unknown op", "KeyError: 'convolution_77'"),
        ("a step without ops", "one of its steps has no ops"),
        ("the order reversed", "which it needs"),
        ("a convolution in a group", "cannot be fused"),
        ("an unknown kernel", "node 'convolution' has no kernel 'magic' here"),
        ("a layout that is none", "KeyError: 'sideways'"),
        ("strides that are none", "it is damaged"),
    ],
)
def test_a_damaged_foreign_or_stale_file_is_ignored_with_a_log_line_and_written_anew(
    processes: tuple[dict[str, Any], dict[str, Any]], damage: str, said: str
) -> None:
    found = processes[1]["damaged"][damage]
    assert found["difference"] == ""
    assert not found["stored"]
    assert found["written anew"]
    (line,) = found["said"]
    assert line.startswith("plan P is ignored: ")
    assert said in line


def test_strides_in_a_file_are_compared_with_those_of_a_run(
    processes: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    found = processes[1]["damaged"]["wrong strides"]
    assert found["stored"]
    assert found["difference"] == ""


def test_a_plan_whose_results_differ_is_forgotten_and_the_results_are_right(
    processes: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    assert processes[1]["given up"] == {"stored": True, "difference": "", "is left": False}


def test_a_plan_that_had_no_time_is_not_remembered(
    processes: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    assert not processes[1]["cut short"]
    assert processes[1]["cut short behind"] == ["backward"]


def test_graphs_and_options_that_differ_in_anything_have_files_of_their_own(
    processes: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    assert all(processes[1]["names"].values()), processes[1]["names"]
