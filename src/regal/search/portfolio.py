"""The default method: cheap orders, then proof, then a beam, then evolution, until proven best."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from regal._native import Cancel, simulate
from regal.search.classic import best_classic
from regal.search.exact import beam, lower_bound, solve_exact
from regal.search.memetic import memetic
from regal.search.types import Budget, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from regal._native import OrderProblem

# What each stage may take. They keep the default run below 1 s up to 500 ops and below 5 s
# at 5,000 (benchmarks/search_time.py, one core).
EXACT_STEPS = 40_000_000  # states * ops
BEAM_STEPS = 400_000  # width * ops
IMPROVE_STEPS = 40_000_000  # plans and moves * ops
MOST_STATES = 400_000


def default_evaluations(n_ops: int) -> int:
    """Return how many evaluations a search takes for which the caller sets no limit."""
    return _states(n_ops) + _width(n_ops) + max(2_000, min(200_000, IMPROVE_STEPS // max(n_ops, 1)))


def regal(
    problem: OrderProblem,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    stop_at: int,
    cancel: Cancel | None = None,
) -> Outcome:
    """Return the best order of all stages, with the best proven bound.

    Stages run until one reaches the bound or the budget is used up. A state of the exact
    search and a lane of the beam count as an evaluation each, so that a run that the clock
    ended is repeated by its number of evaluations.
    """
    run = _Run(problem, budget, seed, threads, cancel or Cancel())
    run.bound = max(stop_at, lower_bound(problem))
    classic = best_classic(problem)
    run.offer(classic.order, classic.evaluations)
    for stage in (_prove, _widen, _improve):
        if run.is_over:
            break
        stage(run)
    peak = run.peak_bytes
    return Outcome(
        order=run.order,
        peak_bytes=peak,
        evaluations=run.evaluations,
        seconds=time.perf_counter() - run.started,
        lower_bound=min(run.bound, peak),
        optimal=peak <= run.bound,
        was_interrupted=run.cancel.is_cancelled,
    )


def exact(
    problem: OrderProblem,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    stop_at: int,
    cancel: Cancel | None = None,
) -> Outcome:
    """Return what the exact search alone finds; its states count as evaluations."""
    run = _Run(problem, budget, seed, threads, cancel or Cancel())
    run.bound = max(stop_at, lower_bound(problem))
    run.offer(np.arange(problem.n_ops, dtype=np.int64), 1)
    found = solve_exact(
        problem,
        max_states=run.left(10 * MOST_STATES),
        seconds=run.seconds_left,
        hint=run.order.tolist(),
        cancel=run.cancel,
    )
    run.bound = max(run.bound, found.lower_bound)
    run.offer(found.order, found.states)
    return Outcome(
        order=run.order,
        peak_bytes=run.peak_bytes,
        evaluations=run.evaluations,
        seconds=time.perf_counter() - run.started,
        lower_bound=min(run.bound, run.peak_bytes),
        optimal=run.peak_bytes <= run.bound,
        was_interrupted=run.cancel.is_cancelled,
    )


@dataclass(slots=True)
class _Run:
    """The best order so far, and what is left of the budget."""

    problem: OrderProblem
    budget: Budget
    seed: int
    threads: int
    cancel: Cancel
    started: float = field(default_factory=time.perf_counter)
    order: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    peak_bytes: int = 1 << 62
    bound: int = 0
    evaluations: int = 0

    def offer(self, order: Sequence[int] | NDArray[np.int64], evaluations: int) -> None:
        """Keep `order` if it is better; count the evaluations that it took."""
        self.evaluations += evaluations
        candidate = np.asarray(order, dtype=np.int64)
        peak = simulate(self.problem, candidate).peak_bytes
        if peak < self.peak_bytes:
            self.order, self.peak_bytes = candidate, peak

    def left(self, most: int) -> int:
        """Return how many evaluations a stage may take that wants `most`."""
        if self.budget.evaluations is None:
            return most
        return min(most, self.budget.evaluations - self.evaluations)

    @property
    def seconds_left(self) -> float | None:
        """Return the wall time left; None without a limit."""
        if self.budget.seconds is None:
            return None
        return max(0.0, self.budget.seconds - (time.perf_counter() - self.started))

    @property
    def is_over(self) -> bool:
        """Return whether the bound is reached, the budget used up, or the run cancelled."""
        return (
            self.peak_bytes <= self.bound
            or self.cancel.is_cancelled
            or self.left(1) < 1
            or self.seconds_left == 0.0
        )


def _states(n_ops: int) -> int:
    return max(1, min(MOST_STATES, EXACT_STEPS // max(n_ops, 1)))


def _width(n_ops: int) -> int:
    return max(4, min(1000, BEAM_STEPS // max(n_ops, 1)))


def _prove(run: _Run) -> None:
    """Search all orders, as far as the states suffice."""
    found = solve_exact(
        run.problem,
        max_states=run.left(_states(run.problem.n_ops)),
        seconds=run.seconds_left,
        hint=run.order.tolist(),
        cancel=run.cancel,
    )
    run.bound = max(run.bound, found.lower_bound)
    run.offer(found.order, found.states)


def _widen(run: _Run) -> None:
    """Follow the best partial orders side by side."""
    width = run.left(_width(run.problem.n_ops))
    found = beam(run.problem, width, seconds=run.seconds_left, cancel=run.cancel)
    if found:
        run.offer(found, width)


def _improve(run: _Run) -> None:
    """Evolve keys that bend the memory-greedy list scheduler, then anneal the best order."""
    outcome = memetic(
        run.problem,
        Budget(evaluations=run.left(1 << 40), seconds=run.seconds_left),
        seed=run.seed,
        threads=run.threads,
        stop_at=run.bound,
        cancel=run.cancel,
        seed_orders=[run.order],
    )
    run.offer(outcome.order, outcome.evaluations)
