"""Evolution first, then annealing: the strongest search without proofs."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from regal.search.brkga import run_brkga
from regal.search.classic import best_classic
from regal.search.local import improve_order
from regal.search.types import Budget

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from regal._native import Cancel, OrderProblem
    from regal.search.types import Outcome

# Plans * ops of the evolution. A move of the annealing costs only the steps that it touches,
# 10 to 30 times less than a plan. At equal CPU time (0.1 s, 30 graphs of 65 to 520 ops) the gap to
# the best known order was 2.0 % for evolution alone, 0.6 % for annealing alone, 0.5 % for both.
EVOLVE_STEPS = 400_000
LEAST_PLANS = 100
MOST_PLANS = 2_000


def memetic(
    problem: OrderProblem,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    stop_at: int,
    cancel: Cancel | None = None,
    seed_orders: Sequence[NDArray[np.int64]] = (),
) -> Outcome:
    """Return the best order of BRKGA from `seed_orders`, improved by annealing.

    Without seed orders it starts from the best classic order. Plans and moves count as one
    evaluation each; when annealing begins depends on the number of ops alone, so that a run
    that the clock ended is repeated by its number of evaluations.
    """
    started = time.perf_counter()
    seeds = list(seed_orders) or [best_classic(problem).order]
    plans = max(LEAST_PLANS, min(MOST_PLANS, EVOLVE_STEPS // max(problem.n_ops, 1)))
    if budget.evaluations is not None:
        plans = min(plans, budget.evaluations)
    evolved = run_brkga(
        problem,
        Budget(evaluations=plans, seconds=budget.seconds),
        seed=seed,
        threads=threads,
        stop_at=stop_at,
        seed_orders=seeds,
        cancel=cancel,
    )
    spent = time.perf_counter() - started
    is_over = evolved.is_optimal or evolved.was_interrupted or evolved.evaluations < plans
    if is_over or budget.evaluations == plans:
        return replace(evolved, seconds=spent)
    rest = Budget(
        # The annealing's start is the order that evolution counted already.
        evaluations=None if budget.evaluations is None else budget.evaluations - plans + 1,
        seconds=None if budget.seconds is None else max(0.0, budget.seconds - spent),
    )
    annealed = improve_order(
        problem, evolved.order, rest, seed=seed, stop_at=stop_at, is_annealing=True, cancel=cancel
    )
    return replace(
        annealed,
        evaluations=plans + annealed.evaluations - 1,
        seconds=time.perf_counter() - started,
    )
