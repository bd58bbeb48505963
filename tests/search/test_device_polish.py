"""Polish by CP-SAT windows: never worse, repeatable, and it knows what is around a window."""

import random
import sys

import numpy as np
import pytest

from regal import _native
from regal.errors import BackendError
from regal.plan.schedule_problem import ScheduleProblem
from regal.search.devices import polish as module
from regal.search.devices.methods import device_method_named
from regal.search.devices.polish import critical_ops, polish, window_polish
from regal.search.devices.types import DeviceOutcome, Objective
from regal.search.types import Budget
from tests.baselines.devices.problems import schedule_problem_of, task_graph, topcuoglu
from tests.device_problems import TinyDevices, random_devices, random_order, random_placement

pytest.importorskip("ortools")

TIME = Objective(name="time", per_ns=1, per_byte=0)
MEMORY = Objective(name="memory", per_ns=0, per_byte=1)


def random_outcome(tiny: TinyDevices, seed: int) -> tuple[ScheduleProblem, DeviceOutcome]:
    problem, rng = schedule_problem_of(tiny), random.Random(seed)
    schedule = _native.complete_schedule(
        problem.native,
        np.array(random_placement(tiny, rng), dtype=np.int64),
        np.array(random_order(tiny, rng), dtype=np.int64),
    )
    figures = _native.simulate_devices(problem.native, schedule)
    assert figures is not None
    return problem, DeviceOutcome(schedule=schedule, figures=figures, evaluations=1, seconds=0)


def polished(
    problem: ScheduleProblem, outcome: DeviceOutcome, objective: Objective = TIME, seed: int = 0
) -> DeviceOutcome:
    return polish(problem, objective, outcome, Budget(evaluations=20), seed=seed, threads=1)


def test_the_ten_tasks_on_three_processors_reach_their_optimum() -> None:
    problem, start = random_outcome(topcuoglu(), seed=1)
    outcome = polished(problem, start)
    assert start.figures.time > 73_000
    assert outcome.figures.time == 73_000
    assert outcome.evaluations > start.evaluations


def test_a_schedule_never_gets_worse_and_stays_legal(monkeypatch: pytest.MonkeyPatch) -> None:
    # Windows of a few ops, so that there is something before and after them.
    monkeypatch.setattr(module, "LEAST_OPS", 2)
    monkeypatch.setattr(module, "MOST_OPS", 4)
    monkeypatch.setattr(module, "MOST_FAILURES", 6)
    improved = 0
    for seed in range(40):
        problem, start = random_outcome(random_devices(seed), seed)
        outcome = polished(problem, start, seed=seed)
        rows = outcome.figures.in_place.reshape(-1, 3)
        verdict, figures = _native.check_schedule(problem.native, outcome.schedule, rows)
        assert verdict.fault is _native.ScheduleFault.NONE, seed
        assert figures.time == outcome.figures.time
        before = (start.figures.overflow, start.figures.time)
        after = (figures.overflow, figures.time)
        assert after <= before, seed
        improved += after < before
    assert improved > 10


def test_windows_find_what_needs_the_ops_around_them(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two chains that the start runs in turns on one device; windows of 8 of the 24 ops.
    monkeypatch.setattr(module, "LEAST_OPS", 8)
    monkeypatch.setattr(module, "MOST_OPS", 8)
    tiny = task_graph([[5, 5]] * 24, [(i, i + 2, 1) for i in range(22)])
    problem = schedule_problem_of(tiny)
    order = np.arange(24, dtype=np.int64)
    schedule = _native.complete_schedule(problem.native, np.zeros(24, dtype=np.int64), order)
    figures = _native.simulate_devices(problem.native, schedule)
    assert figures is not None
    start = DeviceOutcome(schedule=schedule, figures=figures, evaluations=1, seconds=0)
    assert start.figures.time == 120
    assert polished(problem, start).figures.time <= 65


def test_capacities_hold_inside_a_window() -> None:
    tiny = task_graph([[3, 3]] * 4, [], resident_bytes=[4, 4, 1, 1], capacity=[6, 6])
    problem = schedule_problem_of(tiny)
    schedule = _native.complete_schedule(
        problem.native, np.array([0, 1, 1, 1], dtype=np.int64), np.arange(4, dtype=np.int64)
    )
    figures = _native.simulate_devices(problem.native, schedule)
    assert figures is not None
    assert (figures.time, figures.overflow) == (9, 0)
    start = DeviceOutcome(schedule=schedule, figures=figures, evaluations=1, seconds=0)
    found = polished(problem, start).figures
    assert (found.time, found.overflow) == (6, 0)


def test_equal_seeds_and_evaluations_give_equal_schedules() -> None:
    problem, start = random_outcome(topcuoglu(), seed=2)
    one, other = (
        polish(problem, TIME, start, Budget(evaluations=2), seed=5, threads=1) for _ in range(2)
    )
    assert start.evaluations < one.evaluations == other.evaluations <= start.evaluations + 2
    assert one.schedule.placement.tolist() == other.schedule.placement.tolist()
    assert one.schedule.order.tolist() == other.schedule.order.tolist()


def test_memory_alone_is_left_as_it_is() -> None:
    problem, start = random_outcome(topcuoglu(), seed=1)
    assert polished(problem, start, MEMORY) is start


def test_without_ortools_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ortools", "ortools.sat", "ortools.sat.python", "ortools.sat.python.cp_model"):
        monkeypatch.setitem(sys.modules, name, None)
    problem, start = random_outcome(topcuoglu(), seed=1)
    with pytest.raises(BackendError, match=r"pip install regal\[cp-sat\]"):
        polished(problem, start)


def test_the_critical_chain_of_two_devices() -> None:
    # 0 on the first device, then 1 on the second; 2 waits behind 1 on that device.
    problem = schedule_problem_of(task_graph([[4, 4], [5, 5], [1, 1]], [(0, 1, 2)]))
    schedule = _native.complete_schedule(
        problem.native, np.array([0, 1, 1], dtype=np.int64), np.array([0, 1, 2], dtype=np.int64)
    )
    figures = _native.simulate_devices(problem.native, schedule)
    assert figures is not None
    chain = critical_ops(problem, schedule.placement, figures.op_start, figures.op_end)
    assert chain == [2, 1, 0]


def test_the_method_polishes_the_best_heuristic_schedule() -> None:
    method = device_method_named("window-polish")
    improved = 0
    for seed in range(10):
        problem = schedule_problem_of(random_devices(seed))
        found, count = _native.heuristic_schedules(problem.native, 1.0, 0.0)
        outcome = method(problem, TIME, Budget(evaluations=count + 5), seed=0, threads=1)
        assert outcome.figures.overflow <= found[0].score.overflow, seed
        if outcome.figures.overflow == found[0].score.overflow:
            assert outcome.figures.time <= found[0].score.time, seed
        assert count <= outcome.evaluations <= count + 5, seed
        improved += outcome.figures.time < found[0].score.time
    assert improved > 0


def test_the_method_returns_the_heuristic_schedule_where_nothing_can_be_polished() -> None:
    problem = schedule_problem_of(random_devices(3))
    (best, *_), count = _native.heuristic_schedules(problem.native, 0.0, 1.0)
    outcome = window_polish(problem, MEMORY, Budget(evaluations=1000), seed=0, threads=1)
    assert outcome.figures.most == best.score.peak
    assert (outcome.evaluations, outcome.note) == (
        count,
        "only running time is polished; heuristic schedule",
    )
    (best, *_), count = _native.heuristic_schedules(problem.native, 1.0, 0.0)
    outcome = window_polish(problem, TIME, Budget(evaluations=1), seed=0, threads=1)
    assert (outcome.figures.time, outcome.evaluations) == (best.score.time, count)
