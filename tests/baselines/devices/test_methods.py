"""Every method for several devices by name: legal, deterministic, figures of the simulation."""

import sys

import numpy as np
import pytest

from regal import _native
from regal.baselines.devices import m_sct as m_sct_module
from regal.baselines.devices.m_sct import favorite_children, m_sct
from regal.baselines.devices.methods import METHODS
from regal.baselines.devices.partition_dfs import partition_dfs
from regal.errors import BackendError
from regal.plan.schedule_problem import ScheduleProblem
from regal.search.devices.types import DeviceOutcome, Objective
from regal.search.types import Budget
from tests.baselines.devices.problems import schedule_problem_of, task_graph, topcuoglu
from tests.device_problems import random_devices

TIME = Objective(name="time", per_ns=1, per_byte=0)
MEMORY = Objective(name="memory", per_ns=0, per_byte=1)
SLOW = {"graph-as-sequence"}
BUDGETED = ["random", "partition-dfs", "graph-as-sequence", "per-graph-reinforce"]


def run(
    name: str, problem: ScheduleProblem, objective: Objective = TIME, **budget: int
) -> DeviceOutcome:
    limits = Budget(evaluations=budget.get("evaluations", 40))
    threads = budget.get("threads", 1)
    return METHODS[name](problem, objective, limits, seed=budget.get("seed", 1), threads=threads)


def test_the_names_are_those_of_the_documentation() -> None:
    assert list(METHODS) == [
        "single-device",
        "round-robin",
        "random",
        "file-order",
        "dfs",
        "bfs",
        "greedy-memory",
        "m-topo",
        "m-etf",
        "m-sct",
        "etf",
        "heft",
        "cpop",
        "peft",
        "heuristics",
        "partition-dfs",
        "graph-as-sequence",
        "per-graph-reinforce",
    ]


@pytest.mark.parametrize("name", METHODS)
def test_a_method_returns_a_legal_schedule_with_the_figures_of_the_checker(name: str) -> None:
    for seed in range(60):
        problem = schedule_problem_of(random_devices(seed))
        for objective in (TIME, MEMORY):
            outcome = run(name, problem, objective, evaluations=5)
            rows = outcome.figures.in_place.reshape(-1, 3)
            verdict, figures = _native.check_schedule(problem.native, outcome.schedule, rows)
            assert verdict.fault is _native.ScheduleFault.NONE, seed
            assert (figures.time, figures.most, figures.overflow) == (
                outcome.figures.time,
                outcome.figures.most,
                outcome.figures.overflow,
            )
            assert outcome.evaluations > 0


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_schedule_with_any_threads(name: str) -> None:
    problem = schedule_problem_of(topcuoglu())
    runs = [run(name, problem, threads=threads) for threads in (1, 3, 1)]
    for other in runs[1:]:
        assert other.schedule.placement.tolist() == runs[0].schedule.placement.tolist()
        assert other.schedule.order.tolist() == runs[0].schedule.order.tolist()
        assert other.evaluations == runs[0].evaluations


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"single-device"}))
def test_no_method_overfills_devices_that_are_large_enough(name: str) -> None:
    tasks = task_graph(
        [[1, 1, 1]] * 6,
        [(i, i + 1, 9) for i in range(5)],
        resident_bytes=[2] * 6,
        capacity=[4, 4, 5],
    )
    assert run(name, schedule_problem_of(tasks)).figures.overflow == 0


def test_random_is_the_best_of_its_schedules() -> None:
    problem = schedule_problem_of(topcuoglu())
    times = [run("random", problem, evaluations=n).figures.time for n in (1, 10, 11, 1000)]
    assert times == sorted(times, reverse=True)
    assert times[-1] < times[0]
    assert run("random", problem, evaluations=10, seed=2).figures.time != times[1]


@pytest.mark.parametrize("name", BUDGETED)
def test_a_search_without_time_evaluates_once_and_stops(name: str) -> None:
    problem = schedule_problem_of(topcuoglu())
    outcome = METHODS[name](problem, TIME, Budget(seconds=0), seed=1, threads=1)
    assert 1 <= outcome.evaluations <= 2000


@pytest.mark.parametrize("name", BUDGETED)
def test_a_cancelled_search_returns_its_best_so_far(name: str) -> None:
    problem = schedule_problem_of(topcuoglu())
    cancel = _native.Cancel()
    cancel.cancel()
    outcome = METHODS[name](
        problem, TIME, Budget(evaluations=10_000_000), seed=1, threads=1, cancel=cancel
    )
    assert outcome.was_interrupted
    assert outcome.evaluations >= 1


def test_a_heuristic_says_which_variant_was_best() -> None:
    assert run("heft", schedule_problem_of(topcuoglu())).note == "best: heft"


def test_partition_dfs_cuts_where_little_is_sent() -> None:
    """A ladder: eight cheap rungs are a better cut than two dear rails."""
    rails = [(i + side * 8, i + 1 + side * 8, 50) for i in range(7) for side in (0, 1)]
    rungs = [(i, i + 8, 1) for i in range(8)]
    problem = schedule_problem_of(task_graph([[10, 10]] * 16, rails + rungs))
    placement = run("partition-dfs", problem, evaluations=1).schedule.placement
    assert len(set(placement[:8])) == len(set(placement[8:])) == 1


def test_partition_dfs_gives_fast_devices_more() -> None:
    tasks = task_graph([[10, 30]] * 12, [])
    placement = run("partition-dfs", schedule_problem_of(tasks)).schedule.placement
    assert np.bincount(placement).tolist() == [9, 3]


def test_partition_dfs_leaves_a_device_out_that_can_run_nothing() -> None:
    tasks = task_graph([[10, -1, 10]] * 6, [])
    placement = run("partition-dfs", schedule_problem_of(tasks)).schedule.placement
    assert np.bincount(placement, minlength=3).tolist() == [3, 0, 3]


def test_partition_dfs_prints_nothing_when_ops_are_few(capfd: pytest.CaptureFixture[str]) -> None:
    """METIS itself complains on standard output, where a command's JSON goes."""
    for n in range(4):
        run("partition-dfs", schedule_problem_of(task_graph([[9] * 6] * max(n, 1), [])))
    assert capfd.readouterr().out == ""


def test_the_favorite_child_is_the_one_that_is_dear_to_send() -> None:
    tasks = task_graph([[4, 4]] * 3, [(0, 1, 1), (0, 2, 3)])
    assert favorite_children(schedule_problem_of(tasks)).tolist() == [2, -1, -1]
    joined = task_graph([[4, 4]] * 3, [(0, 2, 3), (1, 2, 1)])
    assert favorite_children(schedule_problem_of(joined)).tolist() == [2, -1, -1]


def test_no_op_has_two_favorites_and_none_is_the_favorite_of_two() -> None:
    chosen = 0
    for seed in range(60):
        tiny = random_devices(seed)
        favorites = favorite_children(schedule_problem_of(tiny))
        children = [child for child in favorites.tolist() if child >= 0]
        assert len(children) == len(set(children))
        assert all(op in tiny.predecessors(c) for op, c in enumerate(favorites) if c >= 0)
        chosen += len(children)
    assert chosen > 50


def test_m_sct_without_its_program_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(m_sct_module, "MOST_EDGES", 14)
    problem, budget = schedule_problem_of(topcuoglu()), Budget(evaluations=1)
    outcome = m_sct(problem, TIME, budget, seed=0, threads=1)
    assert outcome.note == "m-sct: 15 edges are more than 14; greedy favorite children"
    monkeypatch.setattr(m_sct_module, "MOST_EDGES", 15)
    assert m_sct(problem, TIME, budget, seed=0, threads=1).note == ""


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = schedule_problem_of(topcuoglu())
    monkeypatch.setitem(sys.modules, "ortools.linear_solver", None)
    with pytest.raises(BackendError, match=r"^m-sct: ortools is not installed; pip install "):
        m_sct(problem, TIME, Budget(evaluations=1), seed=0, threads=1)
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(BackendError, match=r"^partition-dfs: pymetis is not installed; pip "):
        partition_dfs(problem, TIME, Budget(evaluations=1), seed=0, threads=1)
