"""The default method keeps to any number of evaluations, however small."""

import pytest

from regal import _native
from regal.search.devices.portfolio import CHEAP_FIRST, PortfolioRun, regal
from regal.search.devices.types import DeviceOutcome, Objective
from regal.search.types import Budget
from tests.policy.problems import random_problem

TIME = Objective(name="time", per_ns=1.0, per_byte=0.0)
MEMORY = Objective(name="memory", per_ns=0.0, per_byte=1.0)


def found(seed: int, objective: Objective, evaluations: int) -> DeviceOutcome:
    problem = random_problem(seed, 60, 3)
    return regal(problem, objective, Budget(evaluations=evaluations), seed=1, threads=1)


def rules_take(seed: int, objective: Objective) -> int:
    native = random_problem(seed, 60, 3).native
    taken: int = _native.heuristic_schedules(native, objective.per_ns, objective.per_byte)[1]
    return taken


@pytest.mark.parametrize("objective", [TIME, MEMORY], ids=lambda o: o.name)
@pytest.mark.parametrize("seed", range(3))
def test_a_budget_below_that_of_all_rules_is_kept(seed: int, objective: Objective) -> None:
    most = rules_take(seed, objective)
    for evaluations in (1, 2, 5, 9, 20, most - 1, most, most + 7):
        outcome = found(seed, objective, evaluations)
        assert 1 <= outcome.evaluations <= evaluations


@pytest.mark.parametrize("objective", [TIME, MEMORY], ids=lambda o: o.name)
def test_a_larger_small_budget_is_never_worse_among_the_cheap_rules(objective: Objective) -> None:
    values = []
    for evaluations in (1, 3, 6):
        figures = found(4, objective, evaluations).figures
        values.append(objective.value(figures.time, figures.most))
    assert values == sorted(values, reverse=True)


def test_what_is_left_of_a_small_budget_goes_to_the_searches() -> None:
    evaluations = rules_take(0, TIME) - 1
    outcome = found(0, TIME, evaluations)
    assert outcome.evaluations == evaluations


def test_all_rules_have_a_place_among_the_cheap_first_ones() -> None:
    names = [name for name in dir(_native.DeviceRule) if name.isupper()]
    assert {getattr(_native.DeviceRule, name) for name in names} == set(CHEAP_FIRST)


def test_a_budget_that_holds_all_rules_runs_them_in_one_call() -> None:
    problem = random_problem(5, 60, 3)
    most = rules_take(5, TIME)
    whole, limited = (
        PortfolioRun(problem, TIME, Budget(evaluations=limit), seed=1, threads=1)
        for limit in (10_000, most)
    )
    assert [one.name for one in whole.heuristics()] == [one.name for one in limited.heuristics()]
    assert whole.spent == limited.spent == most
