"""Where a training run is, how good it was, and whether it goes on."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Standing:
    """What a run has done, and its validations."""

    def __init__(self) -> None:
        self.iteration = self.searches = 0
        self.valid, self.best = math.nan, -math.inf
        self._stale = 0  # validations since the best

    def count(self, searches: int) -> None:
        """Count an iteration with so many searches."""
        self.iteration += 1
        self.searches += searches

    def judge(self, gain: float) -> bool:
        """Note the gain of a validation; return whether it is the best so far."""
        self.valid = gain
        self._stale += 1
        if gain > self.best:
            self.best, self._stale = gain, 0
        return self._stale == 0

    def has_stopped(self, patience: int) -> bool:
        """Return whether so many validations were no better than one before; 0: never."""
        return 0 < patience <= self._stale

    def state(self) -> dict[str, Any]:
        """Return everything that `restore` needs."""
        return {
            "counts": (self.iteration, self.searches, self._stale),
            "gains": (self.valid, self.best),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become what the state was taken of; it may have other parts, too."""
        self.iteration, self.searches, self._stale = state["counts"]
        self.valid, self.best = state["gains"]


def save_whole(path: Path, state: object) -> None:
    """Write a state for `torch.load`, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    torch.save(state, partial)
    os.replace(partial, path)
