"""Biased random-key genetic algorithm over schedules on several devices."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal.errors import UsageError
from regal.search.devices.compact import (
    Found,
    compact_devices,
    evaluations_of,
    outcome_of,
    seconds_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from regal._native import Cancel, CompactDevices, DeviceDecoder, DeviceSchedule
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.types import DeviceOutcome, Objective
    from regal.search.types import Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceBrkgaOptions:
    """How BRKGA searches. The defaults are tuned for `DeviceDecoder.EFT`."""

    decoder: DeviceDecoder = _native.DeviceDecoder.EFT
    population: int = 40
    elites: int = 8
    mutants: int = 5
    elite_bias: float = 0.7  # chance that a gene comes from the elite parent
    restart_after: int = 0  # generations without a better schedule; 0 = never
    with_neutral: bool = True  # the first chromosomes are the decoder's plain heuristic
    relabels_devices: bool = True  # equal devices are numbered by first use before crossing

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
        if self.restart_after < 0:
            raise UsageError(f"brkga: restart_after is {self.restart_after}; give 0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceProposal:
    """What a policy may set, per gene (see `_native.GeneLayout`).

    Random chromosomes draw gene i from Beta(alpha[i], beta[i]); offspring take it from the
    elite parent with chance `elite_bias[i]`.
    """

    alpha: NDArray[np.float64] | None = None  # (genes,), > 0
    beta: NDArray[np.float64] | None = None  # (genes,), > 0
    elite_bias: NDArray[np.float64] | None = None  # (genes,), 0 to 1


class DeviceBrkga:
    """A `DeviceMethod`: BRKGA without anything to start from but the plain heuristic.

    For the objectives that weigh memory it takes `for_memory` instead, if that is given.

    Source: Goncalves & Resende 2011 (biased random keys); REGAL, ICLR 2020 (for schedules).
    """

    def __init__(
        self, options: DeviceBrkgaOptions, for_memory: DeviceBrkgaOptions | None = None
    ) -> None:
        self._for_time = options
        self._for_memory = for_memory or options

    def __call__(
        self,
        problem: ScheduleProblem,
        objective: Objective,
        budget: Budget,
        *,
        seed: int,
        threads: int,
        cancel: Cancel | None = None,
    ) -> DeviceOutcome:
        """Return the best schedule that it finds; see `DeviceMethod`."""
        started = time.perf_counter()
        found = run_device_brkga(
            compact_devices(problem),
            objective,
            budget,
            seed=seed,
            threads=threads,
            options=self._for_memory if objective.per_byte > 0 else self._for_time,
            cancel=cancel,
        )
        return outcome_of(problem, found, started, cancel)


def run_device_brkga(
    problem: CompactDevices,
    objective: Objective,
    budget: Budget,
    *,
    seed: int,
    threads: int = 1,
    stop_at: float = -math.inf,
    options: DeviceBrkgaOptions | None = None,
    seeds: Sequence[DeviceSchedule] = (),
    chromosomes: NDArray[np.uint32] | None = None,
    proposal: DeviceProposal | None = None,
    cancel: Cancel | None = None,
) -> Found:
    """Return the best schedule that BRKGA finds; never worse than the best of `seeds`.

    Args:
        problem: N ops on D devices.
        objective: what is minimized.
        budget: when to stop. Evaluations are counted as: the seeds as they are, then chromosomes.
        seed: the only source of randomness.
        threads: never changes the result.
        stop_at: a bound of the objective's value: the search ends when it is reached.
        options: how it searches.
        seeds: schedules to start from, as they are and as keys that decode to nearly them.
        chromosomes: (k, genes) of the decoder, to start from too.
        proposal: what a policy sets.
        cancel: ends the search from another thread.

    Raises:
        UsageError: the proposal has the wrong shape or values outside its range.

    Cost: O(population * genes) memory; per evaluation that of the decoder.
    """
    options = options or DeviceBrkgaOptions()
    proposal = proposal or DeviceProposal()
    genes = _native.GeneLayout(problem.problem, options.decoder).size
    _require_ranges(genes, proposal)
    schedule, _, evaluations, was_interrupted, best = _native.device_brkga(
        problem=problem,
        decoder=options.decoder,
        per_ns=objective.per_ns,
        per_byte=objective.per_byte,
        population=options.population,
        elites=options.elites,
        mutants=options.mutants,
        elite_bias=options.elite_bias,
        restart_after=options.restart_after,
        with_neutral=options.with_neutral,
        relabels_devices=options.relabels_devices,
        seed=seed,
        threads=threads,
        evaluations=evaluations_of(budget),
        seconds=seconds_of(budget),
        stop_value=stop_at,
        seeds=list(seeds),
        chromosomes=np.zeros((0, genes), dtype=np.uint32) if chromosomes is None else chromosomes,
        alpha=proposal.alpha,
        beta=proposal.beta,
        gene_bias=proposal.elite_bias,
        cancel=_native.Cancel() if cancel is None else cancel,
    )
    return Found(
        schedule=schedule,
        evaluations=evaluations,
        was_interrupted=was_interrupted,
        chromosomes=best,
    )


def _require_ranges(genes: int, proposal: DeviceProposal) -> None:
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
                f"proposal: {name} has shape {values.shape}; give ({genes},): one value per gene"
            )
        is_bias = name == "elite_bias"
        is_good = (values >= 0) & (values <= 1) if is_bias else (values > 0) & np.isfinite(values)
        if not np.all(is_good):
            raise UsageError(f"proposal: {name} has values outside its range")
    if (proposal.alpha is None) != (proposal.beta is None):
        raise UsageError("proposal: alpha and beta go together; one of them is missing")
