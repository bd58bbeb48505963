"""How well predicted times rank plans of one graph."""

from __future__ import annotations

import pytest
from benchmarks.ranking import kendall, kendall_apart

ROWS = [(1.0, 10.0), (2.0, 10.2), (4.0, 20.0), (3.0, 30.0)]


def test_kendall_counts_pairs_in_order_less_the_others() -> None:
    assert kendall(ROWS) == pytest.approx((5 - 1) / 6)


def test_pairs_that_are_about_the_same_can_be_left_out() -> None:
    # The first two differ by 2 %: of the 5 other pairs one is in the wrong order.
    assert kendall_apart(ROWS, 0.03) == (0.6, 5 / 6)


def test_without_pairs_apart_there_is_no_rank() -> None:
    assert kendall_apart([(1.0, 1.0), (2.0, 1.01)], 0.03) == (0.0, 0.0)
