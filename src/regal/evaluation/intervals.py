"""What a mean gain over graphs is worth: intervals and chances that respect families of graphs.

Intervals are 95 % percentile intervals of a bootstrap that draws families of graphs, not graphs:
kin graphs gain alike, and as many of them prove little. The percentiles are those that make up for
a small number of families: plain ones cover 90 % instead of 95 % with 11 of them. A p-value is the
level at which such an interval would just hold 0.

Source: cluster bootstrap: Davison & Hinkley 1997, section 3.8; expanded percentiles: Hesterberg
2015, "What teachers should know about the bootstrap", section 5.4.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

RESAMPLES: Final = 20_000
BOOTSTRAP_SEED: Final = 20_260
# Not even the range of n families holds the true middle more often than 1 - 2 / 2^n: 94 % for 5.
FEWEST_FAMILIES: Final = 6
TAIL: Final = 0.025  # of a 95 % interval, on each side


def cluster_interval(gains: Sequence[tuple[str, float]]) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean gain, drawing families; None: too few of them.

    Args:
        gains: (family, gain) of each graph.
    """
    means, n = _resampled(gains)
    if n < FEWEST_FAMILIES:
        return None
    tail = expanded_tail(n)
    low, high = np.quantile(means, [tail, 1.0 - tail])
    return float(low), float(high)


def p_value(gains: Sequence[tuple[str, float]]) -> float | None:
    """Return the two-sided chance of such a mean where there is no gain; None: too few families.

    It is below 0.05 where `cluster_interval` does not hold 0. Where no resample is on the other
    side of 0 (at 25 families: below 0.0009) it is that of the resamples' deviation.

    Args:
        gains: (family, gain) of each graph.
    """
    means, n = _resampled(gains)
    if n < FEWEST_FAMILIES:
        return None
    across = min(int((means <= 0).sum()), int((means >= 0).sum()))
    share = (across + 1) / (RESAMPLES + 1)
    if share >= 0.5:
        return 1.0
    z = statistics.NormalDist().inv_cdf(1.0 - share)
    deviation = float(means.std())
    if across == 0 and deviation > 0:
        z = max(z, abs(float(means.mean())) / deviation)
    return student_tails(z * math.sqrt((n - 1) / n), n - 1)


def holm(values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number, in the same sequence.

    Source: Holm 1979: the k-th smallest of m is multiplied by m - k + 1, and none is below an
    earlier one.
    """
    corrected = [0.0] * len(values)
    least = 0.0
    for k, i in enumerate(sorted(range(len(values)), key=lambda i: values[i])):
        least = max(least, min(1.0, (len(values) - k) * values[i]))
        corrected[i] = least
    return corrected


def expanded_tail(n: int) -> float:
    """Return the share of a bootstrap to cut off on each side for 95 % with n clusters.

    A bootstrap of n values is too narrow by sqrt((n - 1) / n), and by what the normal
    distribution has less in its tails than Student's with n - 1 degrees of freedom.

    Args:
        n: at least FEWEST_FAMILIES; the series for Student's quantile is right to 0.1 % there.

    Source: Abramowitz & Stegun 1964, 26.7.5.
    """
    normal = statistics.NormalDist()
    z, degrees = normal.inv_cdf(1.0 - TAIL), n - 1
    student = (
        z
        + (z**3 + z) / (4 * degrees)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * degrees**3)
    )
    return normal.cdf(-student * math.sqrt(n / degrees))


def student_tails(t: float, degrees: int) -> float:
    """Return the chance that Student's t is at least `t` from 0.

    Args:
        t: 0 or more.
        degrees: of freedom, at least 1.

    Source: Abramowitz & Stegun 1964, 26.7.3 and 26.7.4.
    """
    angle = math.atan(t / math.sqrt(degrees))
    sine, cosine = math.sin(angle), math.cos(angle)
    is_odd = degrees % 2
    term = cosine if is_odd else 1.0
    total = 0.0
    for k in range(2 + is_odd, degrees + 1, 2):
        total += term
        term *= cosine**2 * (k - 1) / k
    inside = 2 * (angle + sine * total) / math.pi if is_odd else sine * total
    return min(1.0, max(0.0, 1.0 - inside))


def _resampled(gains: Sequence[tuple[str, float]]) -> tuple[NDArray[np.float64], int]:
    """Return the mean of each resample, none with too few families; and how many there are."""
    by_family: dict[str, list[float]] = defaultdict(list)
    for family, gain in gains:
        by_family[family].append(gain)
    n = len(by_family)
    if n < FEWEST_FAMILIES:
        return np.zeros(0), n
    names = sorted(by_family)  # so that the order of the rows does not matter
    sums = np.array([sum(sorted(by_family[name])) for name in names])
    counts = np.array([len(by_family[name]) for name in names], dtype=np.float64)
    drawn = np.random.default_rng(BOOTSTRAP_SEED).integers(n, size=(RESAMPLES, n))
    means: NDArray[np.float64] = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    return means, n
