"""What a method returns is a result only if the checker confirms it; else it is a failure row."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import pytest

from regal.evaluation.cells import Cell, cells_of, problems_of
from regal.evaluation.graphs import sources_of
from regal.evaluation.prepare import Prepared, prepared
from regal.evaluation.runs import Setting, row_of
from regal.evaluation.suite import BudgetRule, GraphsRule
from regal.evaluation.tables import gap_of
from regal.search.devices.objectives import Weights
from tests.evaluation.fakes import DEVICES, FAKES, OPS, entry
from tests.evaluation.made import suite

if TYPE_CHECKING:
    from regal.evaluation.rows import Row

SETTING = Setting(
    suite="made",
    is_tuning=False,
    threads=1,
    weights=Weights(),
    commit="",
    machine={},
    methods=FAKES,
)


@lru_cache
def problem(kind: str) -> tuple[Cell, Prepared]:
    runs = suite(
        "optimum",
        objectives=(kind,),
        graphs=(GraphsRule(planted=kind, ops=(OPS,), devices=(DEVICES,)),),
    )
    (one,) = problems_of(runs, sources_of(runs))
    (cell,) = cells_of(runs, one)
    return cell, prepared(one, is_tuning=False)


def run(name: str, kind: str = "time", budget: BudgetRule | None = None) -> Row:
    cell, numbers = problem(kind)
    budget = budget or BudgetRule(evaluations=500)
    changed = Cell(
        problem=cell.problem, objective=kind, method=entry(name), seed=0, budget=budget, id="x"
    )
    return row_of(changed, numbers, SETTING)


@pytest.mark.parametrize("kind", ["time", "memory"])
def test_the_planted_optimum_has_the_gap_zero(kind: str) -> None:
    row = run("optimum", kind)
    assert row.failure == ""
    assert row.value == row.optimum == row.bound
    assert gap_of(row) == 0


def test_everything_on_one_of_two_devices_has_a_gap_of_exactly_100_percent() -> None:
    row = run("single-device")
    assert row.failure == ""
    assert row.time_ns == 2 * (row.optimum or 0)
    assert gap_of(row) == 100.0


def test_our_method_is_between_the_optimum_and_everything_on_one_device() -> None:
    for kind in ("time", "memory"):
        row = run("regal", kind)
        assert row.failure == ""
        assert 0 <= gap_of(row) < 10
        assert row.evaluations <= 500
        values = [value for _, _, value in row.curve]
        assert values == sorted(values, reverse=True)
        assert values[-1] == row.value


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("liar", "states the time 100,000; the checker says 200,000"),
        ("outlaw", "illegal schedule: READER_TOO_EARLY at "),
        ("spender", "took 501 evaluations, was given 500"),
        ("idler", "counts no evaluations, and was given 500; give it seconds"),
        ("prophet", "claims the time bound 200,001, above its own 200,000"),
        ("boaster", "its curve ends at 1, its schedule has 200000"),
        ("raiser", "ZeroDivisionError: no luck today"),
        ("cp-sat", "cp-sat: evaluations do not limit it; give a time limit"),
    ],
)
def test_a_method_that_cheats_or_fails_is_a_row_with_the_reason(name: str, reason: str) -> None:
    assert run(name).failure.startswith(reason)


def test_our_own_methods_stay_within_any_budget_of_evaluations() -> None:
    for name in ("regal", "brkga", "brkga-tuned", "feature-es", "local-search", "annealing"):
        for evaluations in (150, 333, 701, 2002):
            for kind in ("time", "memory"):
                row = run(name, kind, BudgetRule(evaluations=evaluations))
                assert row.failure == "", (name, evaluations)


def test_a_run_that_seconds_limit_says_how_many_evaluations_it_took() -> None:
    row = run("brkga", "memory", BudgetRule(seconds=0.05))
    assert row.failure == ""
    assert row.asked_evaluations is None
    assert row.evaluations > 100
    again = run("brkga", "memory", BudgetRule(evaluations=row.evaluations))
    assert again.value == row.value
