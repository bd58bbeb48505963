"""Which weights of a run are kept: for each objective the best on the valid side, or none."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from regal.learning.prior_network import OBJECTIVES, until_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch
    from numpy.typing import NDArray

LOSS_WEIGHT = 2.0  # of a mean loss at some budget, beside a mean gain at another


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The best arms of one objective so far."""

    score: float  # mean over budgets of the mean gain; losses count LOSS_WEIGHT times
    error: float  # standard error of the mean gain over budgets
    iteration: int
    weights: dict[str, torch.Tensor]
    until: float = math.inf  # evaluations after which the search is left as it is

    @property
    def guides(self) -> bool:
        """Return whether they gain more than noise would; else the search is left as it is."""
        return self.score > self.error


@dataclass(slots=True)
class Chosen:
    """What validation has chosen so far."""

    best: dict[str, Best] = field(default_factory=dict)  # by objective

    def takes(
        self,
        name: str,
        gains: NDArray[np.float64],
        iteration: int,
        weights: Mapping[str, torch.Tensor],
    ) -> bool:
        """Keep arms if they are the best of their objective; return whether they are.

        Args:
            name: the objective.
            gains: (budgets, problems) log-ratios on the valid side.
            iteration: that has made them.
            weights: of the whole network.
        """
        score = score_of(gains)
        if name in self.best and score <= self.best[name].score:
            return False
        self.best[name] = Best(
            score=score,
            error=error_of(gains),
            iteration=iteration,
            weights={k: v.clone() for k, v in weights.items() if k.startswith(f"arms.{name}.")},
        )
        return True

    def shortens(self, name: str, gains: NDArray[np.float64], until: float) -> bool:
        """Keep arms for fewer evaluations; return whether that is taken.

        The first number that is asked about is taken in any case: arms do not guide to the end.
        Another one is taken if it is better.

        Args:
            name: the objective; it has best arms.
            gains: (budgets, problems) of those arms where they guide no longer than `until`.
            until: evaluations.
        """
        best, score = self.best[name], score_of(gains)
        if math.isfinite(best.until) and score <= best.score:
            return False
        self.best[name] = replace(best, score=score, error=error_of(gains), until=until)
        return True

    @property
    def score(self) -> float:
        """Return the mean score over objectives; 0 for those that are not guided."""
        scores = [best.score if best.guides else 0.0 for best in self.best.values()]
        return float(np.mean(scores)) if scores else -math.inf

    def weights(self, weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the weights of a network with the best arms of each objective."""
        merged = dict(weights)
        guides = merged["guides"].clone()
        for name, best in self.best.items():
            merged.update(best.weights)
            guides[OBJECTIVES.index(name)] = until_of(best.until) if best.guides else 0.0
        merged["guides"] = guides
        return merged

    def notes(self) -> dict[str, Any]:
        """Return what a file says about it."""
        return {
            name: {
                "iteration": best.iteration,
                "score": best.score,
                "error": best.error,
                "guides": best.guides,
                "until": best.until if math.isfinite(best.until) else "the end",
            }
            for name, best in self.best.items()
        }


def score_of(gains: NDArray[np.float64]) -> float:
    """Return the score of (budgets, problems) gains; see `Best`."""
    means = gains.mean(axis=1)
    return float(np.where(means < 0, LOSS_WEIGHT * means, means).mean())


def error_of(gains: NDArray[np.float64]) -> float:
    """Return the standard error over problems of their mean gains over budgets."""
    return float(gains.mean(axis=0).std() / math.sqrt(gains.shape[1]))
