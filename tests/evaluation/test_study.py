"""Time to quality, time against memory, and groups of graphs, against numbers by hand."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

from regal.evaluation.groups import grouped, size_group
from regal.evaluation.pareto import CORNER, fronts, volume
from regal.evaluation.plots import plots_of
from regal.evaluation.quality import reached
from regal.evaluation.suite import DEVICES, OPS, BudgetRule, Reference, Suite
from regal.evaluation.tables import report
from tests.evaluation.made import row, suite

if TYPE_CHECKING:
    from regal.evaluation.rows import Row

BUDGETS = (BudgetRule(evaluations=10), BudgetRule(evaluations=100))
TWO = {"a": ((60, 60), (60, 60), (60, 60)), "b": ((10, 60), (60, 60), (60, 10))}
SWEEP = ("time", "balanced 2:1", "memory")


def timed() -> tuple[Suite, list[Row]]:
    """Return three graphs whose best value is 100.

    a is within 5 % of it after 10, 100 and 10 evaluations; b on one of the three after 100.
    """
    values = {
        ("a", 10): (100, 110, 104), ("a", 100): (100, 101, 100),
        ("b", 10): (150, 150, 150), ("b", 100): (120, 105, 106),
    }  # fmt: skip
    found = [
        row(
            method=method, graph=f"g{i}", family=f"f{i}", value=value, evaluations=count,
            asked_evaluations=count, budget=f"{count} evaluations", cpu_seconds=count / 10 + i,
        )
        for (method, count), numbers in values.items()
        for i, value in enumerate(numbers)
    ]  # fmt: skip
    found.append(row(method="a", graph="g1", family="f1", asked_evaluations=None, budget="9 s"))
    own = (Reference(method="a", evaluations=None),)
    return suite("a", "b", budgets=BUDGETS, within=(5.0,), references=own), found


def test_quality_is_reached_at_the_first_budget_that_comes_so_close_to_the_best() -> None:
    a, b = reached(*timed())
    assert (a.runs, a.share, a.evaluations, a.seconds) == (3, 100.0, 10.0, 3.0)
    assert b.runs == 3
    assert b.share == pytest.approx(100 / 3)
    assert math.isinf(b.evaluations)
    assert b.longest == 11.0  # of 10, 11, 12 s
    assert a.interval is None  # three families


def test_a_median_that_half_do_not_reach_is_a_lower_bound() -> None:
    runs, found = timed()
    text = report(runs, found)
    assert "| time | 5 % | a | 100 % | 10 | 3.00 | 1.0 | 3 |" in text
    assert "| time | 5 % | b | 33 % | - | > 11.00 | > 3.7 | 3 |" in text


def test_runs_that_the_clock_ends_do_not_count_for_quality_but_their_values_do() -> None:
    runs, found = timed()
    better = row(
        method="b", graph="g0", family="f0", value=50, asked_evaluations=None, budget="9 s"
    )
    a, _ = reached(runs, [*found, better])
    assert a.share == pytest.approx(200 / 3)


def test_a_volume_is_the_area_up_to_the_corner_without_what_is_dominated() -> None:
    whole = (CORNER - 0.1) ** 2  # 1: from (0.1, 0.1) to the corner
    assert volume([(0.1, 0.1)], (0.1, 0.1)) == pytest.approx(100)
    # Steps at (0.1, 0.6) and (0.6, 0.1); (0.7, 0.7) adds nothing, (2, 0) is beyond the corner.
    area = 1.0 * 0.5 + 0.5 * 0.5
    points = [(0.6, 0.1), (0.1, 0.6), (0.7, 0.7), (2.0, 0.0)]
    assert volume(points, (0.1, 0.1)) == pytest.approx(100 * area / whole)
    assert volume([(1.1, 0.1), (0.1, 1.1)], (0.1, 0.1)) == 0


def swept(**values: tuple[tuple[int, int], ...]) -> tuple[Suite, list[Row]]:
    """Return a sweep on one graph: before (100 ns, 100 B), bounds (10 ns, 10 B)."""
    found = []
    for method, points in values.items():
        for objective, (time_ns, peak) in zip(SWEEP, points, strict=True):
            facts: dict[str, Any] = {
                "method": method, "objective": objective, "time_ns": time_ns, "peak_bytes": peak,
                "time_bound_ns": 10, "peak_bound": 10, "before": 100.0, "value": float(time_ns),
            }  # fmt: skip
            found.append(row(**facts))
    return suite(*values, objectives=SWEEP), found


def test_a_front_is_compared_with_that_of_the_reference() -> None:
    a, b = fronts(*swept(**TWO), "a")
    assert [a.volume, b.volume] == pytest.approx([25, 75])
    assert [a.gain, b.gain] == pytest.approx([0, 50])
    assert (b.outcomes, b.runs, b.asked, b.families) == ((1, 0, 0), 1, 1, 1)
    assert a.of_best == pytest.approx(100 / 3)
    assert b.points["time"] == pytest.approx((0.1, 0.6))


def test_a_front_with_a_point_missing_is_left_out_and_counted() -> None:
    runs, found = swept(**TWO)
    assert [one.method for one in fronts(runs, found[:-1], "a")] == ["a"]


def test_a_sweep_has_a_table_and_a_picture_of_fronts() -> None:
    runs, found = swept(**TWO)
    text = report(runs, found)
    assert "| 50 evaluations | b | a | 75.0 % | +50.00 | 1/0/0 | 100 % | 1 of 1 | 1 |" in text
    assert "| 50 evaluations | b | 75.0 % | 10.0, 60.0 | 60.0, 60.0 | 60.0, 10.0 |" in text
    ((name, picture),) = plots_of(runs, found).items()
    assert name == "made_front.svg"
    assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert picture.count("<polyline") == 2


def test_groups_of_sizes_and_devices_stand_side_by_side() -> None:
    two = suite("a", "b", groups=(OPS, DEVICES))
    found = [
        row(method=method, graph=f"g{ops}", ops=ops, n_devices=devices, value=value)
        for ops, devices, gain in ((50, 2, 90), (1_500, 2, 80), (1_999, 4, 60), (10_000, 4, 50))
        for method, value in (("a", 100), ("b", gain))
    ]
    by_size = grouped(two, found, two.references[0], OPS)
    assert [(name, one.mean) for name, one in by_size] == [
        ("0 to 999", 10), ("1,000 to 1,999", 30), ("10,000 and more", 50),
    ]  # fmt: skip
    by_devices = grouped(two, found, two.references[0], DEVICES)
    assert [(name, one.mean) for name, one in by_devices] == [("2", 15), ("4", 45)]
    assert "| objective | ops | budget |" in report(two, found)
    assert "| time | 1,000 to 1,999 | 50 evaluations | b | +30.00 |" in report(two, found)


def test_a_group_of_sizes_begins_where_the_last_one_ends() -> None:
    assert [size_group(n)[1] for n in (999, 1_000, 1_999, 2_000, 9_999)] == [
        "0 to 999", "1,000 to 1,999", "1,000 to 1,999", "2,000 to 4,999", "5,000 to 9,999",
    ]  # fmt: skip
