"""Gains, intervals and shares, against numbers worked out by hand."""

from __future__ import annotations

import random
from dataclasses import replace
from statistics import NormalDist

import pytest

from regal.evaluation.compare import comparisons, contradictions
from regal.evaluation.curves import curves_of, grid_of
from regal.evaluation.intervals import cluster_interval, expanded_tail
from regal.evaluation.suite import ALL_SYSTEMS, BudgetRule, Reference
from tests.evaluation.made import row, rows, suite

SUITE = suite("a", "b")
REFERENCE = Reference(method="a", evaluations=50)


def test_gains_are_percent_of_the_reference_and_ties_are_ties() -> None:
    found = rows({"a": [100, 100, 100, 100], "b": [90, 120, 100, 100 + 1e-8]})
    (one,) = comparisons(SUITE, found, REFERENCE)
    assert one.gains == [10, -20, 0, 0]
    assert one.mean == -2.5
    assert one.median == 0
    assert one.outcomes == (1, 2, 1)
    assert (one.pairs, one.asked, one.families) == (4, 4, 4)


def test_shares_are_of_what_the_best_run_gains_and_of_what_the_bound_leaves() -> None:
    # g0: b reaches 80, c 60, the bound is 50: of 40 and 50 percent that there are, 20.
    three = suite("a", "b", "c")
    found = rows({"a": [100], "b": [80], "c": [60]})
    one, other = comparisons(three, found, REFERENCE)
    assert (one.share_of_best, one.share_of_bound) == (0.5, 0.4)
    assert (other.share_of_best, other.share_of_bound) == (1.0, 0.8)


def test_where_nothing_can_be_gained_there_is_no_share() -> None:
    (one,) = comparisons(SUITE, rows({"a": [100], "b": [100]}, bound=100.0), REFERENCE)
    assert one.share_of_best is None
    assert one.share_of_bound is None


def test_only_pairs_of_two_results_count_and_the_others_are_counted() -> None:
    found = rows({"a": [100, 100, 100], "b": [90, 50, 80]})
    found = [replace(r, failure="broke") if r.value == 50 else r for r in found]
    found = [r for r in found if (r.method, r.graph) != ("a", "g2")]
    (one,) = comparisons(SUITE, found, REFERENCE)
    assert one.gains == [10]
    assert (one.pairs, one.asked) == (1, 3)


def test_a_method_without_any_pair_is_still_listed() -> None:
    found = rows({"a": [100], "b": [90]})
    (one,) = comparisons(SUITE, [replace(r, failure="x") for r in found], REFERENCE)
    assert (one.pairs, one.asked, one.cases) == (0, 1, ())


def test_runs_that_have_no_row_yet_are_missing_not_left_out() -> None:
    three = suite("a", "b", "c")
    found = rows({"a": [100, 100, 100], "b": [90, 80]})
    one, other = comparisons(three, found, REFERENCE)
    assert (one.method, one.pairs, one.asked) == ("b", 2, 3)
    assert (other.method, other.pairs, other.asked) == ("c", 0, 3)


def test_seeds_are_paired_and_averaged_before_graphs_are() -> None:
    found = [
        *(row(method="a", seed=s, value=v) for s, v in enumerate((100.0, 200.0))),
        *(row(method="b", seed=s, value=v) for s, v in enumerate((50.0, 200.0))),
    ]
    (one,) = comparisons(SUITE, found, REFERENCE)
    assert one.gains == [25]


def test_every_budget_is_compared_with_the_reference_at_its_own() -> None:
    budgets = (BudgetRule(evaluations=50), BudgetRule(evaluations=10))
    runs = suite("a", "b", budgets=budgets)
    small = {"budget": "10 evaluations", "asked_evaluations": 10}
    found = [
        *rows({"a": [100], "b": [80]}),
        *rows({"a": [200], "b": [120]}, **small),
    ]
    at_50 = comparisons(runs, found, REFERENCE)
    assert [one.mean for one in at_50] == [20, -20]
    equal = comparisons(runs, found, Reference(method="a", evaluations=None))
    assert [one.mean for one in equal] == [20, 40]


def test_the_time_of_a_method_is_compared_with_that_method_alone() -> None:
    budgets = (
        BudgetRule(evaluations=50),
        BudgetRule(evaluations=50, seconds_of="c", methods=("b",)),
    )
    runs = suite("a", "b", "c", budgets=budgets)
    timed = {"budget": budgets[1].text, "asked_evaluations": None, "asked_seconds": 1.0}
    found = [*rows({"a": [100], "c": [50]}), *rows({"b": [40]}, **timed)]
    shown = comparisons(runs, found, REFERENCE)
    assert [one.method for one in shown if one.pairs] == ["c"]
    shown = comparisons(runs, found, Reference(method="c", evaluations=50))
    assert [(one.method, one.gains) for one in shown] == [("a", [-100]), ("b", []), ("b", [20])]


def test_several_systems_have_a_line_each_and_one_together() -> None:
    found = [*rows({"a": [100], "b": [90]}), *rows({"a": [100], "b": [70]}, system="4")]
    each = comparisons(SUITE, found, REFERENCE)
    assert [(one.system, one.mean) for one in each] == [("2", 10), ("4", 30), (ALL_SYSTEMS, 20)]


def test_an_interval_draws_families_not_graphs() -> None:
    gains = [(name, gain) for name, gain in zip("abcdef", (1.0, 2.0, 6.0) * 2, strict=True)]
    interval = cluster_interval(gains)
    assert interval is not None
    assert interval[0] < 3.0 < interval[1]
    # The same graphs ten times over prove no more than once.
    assert cluster_interval(gains * 10) == interval
    spread = [(f"{name}{i}", gain) for name, gain in gains for i in range(10)]
    narrow = cluster_interval(spread)
    assert narrow is not None
    assert narrow[1] - narrow[0] < interval[1] - interval[0]


def test_an_interval_does_not_depend_on_the_order_of_the_rows() -> None:
    rng = random.Random(0)
    gains = [(f"f{i % 7}", rng.gauss(1.0, 3.0)) for i in range(40)]
    interval = cluster_interval(gains)
    rng.shuffle(gains)
    assert cluster_interval(gains) == interval


def test_an_interval_of_independent_graphs_is_about_that_of_the_t_distribution() -> None:
    rng = random.Random(1)
    gains = [(str(i), rng.gauss(5.0, 2.0)) for i in range(100)]
    interval = cluster_interval(gains)
    assert interval is not None
    mean = sum(gain for _, gain in gains) / 100
    assert interval[0] == pytest.approx(mean - 0.39, abs=0.08)
    assert interval[1] == pytest.approx(mean + 0.39, abs=0.08)


def test_five_families_give_no_interval_and_six_give_one() -> None:
    gains = [(name, float(i)) for i, name in enumerate("abcdef")]
    assert cluster_interval(gains[:5] * 9) is None
    assert cluster_interval(gains) is not None


def test_few_families_are_cut_at_the_tail_that_student_s_distribution_asks_for() -> None:
    # n = 11: Student's 97.5 % quantile is 2.2281 with 10 degrees of freedom, times sqrt(11 / 10).
    assert expanded_tail(11) == pytest.approx(NormalDist().cdf(-2.2281 * 1.1**0.5), rel=1e-3)
    assert expanded_tail(6) == pytest.approx(NormalDist().cdf(-2.5706 * 1.2**0.5), rel=1e-2)
    assert expanded_tail(10**6) == pytest.approx(0.025, rel=1e-4)


def test_an_interval_of_eleven_families_holds_the_truth_19_times_in_20() -> None:
    rng = random.Random(2)
    held = 0
    for _ in range(400):
        found = cluster_interval([(str(i), rng.gauss(0.0, 1.0)) for i in range(11)])
        assert found is not None
        held += found[0] <= 0.0 <= found[1]
    assert 0.925 < held / 400 < 0.975  # plain percentiles: 0.905


def test_a_bound_above_a_checked_value_is_a_contradiction() -> None:
    found = rows({"a": [100], "b": [90]})
    assert contradictions(found) == []
    wrong = [replace(r, bound=95.0) if r.method == "a" else r for r in found]
    (line,) = contradictions(wrong)
    assert line == "g0, 2, time: a bound of 95 is claimed, and 90 was reached"


def test_a_curve_has_the_best_value_by_then_and_starts_where_all_runs_have_one() -> None:
    found = [
        row(method="a", graph="g0", value=100.0, curve=((10, 0.1, 200.0), (30, 0.2, 100.0))),
        row(method="a", graph="g1", value=100.0, curve=((20, 0.1, 400.0),)),
    ]
    assert grid_of(found) == [10, 30, 50]
    points = curves_of(SUITE, found, "time")["a"].points
    assert [n for n, _ in points] == [30, 50]
    assert points[0][1] == pytest.approx(100.0)  # the geometric mean of 1 and 4 is 2
    assert points[1][1] == pytest.approx(0.0)


def test_a_curve_says_of_how_many_runs_it_is_the_mean() -> None:
    found = rows({"a": [100, 100, 100], "b": [90, 80, 70]})
    broken = replace(found[0], failure="broke")
    curves = curves_of(SUITE, [broken, *found[1:]], "time")
    assert [(curves[m].runs, curves[m].asked) for m in "ab"] == [(2, 3), (3, 3)]


def test_a_method_without_curves_has_points_at_its_budgets_alone() -> None:
    found = [
        row(method="a", value=100.0, curve=((10, 0.1, 200.0),)),
        row(method="b", value=100.0),
        row(method="b", value=150.0, evaluations=20, asked_evaluations=20),
    ]
    curves = curves_of(SUITE, found, "time")
    assert [n for n, _ in curves["a"].points] == [10, 20, 30, 50]
    assert [n for n, _ in curves["b"].points] == [20, 50]
