"""Local search and simulated annealing over orders."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from regal import _native
from regal.search.brkga import NO_LIMIT
from regal.search.classic import best_classic
from regal.search.legal import require_legal
from regal.search.types import Outcome

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from regal._native import Cancel, OrderProblem
    from regal.search.types import Budget


def improve_order(
    problem: OrderProblem,
    start: NDArray[np.int64],
    budget: Budget,
    *,
    seed: int,
    stop_at: int = 0,
    is_annealing: bool = False,
    cancel: Cancel | None = None,
) -> Outcome:
    """Return the best order found from `start` by moving blocks of ops; never a worse one.

    Without annealing no move goes uphill, and a few random moves follow where it is stuck.
    It ends before the budget only when no op can move at all.

    Raises:
        PlanError: `start` is not a legal order.

    Cost: per move that of simulating the steps between the old and the new place.
    """
    require_legal(problem, start)
    started = time.perf_counter()
    order, peak_bytes, evaluations, was_interrupted = _native.local_search(
        problem=problem,
        start=start,
        is_annealing=is_annealing,
        seed=seed,
        evaluations=NO_LIMIT if budget.evaluations is None else budget.evaluations,
        seconds=math.inf if budget.seconds is None else budget.seconds,
        stop_at=stop_at,
        cancel=_native.Cancel() if cancel is None else cancel,
    )
    return Outcome(
        order=order,
        peak_bytes=peak_bytes,
        evaluations=evaluations,
        seconds=time.perf_counter() - started,
        lower_bound=stop_at,
        was_interrupted=was_interrupted or (cancel is not None and cancel.is_cancelled),
    )


def local_search(
    problem: OrderProblem,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    stop_at: int,
    cancel: Cancel | None = None,
) -> Outcome:
    """Return the best order of a local search from the best classic order; one thread."""
    start = best_classic(problem).order
    return improve_order(problem, start, budget, seed=seed, stop_at=stop_at, cancel=cancel)


def annealing(
    problem: OrderProblem,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    stop_at: int,
    cancel: Cancel | None = None,
) -> Outcome:
    """Return the best order of annealing from the best classic order; one thread."""
    start = best_classic(problem).order
    return improve_order(
        problem,
        start,
        budget,
        seed=seed,
        stop_at=stop_at,
        is_annealing=True,
        cancel=cancel,
    )
