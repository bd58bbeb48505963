"""Rank correlation, with ties; None where there is nothing to rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def spearman(predicted: Sequence[float], measured: Sequence[float]) -> float | None:
    """Return Spearman's rho: the correlation of the ranks, equal values sharing theirs.

    None when there are fewer than two values or one side is constant.

    Args:
        predicted: N values.
        measured: N values, in the same sequence.
    """
    x, y = _ranks(predicted), _ranks(measured)
    if x.size < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    x, y = x - x.mean(), y - y.mean()
    return float((x * y).sum() / np.sqrt((x * x).sum() * (y * y).sum()))


def kendall(
    predicted: Sequence[float], measured: Sequence[float], noise: float = 0.0
) -> float | None:
    """Return Kendall's tau-b: (pairs in the same order - pairs in opposite order), normalized.

    None when there are fewer than two values, or all pairs of one side are ties.

    Args:
        predicted: N values.
        measured: N values, in the same sequence.
        noise: measured values that are no further apart are ties.

    Cost: O(N^2), N at a time.
    """
    x, y = np.asarray(predicted, np.float64), np.asarray(measured, np.float64)
    agree = ordered_x = ordered_y = 0
    for i in range(len(x) - 1):
        a = np.sign(x[i + 1 :] - x[i])
        gap = y[i + 1 :] - y[i]
        b = np.where(np.abs(gap) > noise, np.sign(gap), 0.0)
        agree += int((a * b).sum())
        ordered_x += int(np.count_nonzero(a))
        ordered_y += int(np.count_nonzero(b))
    if not ordered_x or not ordered_y:
        return None
    return float(agree / np.sqrt(float(ordered_x) * float(ordered_y)))


def _ranks(values: Sequence[float]) -> NDArray[np.float64]:
    """Return the rank of each value from 0; equal values get their mean rank."""
    array = np.asarray(values, np.float64)
    _, group, counts = np.unique(array, return_inverse=True, return_counts=True)
    first = np.cumsum(counts) - counts
    mean_rank = first + (counts - 1) / 2
    return np.asarray(mean_rank[group], np.float64)
