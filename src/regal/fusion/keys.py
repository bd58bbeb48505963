"""Searches over the genes of the fusion decoder, and what they may spend."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regal import _native

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from regal._native import Cancel, FusionDevices, FusionNumbers
    from regal.fusion.policy import FusionProposal
    from regal.search.devices.types import Objective
    from regal.search.types import Budget

    Genes = NDArray[np.uint32]
    Numbers = NDArray[np.float64]

NEUTRAL, LOWEST, HIGHEST = 1 << 31, 0, (1 << 32) - 1
UNLIMITED = 2**63 - 1
NO_LIMIT = 2**62
BRKGA_SHARE = 0.5  # of what a search may spend; local search takes the rest
POPULATION, ELITES, MUTANTS, ELITE_BIAS = 40, 8, 5, 0.7


class Meter:
    """What is left of a budget."""

    def __init__(self, budget: Budget, started: float) -> None:
        self._evaluations = NO_LIMIT if budget.evaluations is None else budget.evaluations
        self._seconds = math.inf if budget.seconds is None else budget.seconds
        self._started = started
        self.spent = 0

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is left."""
        return self.spent >= self._evaluations or (
            time.perf_counter() - self._started >= self._seconds
        )

    def share(self, share: float) -> tuple[int, float]:
        """Return the evaluations (at least 1) and seconds that a part of what is left may take."""
        left = self._evaluations - self.spent
        if left < NO_LIMIT // 2:
            left = math.ceil(left * share)
        seconds = self._seconds - (time.perf_counter() - self._started)
        return max(left, 1), max(seconds * share, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySearch:
    """A problem and how to search it; the methods speak in genes."""

    native: FusionNumbers
    objective: Objective
    capacity: int
    seed: int
    threads: int
    fusion: NDArray[np.int64]  # genes of each head
    layout: NDArray[np.int64]
    order: NDArray[np.int64]
    cancel: Cancel
    devices: FusionDevices | None = None  # where there are several
    proposal: FusionProposal | None = None  # of a policy; None: uniform keys
    meter: Meter

    @property
    def ordered(self) -> NDArray[np.int64]:
        """Return the genes of order and placement, none where they change nothing."""
        return self.order if self.needs_order else self.order[:0]

    @property
    def needs_order(self) -> bool:
        """Return whether order and placement change what a plan is worth."""
        return self.objective.per_byte > 0 or self.capacity != UNLIMITED or self.devices is not None

    def genes(self, fusion: int = NEUTRAL, layout: int = NEUTRAL) -> Genes:
        """Return a chromosome with one key for all producers and one for all sensitive ops."""
        row = np.full(int(self.order[-1]) + 1, NEUTRAL, dtype=np.uint32)
        row[self.fusion] = fusion
        row[self.layout] = layout
        return row

    def starts(self, fusions: Sequence[int], layouts: Sequence[int]) -> list[Genes]:
        """Return `genes` for all pairs of a fusion and a layout key."""
        return [self.genes(fusion=f, layout=layout) for f in fusions for layout in layouts]

    def improve(
        self, base: Genes, searched: NDArray[np.int64], given: Sequence[Genes], share: float
    ) -> Genes:
        """Return the best chromosome found from `base` and `given` over the searched genes."""
        evaluations, seconds = self.meter.share(share * BRKGA_SHARE)
        rows = np.array(given, dtype=np.uint32).reshape(len(given), len(base))
        alpha, beta, bias = self._proposed(searched)
        best, score, spent, _ = _native.fusion_brkga(
            problem=self.native,
            per_ns=self.objective.per_ns,
            per_byte=self.objective.per_byte,
            capacity=self.capacity,
            population=POPULATION,
            elites=ELITES,
            mutants=MUTANTS,
            elite_bias=ELITE_BIAS,
            seed=self.seed,
            threads=self.threads,
            evaluations=evaluations,
            seconds=seconds,
            stop_value=-math.inf,
            searched=searched,
            base=base,
            given=rows,
            cancel=self.cancel,
            devices=self.devices,
            alpha=alpha,
            beta=beta,
            gene_bias=bias,
        )
        self.meter.spent += spent
        left = share * (1 - BRKGA_SHARE) / (1 - share * BRKGA_SHARE)
        evaluations, seconds = self.meter.share(left)
        if evaluations <= 1 or len(searched) == 0:
            return best
        climbed, climbed_score, spent, _ = _native.fusion_local(
            problem=self.native,
            per_ns=self.objective.per_ns,
            per_byte=self.objective.per_byte,
            capacity=self.capacity,
            seed=self.seed,
            evaluations=evaluations,
            seconds=seconds,
            stop_value=-math.inf,
            searched=searched,
            base=best,
            cancel=self.cancel,
            devices=self.devices,
        )
        self.meter.spent += spent
        is_better = (climbed_score.overflow, climbed_score.value) <= (score.overflow, score.value)
        return climbed if is_better else best

    def _proposed(self, searched: NDArray[np.int64]) -> tuple[Numbers, Numbers, Numbers]:
        """Return alpha, beta and elite bias of the searched genes; none: as without a policy."""
        count = len(self.fusion) + len(self.layout)
        if self.proposal is None or not (searched < count).any():
            none = np.empty(0)
            return none, none, none
        of_genes = self.proposal
        wide = np.ones(int(self.order[-1]) + 1)
        alpha, beta, bias = wide, wide.copy(), wide * ELITE_BIAS
        alpha[:count], beta[:count] = of_genes.alpha, of_genes.beta
        bias[:count] = of_genes.elite_bias
        return alpha[searched], beta[searched], bias[searched]


def key_search(
    native: FusionNumbers,
    objective: Objective,
    meter: Meter,
    *,
    seed: int,
    threads: int,
    capacity: int | None = None,
    devices: FusionDevices | None = None,
    proposal: FusionProposal | None = None,
    cancel: Cancel | None = None,
) -> KeySearch:
    """Return the search of a problem.

    Args:
        native: the problem.
        objective: what is minimized.
        meter: what may be spent.
        seed: the only source of randomness.
        threads: never changes the result.
        capacity: bytes that the peak of one device may take; None: any.
        devices: what several devices add.
        proposal: of a policy for fusion and layout keys; None: uniform keys.
        cancel: ends the search from another thread.
    """
    genes = _native.fusion_genes(native, devices)
    return KeySearch(
        native=native,
        objective=objective,
        capacity=UNLIMITED if capacity is None else capacity,
        seed=seed,
        threads=threads,
        fusion=np.arange(genes.layout, dtype=np.int64),
        layout=np.arange(genes.layout, genes.priority, dtype=np.int64),
        order=np.arange(genes.priority, genes.size, dtype=np.int64),
        cancel=_native.Cancel() if cancel is None else cancel,
        devices=devices,
        proposal=proposal,
        meter=meter,
    )
