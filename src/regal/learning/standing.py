"""Where a training run is, how good it was, and whether it goes on."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

import torch

from regal.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a run is; printed after each iteration."""

    iteration: int  # that were done
    iterations: int
    searches: int  # so far
    reward: float  # mean of the iteration
    valid: float  # mean gain of the last validation; NaN before the first
    best: float  # of the best validation
    seconds: float  # since the start, or the resumption


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
        is_better = gain > self.best
        if is_better:
            self.best = gain
        self.note(gain, is_better=is_better)
        return is_better

    def note(self, gain: float, *, is_better: bool) -> None:
        """Note the gain of a validation, and whether there is something better than before."""
        self.valid = gain
        self._stale = 0 if is_better else self._stale + 1

    def has_stopped(self, patience: int) -> bool:
        """Return whether so many validations were no better than one before; 0: never."""
        return 0 < patience <= self._stale

    def progress(self, iterations: int, reward: float, started: float) -> Progress:
        """Return where the run is, of so many iterations; `started` is a `time.perf_counter`."""
        return Progress(
            iteration=self.iteration,
            iterations=iterations,
            searches=self.searches,
            reward=reward,
            valid=self.valid,
            best=self.best,
            seconds=time.perf_counter() - started,
        )

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


def saved_state(path: Path) -> Any:
    """Return what `save_whole` wrote.

    Only files of one's own: they hold Python objects, and reading runs code.

    Raises:
        UsageError: it cannot be read, or is none of a training run.
    """
    try:
        state = torch.load(path, weights_only=False)
    except (OSError, RuntimeError, EOFError, UnpicklingError) as error:
        text = " ".join(str(error).split())[:120]
        raise UsageError(f"checkpoint '{path}' cannot be read: {text}") from None
    if not isinstance(state, dict) or "config" not in state:
        raise UsageError(
            f"checkpoint '{path}' holds no configuration of a run, as those of this version do;"
            " use another folder"
        )
    return state
