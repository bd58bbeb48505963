"""Costs before anything is placed: means over devices and links."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from regal.cost.types import FORBIDDEN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from regal.plan.schedule_problem import ScheduleProblem


def mean_durations(problem: ScheduleProblem) -> NDArray[np.float64]:
    """Return what each op takes in ns, as a mean over the devices that can run it: (N,)."""
    allowed = problem.durations != FORBIDDEN
    total = np.where(allowed, problem.durations, 0).sum(axis=1, dtype=np.float64)
    means: NDArray[np.float64] = total / allowed.sum(axis=1)
    return means


def mean_transfers(problem: ScheduleProblem) -> NDArray[np.float64]:
    """Return what sending each tensor takes in ns, as a mean over all links: (T,)."""
    classes = problem.link_classes[problem.link_classes >= 0]
    means = np.zeros(len(problem.producers))
    if classes.size:
        uses = np.bincount(classes, minlength=len(problem.transfers))
        means = (uses / uses.sum()) @ problem.transfers
    return means
