"""Tested comparisons: chances by hand, corrections, and which comparisons count."""

from __future__ import annotations

import math
import random
import statistics
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from regal.evaluation.compare import comparisons
from regal.evaluation.endpoints import primary_of, secondary_of
from regal.evaluation.intervals import cluster_interval, holm, p_value, student_tails
from regal.evaluation.study_tables import endpoints_table
from regal.evaluation.suite import BudgetRule, Endpoint, Pair, Reference, Suite
from tests.evaluation.made import row, rows, suite

if TYPE_CHECKING:
    from regal.evaluation.rows import Row

BUDGETS = (BudgetRule(evaluations=50), BudgetRule(evaluations=100))


def study(**changes: Any) -> Suite:
    first = Endpoint(method="b", against="a", objective="time", budget="50 evaluations")
    return suite(
        "a", "b", "c",
        budgets=BUDGETS,
        primary=first,
        secondary=(Pair(method="b", against="a"), Pair(method="c", against="a")),
        **changes,
    )  # fmt: skip


def study_rows() -> list[Row]:
    """Return rows where b gains 10 % at 50 evaluations and nothing at 100, and c loses a little."""
    found: list[Row] = []
    for budget in BUDGETS:
        gained = 90 if budget.evaluations == 50 else 100
        found += rows(
            {"a": [100] * 8, "b": [gained] * 8, "c": [101, 102, 101, 103, 101, 102, 104, 101]},
            budget=budget.text,
            asked_evaluations=budget.evaluations,
        )
    return found


@pytest.mark.parametrize(
    ("t", "degrees", "chance"),
    # From the table of Student's distribution, Abramowitz & Stegun 26.10.
    [(1.0, 1, 0.5), (12.706, 1, 0.05), (4.303, 2, 0.05), (2.571, 5, 0.05), (2.064, 24, 0.05),
     (3.745, 24, 0.001), (0.0, 7, 1.0)],
)  # fmt: skip
def test_student_s_distribution_is_that_of_the_tables(
    t: float, degrees: int, chance: float
) -> None:
    assert student_tails(t, degrees) == pytest.approx(chance, rel=2e-3)


def test_holm_multiplies_the_smallest_most_and_keeps_the_sequence() -> None:
    # Sorted: 0.01 * 4, 0.02 * 3, 0.03 * 2 = 0.06 but not below 0.06, 0.9.
    assert holm([0.03, 0.01, 0.9, 0.02]) == pytest.approx([0.06, 0.04, 0.9, 0.06])
    assert holm([0.4, 0.5]) == [0.8, 0.8]
    assert holm([]) == []


def test_a_chance_is_below_one_in_twenty_exactly_where_the_interval_does_not_hold_0() -> None:
    rng = random.Random(0)
    verdicts = set()
    for _ in range(60):
        shift = rng.uniform(0, 1.2)
        gains = [(str(i), rng.gauss(shift, 1)) for i in range(rng.randint(6, 30))]
        interval, p = cluster_interval(gains), p_value(gains)
        assert interval is not None
        assert p is not None
        if abs(p - 0.05) > 0.002:  # the series for the interval's tail is right to 0.1 %
            assert (p < 0.05) == (interval[0] > 0 or interval[1] < 0)
        verdicts.add(p < 0.05)
    assert verdicts == {True, False}


def test_a_chance_far_from_1_in_20_is_about_that_of_the_t_test() -> None:
    gains = [5.0 + math.sin(i) for i in range(20)]
    mean, deviation = statistics.fmean(gains), statistics.stdev(gains)
    chance = student_tails(mean / deviation * math.sqrt(20), 19)
    found = p_value([(str(i), gain) for i, gain in enumerate(gains)])
    assert found == pytest.approx(chance, rel=0.5)
    assert chance < 1e-10


def test_no_gain_at_all_has_the_chance_1_and_five_families_have_none() -> None:
    assert p_value([(str(i), 0.0) for i in range(8)]) == 1.0
    assert p_value([(str(i), 1.0) for i in range(5)]) is None


@pytest.mark.parametrize("system", ["all", "2"])
def test_the_primary_comparison_is_not_corrected_and_not_among_the_others(system: str) -> None:
    made = study()
    assert made.primary is not None
    made = replace(made, primary=replace(made.primary, system=system))
    first = primary_of(made, study_rows())
    assert first is not None
    assert first.comparison.mean == pytest.approx(10)
    assert first.corrected == first.p < 0.05
    others = secondary_of(made, study_rows())
    named = [(one.comparison.method, one.comparison.budget) for one in others]
    assert named == [("b", "100 evaluations"), ("c", "50 evaluations"), ("c", "100 evaluations")]
    assert [one.corrected for one in others] == holm([one.p for one in others])


def test_the_table_says_what_is_better_worse_or_neither() -> None:
    lines = endpoints_table(study(), study_rows()).splitlines()
    assert lines[4].startswith("| primary: b over a | time | 2 | 50 evaluations | +10.00 [+10.00,")
    assert [line.split("|")[-2].strip() for line in lines[4:]] == ["better", "no", "worse", "worse"]
    assert "for their number, 3, by" in lines[0]


def test_a_suite_without_tests_has_no_table_of_them() -> None:
    assert endpoints_table(suite("a", "b"), rows({"a": [1] * 8, "b": [1] * 8})) == ""


def test_a_primary_comparison_of_too_few_families_says_so() -> None:
    found = rows({"a": [100] * 3, "b": [90] * 3}, budget="50 evaluations", asked_evaluations=50)
    assert "| primary: too few families | - |" in endpoints_table(study(), found)


def test_what_only_one_of_two_methods_could_do_is_counted() -> None:
    two = suite("a", "b")
    found = rows({"a": [100, 100], "b": [90, 90]})
    found += [row(method="a", graph="x", failure="does not fit"), row(method="b", graph="x")]
    found += [row(method="a", graph="y"), row(method="b", graph="y", failure="does not fit")]
    found += [row(method=name, graph="z", failure="does not fit") for name in "ab"]
    (one,) = comparisons(two, found, Reference(method="a", evaluations=50))
    assert (one.pairs, one.asked, one.alone, one.reference_alone) == (2, 5, 1, 1)


def test_a_reference_may_be_for_some_methods_alone() -> None:
    found = rows({"a": [100], "b": [90], "c": [80]})
    only = Reference(method="a", evaluations=50, methods=("c",))
    assert [one.method for one in comparisons(suite("a", "b", "c"), found, only)] == ["c"]
