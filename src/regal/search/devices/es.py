"""Evolution strategy over the weights that turn features of ops into keys."""

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
    decoder_for,
    evaluations_of,
    outcome_of,
    seconds_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from regal._native import Cancel, CompactDevices, DeviceDecoder
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.types import DeviceOutcome, Objective
    from regal.search.types import Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEsOptions:
    """How the evolution strategy searches."""

    decoder: DeviceDecoder = _native.DeviceDecoder.EFT
    step: float = 0.5  # all deviations times this, at first
    population: int = 0  # 0: 4 + 3 ln(weights)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.step) and self.step > 0):
            raise UsageError(f"feature-es: step is {self.step}; give a number above 0")
        if self.population < 0 or self.population == 1:
            raise UsageError(
                f"feature-es: population is {self.population}; give 2 or more, or 0 for the usual"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightPrior:
    """The distribution that the search starts from; what a policy sets.

    The weights are, in this sequence: for the heads priority, affinity to device 0, 1, ...,
    colocation, wait and transfer, one per feature (`_native.device_feature_names`); then one per
    weight gene. All 0 is the plain heuristic.
    """

    mean: NDArray[np.float64]  # (weights,)
    deviation: NDArray[np.float64]  # (weights,), 0 or more; 0: the weight keeps its mean


def weight_count(n_devices: int) -> int:
    """Return how many weights there are for so many devices."""
    return (4 + n_devices) * len(_native.device_feature_names()) + _native.GENE_WEIGHTS


def feature_es(
    problem: ScheduleProblem,
    objective: Objective,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    cancel: Cancel | None = None,
) -> DeviceOutcome:
    """Return what the evolution strategy alone finds; see `DeviceMethod`."""
    started = time.perf_counter()
    found = run_device_es(
        compact_devices(problem),
        objective,
        budget,
        seed=seed,
        threads=threads,
        options=DeviceEsOptions(decoder=decoder_for(objective)),
        cancel=cancel,
    )
    return outcome_of(problem, found, started, cancel)


def run_device_es(
    problem: CompactDevices,
    objective: Objective,
    budget: Budget,
    *,
    seed: int,
    threads: int = 1,
    stop_at: float = -math.inf,
    options: DeviceEsOptions | None = None,
    prior: WeightPrior | None = None,
    kept: int = 1,
    cancel: Cancel | None = None,
) -> Found:
    """Return the best schedule and the `kept` best chromosomes, no two of equal score.

    Args:
        problem: N ops on D devices.
        objective: what is minimized.
        budget: when to stop.
        seed: the only source of randomness.
        threads: never changes the result.
        stop_at: a bound of the objective's value: the search ends when it is reached.
        options: how it searches.
        prior: where it starts; None: around the plain heuristic.
        kept: how many chromosomes are returned.
        cancel: ends the search from another thread.

    Raises:
        UsageError: the prior has the wrong shape or values outside its range.

    Source: Ostermeier, Gawelczyk & Hansen 1994 (cumulative step-size adaptation).
    Cost: per evaluation that of the decoder, and O(heads * features * ops) for the keys.
    """
    options = options or DeviceEsOptions()
    if prior is not None:
        _require_prior(weight_count(problem.n_devices), prior)
    schedule, _, evaluations, was_interrupted, chromosomes, _, _ = _native.device_es(
        problem=problem,
        decoder=options.decoder,
        per_ns=objective.per_ns,
        per_byte=objective.per_byte,
        mean=None if prior is None else prior.mean,
        deviation=None if prior is None else prior.deviation,
        step=options.step,
        population=options.population,
        kept=kept,
        seed=seed,
        threads=threads,
        evaluations=evaluations_of(budget),
        seconds=seconds_of(budget),
        stop_value=stop_at,
        cancel=_native.Cancel() if cancel is None else cancel,
    )
    return Found(
        schedule=schedule,
        evaluations=evaluations,
        was_interrupted=was_interrupted,
        chromosomes=chromosomes,
    )


def _require_prior(weights: int, prior: WeightPrior) -> None:
    for name, values in (("mean", prior.mean), ("deviation", prior.deviation)):
        if values.shape != (weights,):
            raise UsageError(
                f"prior: {name} has shape {values.shape}; give ({weights},): one value per head and"
                " feature, and one per weight gene"
            )
        if not np.all(np.isfinite(values)) or (name == "deviation" and np.any(values < 0)):
            raise UsageError(f"prior: {name} has values outside its range")
