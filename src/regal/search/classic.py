"""Orders that need no search: those of runtimes and compilers."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from regal import _native
from regal.search.types import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal._native import Cancel, Classic, OrderProblem
    from regal.search.types import Budget

CLASSICS = (
    _native.Classic.FILE_ORDER,
    _native.Classic.BFS,
    _native.Classic.DFS,
    _native.Classic.DFS_LARGE,
    _native.Classic.DFS_SMALL,
    _native.Classic.XLA_DFS,
    _native.Classic.ORT_DEFAULT,
    _native.Classic.GREEDY_MEMORY,
    _native.Classic.XLA_LIST,
    _native.Classic.SAFE,
    _native.Classic.LPMF,
)


def classic_outcomes(
    problem: OrderProblem, classics: Sequence[Classic] = CLASSICS
) -> list[Outcome]:
    """Return the outcome of each classic order, in the sequence given.

    Cost: O(n log n) each; 0.1 to 0.6 s in all for 100,000 ops.
    """
    return [_outcome_of(problem, classic) for classic in classics]


def best_classic(
    problem: OrderProblem, classics: Sequence[Classic] = CLASSICS, *, stop_at: int = 0
) -> Outcome:
    """Return the outcome with the lowest peak; of equal ones, the first in `classics`."""
    started = time.perf_counter()
    outcomes = classic_outcomes(problem, classics)
    best = min(outcomes, key=lambda outcome: outcome.peak_bytes)
    seconds = time.perf_counter() - started
    return replace(best, evaluations=len(outcomes), seconds=seconds, lower_bound=stop_at)


class ClassicMethod:
    """An `OrderMethod` that returns the best of some classic orders, whatever the budget."""

    def __init__(self, *classics: Classic) -> None:
        self._classics = classics

    def __call__(
        self,
        problem: OrderProblem,
        budget: Budget,
        *,
        seed: int,
        threads: int,
        stop_at: int,
        cancel: Cancel | None = None,
    ) -> Outcome:
        """Return the best of the orders; see `OrderMethod`."""
        return best_classic(problem, self._classics, stop_at=stop_at)


def _outcome_of(problem: OrderProblem, classic: Classic) -> Outcome:
    started = time.perf_counter()
    order = _native.classic_order(problem, classic)
    peak_bytes = _native.peak_of(problem, order)
    return Outcome(
        order=order,
        peak_bytes=peak_bytes,
        evaluations=1,
        seconds=time.perf_counter() - started,
        lower_bound=0,
    )
