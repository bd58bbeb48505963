"""The default method: cheap orders, then rounds of proof, beam and improvement."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from regal._native import Cancel, peak_of
from regal.search.brkga import NO_LIMIT
from regal.search.classic import CLASSICS, best_classic
from regal.search.exact import beam, improve_windows, lower_bound, solve_exact
from regal.search.memetic import memetic
from regal.search.types import Budget, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from regal._native import OrderProblem

# The last round of the stages: default runs stay below 1 s up to 500 ops and below 5 s at 5,000
# (benchmarks/search_time.py, one core).
MOST_STATES = 500_000  # each costs 0.3 to 1 us whatever the number of ops
MOST_WIDTH = 1_000
BEAM_STEPS = 400_000  # width * ops
MOST_MOVES = 200_000
IMPROVE_STEPS = 40_000_000  # plans and moves * ops
# Each round is four times the one before: what is easy is proven at once, and a small budget is
# still shared by all stages.
GROWTH = 4
ROUNDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    """What the stages of one round may take, in evaluations."""

    states: int
    width: int
    moves: int

    @property
    def evaluations(self) -> int:
        return self.states + self.width + self.moves


def _rounds(n_ops: int) -> list[_Round]:
    """Return the rounds for a graph of `n_ops`, smallest first."""
    n = max(n_ops, 1)
    width = min(MOST_WIDTH, BEAM_STEPS // n)
    moves = min(MOST_MOVES, IMPROVE_STEPS // n)
    shares = [GROWTH**i for i in reversed(range(ROUNDS))]
    return [
        _Round(
            states=MOST_STATES // share,
            width=max(4, width // share),
            moves=max(200, moves // share),
        )
        for share in shares
    ]


def default_evaluations(n_ops: int) -> int:
    """Return how many evaluations a search takes for which the caller sets no limit."""
    return len(CLASSICS) + sum(each.evaluations for each in _rounds(n_ops))


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

    Rounds of growing size: exact search, beam, evolution and annealing. They end when the
    bound is reached or the budget is used up; what is left after the last round goes to
    annealing. A state of the exact search and a lane of the beam count as an evaluation each,
    so that a run that the clock ended is repeated by its number of evaluations.
    """
    run = _begin(problem, budget, seed, threads, stop_at, cancel)
    classic = best_classic(problem)
    run.offer(classic.order, classic.evaluations)
    for number, each in enumerate(_rounds(problem.n_ops)):
        _prove(run, each.states)
        _widen(run, each.width)
        _improve(run, each.moves, number)
    _improve(run, NO_LIMIT, ROUNDS)
    return run.outcome()


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
    run = _begin(problem, budget, seed, threads, stop_at, cancel)
    run.offer(np.arange(problem.n_ops, dtype=np.int64), 1)
    _solve(run, 10 * MOST_STATES)
    return run.outcome()


def windows(
    problem: OrderProblem,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    stop_at: int,
    cancel: Cancel | None = None,
) -> Outcome:
    """Return the best classic order, its windows around the peak searched exactly."""
    run = _begin(problem, budget, seed, threads, stop_at, cancel)
    classic = best_classic(problem)
    run.offer(classic.order, classic.evaluations)
    if not run.is_over:
        found, states = improve_windows(
            problem,
            run.order.tolist(),
            max_states=MOST_STATES,
            limit=run.left(MOST_STATES),
            seconds=run.seconds_left,
            cancel=run.cancel,
        )
        run.offer(found, states)
    return run.outcome()


@dataclass(slots=True)
class _Run:
    """The best order so far, the best proven bound, and what is left of the budget."""

    problem: OrderProblem
    budget: Budget
    seed: int
    threads: int
    cancel: Cancel
    started: float = field(default_factory=time.perf_counter)
    order: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    peak_bytes: int = NO_LIMIT  # of `order`, once there is one
    bound: int = 0
    evaluations: int = 0

    def offer(self, order: Sequence[int] | NDArray[np.int64], evaluations: int) -> None:
        """Keep `order` if it is better; count the evaluations that it took."""
        self.evaluations += evaluations
        candidate = np.asarray(order, dtype=np.int64)
        peak = peak_of(self.problem, candidate)
        if peak < self.peak_bytes:
            self.order, self.peak_bytes = candidate, peak

    def outcome(self) -> Outcome:
        """Return what the run has found and proven."""
        return Outcome(
            order=self.order,
            peak_bytes=self.peak_bytes,
            evaluations=self.evaluations,
            seconds=time.perf_counter() - self.started,
            lower_bound=min(self.bound, self.peak_bytes),
            was_interrupted=self.cancel.is_cancelled,
        )

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


def _begin(
    problem: OrderProblem,
    budget: Budget,
    seed: int,
    threads: int,
    stop_at: int,
    cancel: Cancel | None,
) -> _Run:
    run = _Run(problem, budget, seed, threads, cancel or Cancel())  # the clock starts here
    run.bound = max(stop_at, lower_bound(problem))
    return run


def _prove(run: _Run, states: int) -> None:
    """Search all orders, as far as the states suffice, unless the run is over."""
    if not run.is_over:
        _solve(run, states)


def _solve(run: _Run, states: int) -> None:
    found = solve_exact(
        run.problem,
        max_states=states,
        limit=run.left(states),
        seconds=run.seconds_left,
        hint=run.order.tolist(),
        cancel=run.cancel,
    )
    run.bound = max(run.bound, found.lower_bound)
    run.offer(found.order, found.states)


def _widen(run: _Run, width: int) -> None:
    """Follow the best partial orders side by side."""
    if run.is_over:
        return
    width = run.left(width)
    found = beam(run.problem, width, seconds=run.seconds_left, cancel=run.cancel)
    if found:
        run.offer(found, width)


def _improve(run: _Run, moves: int, number: int) -> None:
    """Evolve keys that bend the memory-greedy list scheduler, then anneal the best order."""
    if run.is_over:
        return
    outcome = memetic(
        run.problem,
        Budget(evaluations=run.left(moves), seconds=run.seconds_left),
        seed=run.seed + number,
        threads=run.threads,
        stop_at=run.bound,
        cancel=run.cancel,
        seed_orders=[run.order],
    )
    run.offer(outcome.order, outcome.evaluations)
