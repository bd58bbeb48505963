"""Rank correlations against known values, a slow oracle, and scipy where it is installed."""

from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regal.validation.agreement import agreement
from regal.validation.ranks import kendall, spearman

SMALL = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=0, max_size=7
)  # ties are common


def test_equal_order_is_one_and_opposite_order_minus_one() -> None:
    assert spearman([1, 2, 30], [5, 6, 7]) == pytest.approx(1)
    assert kendall([1, 2, 30], [5, 6, 7]) == pytest.approx(1)
    assert spearman([1, 2, 30], [7, 6, 5]) == pytest.approx(-1)
    assert kendall([1, 2, 30], [7, 6, 5]) == pytest.approx(-1)


def test_a_textbook_example() -> None:
    # One swap of neighbors among four: rho = 1 - 6 * 2 / (4 * 15), tau = (5 - 1) / 6.
    assert spearman([1, 2, 3, 4], [1, 3, 2, 4]) == pytest.approx(0.8)
    assert kendall([1, 2, 3, 4], [1, 3, 2, 4]) == pytest.approx(2 / 3)


def test_ties_count_for_neither_order() -> None:
    # Pairs: (1, 1) tied in x; two agree. tau-b = 2 / sqrt(2 * 3).
    assert kendall([1, 1, 2], [1, 2, 3]) == pytest.approx(2 / sqrt(6))
    # Ranks 0.5 0.5 2 against 0 1 2.
    assert spearman([1, 1, 2], [1, 2, 3]) == pytest.approx(1.5 / sqrt(1.5 * 2))


def test_measured_differences_up_to_the_noise_are_ties() -> None:
    assert kendall([1, 2, 3], [10, 9, 20]) == pytest.approx(1 / 3)
    assert kendall([1, 2, 3], [10, 9, 20], noise=1) == pytest.approx(2 / sqrt(3 * 2))
    assert kendall([1, 2, 3], [10, 9, 20], noise=11) is None


@pytest.mark.parametrize("values", [([], []), ([1], [2]), ([1, 1], [1, 2]), ([1, 2], [3, 3])])
def test_nothing_to_rank_is_none(values: tuple[list[float], list[float]]) -> None:
    assert spearman(*values) is None
    assert kendall(*values) is None


@given(SMALL)
def test_kendall_equals_the_count_of_all_pairs(pairs: list[tuple[int, int]]) -> None:
    x, y = [a for a, _ in pairs], [b for _, b in pairs]
    agree = ties_x = ties_y = total = 0
    for i in range(len(x)):
        for j in range(i):
            a, b = (x[i] > x[j]) - (x[i] < x[j]), (y[i] > y[j]) - (y[i] < y[j])
            agree, total = agree + a * b, total + 1
            ties_x, ties_y = ties_x + (a == 0), ties_y + (b == 0)
    if total in (ties_x, ties_y):
        assert kendall(x, y) is None
    else:
        assert kendall(x, y) == pytest.approx(agree / sqrt((total - ties_x) * (total - ties_y)))


@settings(deadline=None)  # the first example imports scipy
@given(SMALL)
def test_scipy_agrees(pairs: list[tuple[int, int]]) -> None:
    stats = pytest.importorskip("scipy.stats")
    x, y = [a for a, _ in pairs], [b for _, b in pairs]
    ours = (spearman(x, y), kendall(x, y))
    if None not in ours:
        assert ours[0] == pytest.approx(stats.spearmanr(x, y).statistic)
        assert ours[1] == pytest.approx(stats.kendalltau(x, y).statistic)


def test_regret_and_error_are_relative_to_what_was_measured() -> None:
    found = agreement([10, 20, 30], [12, 10, 40], [12, 13, 11.5])
    assert found.regret == pytest.approx(0.2)  # the predicted best takes 12, the best 10
    assert found.mape == pytest.approx((2 / 12 + 10 / 10 + 10 / 40) / 3)
    assert (found.noise, found.spread, found.is_measurable) == (1.5, 30, True)
    assert found.distinct_predictions == 3


def test_plans_that_are_predicted_equal_are_picked_blindly() -> None:
    found = agreement([10, 10, 10], [12, 10, 17])
    assert found.regret == pytest.approx(0.3)
    assert (found.spearman, found.kendall) == (None, None)


def test_plans_that_differ_less_than_repetitions_say_nothing() -> None:
    found = agreement([1, 2, 3], [100, 101, 102], [99, 104])
    assert not found.is_measurable
    assert found.kendall == pytest.approx(1)
    assert found.kendall_above_noise is None


def test_many_values_are_thinned_out_evenly() -> None:
    values = list(range(1, 12_001))
    found = agreement(values, values)
    assert found.count == 4_000
    assert found.spearman == pytest.approx(1)
