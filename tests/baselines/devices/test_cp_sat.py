"""CP-SAT on several devices against all schedules of tiny problems, and its limits."""

import math
import threading

import numpy as np
import pytest

from regal import _native
from regal.baselines.devices import cp_sat as module
from regal.baselines.devices.cp_sat import CpSat
from regal.errors import UsageError
from regal.plan.schedule_problem import ScheduleProblem
from regal.search.devices.types import DeviceOutcome, Objective
from regal.search.types import Budget
from tests.baselines.devices.problems import schedule_problem_of, task_graph, topcuoglu
from tests.device_problems import random_devices
from tests.search.device_schedules import tried_problems

pytest.importorskip("ortools")

TIME = Objective(name="time", per_ns=1, per_byte=0)
MEMORY = Objective(name="memory", per_ns=0, per_byte=1)
BALANCED = Objective(name="balanced", per_ns=0.5, per_byte=0.25)


def solved(
    problem: ScheduleProblem, objective: Objective, start: DeviceOutcome | None = None
) -> DeviceOutcome:
    method = CpSat(deterministic_seconds=10, start=start)
    return method(problem, objective, Budget(seconds=60), seed=1, threads=1)


@pytest.mark.parametrize("objective", [TIME, MEMORY, BALANCED], ids=lambda o: o.name)
def test_no_schedule_of_a_tiny_problem_is_better(objective: Objective) -> None:
    missed = 0
    for tiny, results in tried_problems():
        least_overflow = min(overflow for overflow, _, _ in results)
        fitting = [(time, peak) for overflow, time, peak in results if overflow == least_overflow]
        best = min(objective.value(time, peak) for time, peak in fitting)
        outcome = solved(schedule_problem_of(tiny), objective)
        found = outcome.figures
        assert outcome.time_bound_ns <= min(time for time, _ in fitting)
        assert outcome.peak_bound <= min(peak for _, peak in fitting)
        assert found.overflow >= least_overflow
        if found.overflow > least_overflow or objective.value(found.time, found.most) > best:
            missed += 1
    # A model may wait where everything starts as early as the orders allow, and it may choose
    # which in-place pairs happen; with times alone neither can pay.
    assert missed <= (0 if objective is TIME else 1)


def test_the_optimum_of_the_ten_tasks_on_three_processors_is_proven() -> None:
    outcome = solved(schedule_problem_of(topcuoglu()), TIME)
    assert outcome.figures.time == outcome.time_bound_ns == 73_000


def test_two_equal_tasks_that_hand_nothing_over_share_two_devices() -> None:
    problem = schedule_problem_of(task_graph([[5, 5], [5, 5], [2, 2]], [(0, 2, 1), (1, 2, 9)]))
    outcome = solved(problem, TIME)
    assert outcome.figures.time == 8  # 5, then 1 ns of transfer beside the longer one, then 2


def test_a_schedule_that_does_not_fit_is_repaired_first() -> None:
    tiny = task_graph([[3, 3]] * 3, [], resident_bytes=[4, 4, 4], capacity=[8, 4])
    problem = schedule_problem_of(tiny)
    crowded = _native.complete_schedule(
        problem.native, np.zeros(3, dtype=np.int64), np.arange(3, dtype=np.int64)
    )
    figures = _native.simulate_devices(problem.native, crowded)
    assert figures is not None
    assert figures.overflow == 4
    start = DeviceOutcome(schedule=crowded, figures=figures, evaluations=1, seconds=0)
    outcome = solved(problem, TIME, start)
    assert (outcome.figures.overflow, outcome.figures.time) == (0, 6)


def test_equal_limits_of_work_give_the_same_schedule() -> None:
    problem = schedule_problem_of(topcuoglu())
    one, other = (solved(problem, BALANCED).schedule for _ in range(2))
    assert one.placement.tolist() == other.placement.tolist()
    assert one.order.tolist() == other.order.tolist()


def test_a_graph_that_is_too_large_gets_the_heuristic_schedule_and_a_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_TIME_LITERALS", 5)
    outcome = CpSat()(schedule_problem_of(topcuoglu()), TIME, Budget(seconds=5), seed=1, threads=1)
    assert outcome.time_bound_ns == 0
    assert "10 ops on 3 devices are more than it can take" in outcome.note


def test_evaluations_alone_do_not_limit_it() -> None:
    with pytest.raises(UsageError, match="give a time limit"):
        CpSat()(schedule_problem_of(topcuoglu()), TIME, Budget(evaluations=9), seed=1, threads=1)


def test_a_cancelled_search_returns_what_it_has() -> None:
    cancel = _native.Cancel()
    problem = schedule_problem_of(random_devices(3, most_ops=7))
    timer = threading.Timer(0.01, cancel.cancel)
    timer.start()
    outcome = CpSat()(problem, MEMORY, Budget(seconds=60), seed=1, threads=1, cancel=cancel)
    timer.join()
    assert math.isfinite(outcome.seconds)
    assert outcome.schedule.order.size == problem.n_ops
