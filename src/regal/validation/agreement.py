"""How well predictions of one quantity agree with what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from regal.validation.ranks import kendall, spearman

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_RANKED = 5_000  # more values are thinned out evenly: ranks are then quadratic no more


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Predicted against measured over N plans (or ops).

    Correlations are None where the prediction is the same for all, or nothing measured differs.
    """

    count: int
    spearman: float | None
    kendall: float | None
    kendall_above_noise: float | None  # measured differences up to the noise floor are ties
    regret: float  # how far the predicted best is above the measured best, relative
    mape: float  # mean of |predicted - measured| / measured
    noise: float  # between repetitions of one plan, in the unit of the values
    spread: float  # between the lowest and highest measured value
    distinct_predictions: int

    @property
    def is_measurable(self) -> bool:
        """Return whether the plans differ by more than repetitions of one do."""
        return self.spread > self.noise


def agreement(
    predicted: Sequence[float], measured: Sequence[float], repeated: Sequence[float] = ()
) -> Agreement:
    """Return how well N predictions agree with N measurements.

    Several plans may share the best prediction; the regret then is that of their mean, as if
    one of them were picked blindly.

    Args:
        predicted: N >= 1 values.
        measured: N values above 0, of the same plans.
        repeated: measurements of one and the same plan; the noise floor is their range.
    """
    if len(predicted) > MOST_RANKED:
        step = -(-len(predicted) // MOST_RANKED)
        predicted, measured = predicted[::step], measured[::step]
    noise = max(repeated) - min(repeated) if repeated else 0.0
    lowest = min(predicted)
    picked = fmean(m for p, m in zip(predicted, measured, strict=True) if p == lowest)
    best = min(measured)
    return Agreement(
        count=len(predicted),
        spearman=spearman(predicted, measured),
        kendall=kendall(predicted, measured),
        kendall_above_noise=kendall(predicted, measured, noise),
        regret=picked / best - 1 if best else 0.0,
        mape=fmean(
            abs(p - m) / m if m else float(p != m) for p, m in zip(predicted, measured, strict=True)
        ),
        noise=noise,
        spread=max(measured) - best,
        distinct_predictions=len(set(predicted)),
    )
