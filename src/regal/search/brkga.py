"""Biased random-key genetic algorithm over the keys of a decoder."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal.errors import UsageError
from regal.search.legal import require_legal
from regal.search.types import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from regal._native import Cancel, Decoder, OrderProblem
    from regal.search.types import Budget

NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class BrkgaOptions:
    """How BRKGA searches. The defaults are tuned for `Decoder.FORCED`."""

    decoder: Decoder = _native.Decoder.FORCED
    population: int = 40
    elites: int = 8
    mutants: int = 5
    elite_bias: float = 0.7  # chance that a gene comes from the elite parent
    restart_after: int = 0  # generations without a better plan; 0 = never
    with_neutral: bool = True  # the first chromosome is the decoder's plain heuristic

    def __post_init__(self) -> None:
        if not 1 <= self.elites < self.population:
            raise UsageError(
                f"brkga: elites is {self.elites} of a population of {self.population}; "
                "give at least 1 and fewer than the population"
            )
        if not 0 <= self.mutants <= self.population - self.elites:
            raise UsageError(
                f"brkga: mutants is {self.mutants}; with {self.population} chromosomes and "
                f"{self.elites} elites give 0 to {self.population - self.elites}"
            )
        if not 0 <= self.elite_bias <= 1:
            raise UsageError(f"brkga: elite_bias is {self.elite_bias}; give 0 to 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a policy may set, per gene: one per op, and a last one for the bend weight.

    Random chromosomes draw gene i from Beta(alpha[i], beta[i]); offspring take it from the
    elite parent with chance `elite_bias[i]`.
    """

    alpha: NDArray[np.float64] | None = None  # (n_ops + 1,), > 0
    beta: NDArray[np.float64] | None = None  # (n_ops + 1,), > 0
    elite_bias: NDArray[np.float64] | None = None  # (n_ops + 1,), 0 to 1


def run_brkga(
    problem: OrderProblem,
    budget: Budget,
    *,
    seed: int,
    threads: int = 1,
    stop_at: int = 0,
    options: BrkgaOptions | None = None,
    seed_orders: Sequence[NDArray[np.int64]] = (),
    proposal: Proposal | None = None,
    cancel: Cancel | None = None,
) -> Outcome:
    """Return the best order that BRKGA finds; never worse than the best of `seed_orders`.

    Evaluations are counted as: the seed orders as they are, then chromosomes.

    Raises:
        PlanError: a seed order is not legal.
        UsageError: the proposal has the wrong shape or values outside its range.

    Source: Goncalves & Resende 2011 (biased random keys); REGAL, ICLR 2020 (for schedules).
    Cost: O(population * n) memory; per evaluation that of the decoder.
    """
    options = options or BrkgaOptions()
    proposal = proposal or Proposal()
    for seed_order in seed_orders:
        require_legal(problem, seed_order)
    _require_shapes(problem.n_ops + 1, proposal)
    started = time.perf_counter()
    order, peak_bytes, evaluations, was_interrupted = _native.brkga(
        problem=problem,
        decoder=options.decoder,
        population=options.population,
        elites=options.elites,
        mutants=options.mutants,
        elite_bias=options.elite_bias,
        restart_after=options.restart_after,
        with_neutral=options.with_neutral,
        seed=seed,
        threads=threads,
        evaluations=NO_LIMIT if budget.evaluations is None else budget.evaluations,
        seconds=math.inf if budget.seconds is None else budget.seconds,
        stop_at=stop_at,
        seed_orders=np.array(seed_orders, dtype=np.int64).reshape(len(seed_orders), problem.n_ops),
        alpha=proposal.alpha,
        beta=proposal.beta,
        gene_bias=proposal.elite_bias,
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


def _require_shapes(genes: int, proposal: Proposal) -> None:
    named = {
        "alpha": proposal.alpha,
        "beta": proposal.beta,
        "elite_bias": proposal.elite_bias,
    }
    for name, values in named.items():
        if values is None:
            continue
        if values.shape != (genes,):
            raise UsageError(
                f"proposal: {name} has shape {values.shape}; give ({genes},): "
                "one per op and one for the weight"
            )
        most = 1.0 if name == "elite_bias" else math.inf
        if not (np.all(values >= 0) and np.all(values <= most)) or (
            name != "elite_bias" and not np.all(values > 0)
        ):
            raise UsageError(f"proposal: {name} has values outside its range")
    if (proposal.alpha is None) != (proposal.beta is None):
        raise UsageError("proposal: alpha and beta go together; one of them is missing")
