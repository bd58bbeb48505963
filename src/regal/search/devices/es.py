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
    colocation, wait and transfer, one per feature (`_native.device_feature_names`), then one per
    column; then one per weight gene. All 0 is the plain heuristic.
    """

    mean: NDArray[np.float64]  # (weights,), or (k, weights): the best of k means is taken
    deviation: NDArray[np.float64]  # (weights,), 0 or more; 0: the weight keeps its mean
    step: float = 0.5  # all deviations times this, at first
    columns: NDArray[np.float32] | None = None  # (k, ops): further features, learned ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapted(Found):
    """What the evolution strategy found, and where a further search may go on."""

    prior: WeightPrior
    weights: NDArray[np.float64]  # (weights,) of the best schedule


def weight_count(n_devices: int, n_columns: int = 0) -> int:
    """Return how many weights there are for so many devices and columns beside the features."""
    features = len(_native.device_feature_names()) + n_columns
    return (4 + n_devices) * features + _native.GENE_WEIGHTS


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
) -> Adapted:
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
    deviation = None if prior is None else prior.deviation
    starts = columns = None
    if prior is not None:
        _require_prior(problem, prior)
        starts, columns = np.atleast_2d(prior.mean), prior.columns
    schedule, _, evaluations, was_interrupted, chromosomes, weights, mean, step = _native.device_es(
        problem=problem,
        decoder=options.decoder,
        per_ns=objective.per_ns,
        per_byte=objective.per_byte,
        deviation=deviation,
        starts=starts,
        step=options.step if prior is None else prior.step,
        population=options.population,
        kept=kept,
        seed=seed,
        threads=threads,
        evaluations=evaluations_of(budget),
        seconds=seconds_of(budget),
        stop_value=stop_at,
        columns=columns,
        cancel=_native.Cancel() if cancel is None else cancel,
    )
    if deviation is None:
        deviation = np.array(_native.usual_deviation(problem.problem))
    return Adapted(
        schedule=schedule,
        evaluations=evaluations,
        was_interrupted=was_interrupted,
        chromosomes=chromosomes,
        prior=WeightPrior(mean=mean, deviation=deviation, step=step, columns=columns),
        weights=weights,
    )


def _require_prior(problem: CompactDevices, prior: WeightPrior) -> None:
    columns = prior.columns
    if columns is not None and (columns.ndim != 2 or columns.shape[1] != problem.n_ops):
        raise UsageError(
            f"prior: columns have shape {columns.shape}; give (columns, {problem.n_ops}): one value"
            " per op"
        )
    if columns is not None and not np.all(np.isfinite(columns)):
        raise UsageError("prior: columns have values outside their range")
    weights = weight_count(problem.n_devices, 0 if columns is None else len(columns))
    if not (math.isfinite(prior.step) and prior.step > 0):
        raise UsageError(f"prior: step is {prior.step}; give a number above 0")
    for name, values in (("mean", prior.mean), ("deviation", prior.deviation)):
        is_several = name == "mean" and values.ndim == 2 and len(values) > 0
        if values.shape[-1:] != (weights,) or not (values.ndim == 1 or is_several):
            raise UsageError(
                f"prior: {name} has shape {values.shape}; give ({weights},): one value per head and"
                " feature, and one per weight gene"
            )
        if not np.all(np.isfinite(values)) or (name == "deviation" and np.any(values < 0)):
            raise UsageError(f"prior: {name} has values outside its range")
