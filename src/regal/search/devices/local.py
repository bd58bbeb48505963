"""Local search and annealing over schedules on several devices."""

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
class DeviceLocalOptions:
    """How local search moves. The rest of `relocate + release + shift` draws new keys."""

    decoder: DeviceDecoder = _native.DeviceDecoder.EFT
    is_annealing: bool = False  # else no move goes uphill
    critical: float = 0.5  # chance that a move begins at an op that the schedule hinges on
    region: float = 5.0  # ops of the connected region that moves: 1 plus this on average
    relocate: float = 0.3  # chance to pin the region to another device
    release: float = 0.1  # chance to leave its place to the heuristic again
    shift: float = 0.4  # chance to move it in the order
    reach: float = 0.3  # by at most half of this share of all keys

    def __post_init__(self) -> None:
        shares = (self.relocate, self.release, self.shift)
        if min(shares) < 0 or sum(shares) > 1 + 1e-9:
            raise UsageError(
                f"local search: relocate, release, shift are {shares}; give shares that sum to"
                " 1 at most"
            )
        if not (0 <= self.critical <= 1 and 0 <= self.reach <= 2 and 0 <= self.region < 1e6):
            raise UsageError(
                f"local search: critical is {self.critical}, reach {self.reach}, region"
                f" {self.region}; give 0 to 1, 0 to 2, and 0 or more"
            )


class DeviceLocalSearch:
    """A `DeviceMethod`: local search from the plain heuristic of the decoder."""

    def __init__(self, *, is_annealing: bool) -> None:
        self._is_annealing = is_annealing

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
        decoder = decoder_for(objective)
        compact = compact_devices(problem)
        found = run_device_local(
            compact,
            objective,
            neutral_chromosome(compact, decoder),
            budget,
            seed=seed,
            threads=threads,
            options=DeviceLocalOptions(decoder=decoder, is_annealing=self._is_annealing),
            cancel=cancel,
        )
        return outcome_of(problem, found, started, cancel)


def neutral_chromosome(problem: CompactDevices, decoder: DeviceDecoder) -> NDArray[np.uint32]:
    """Return the (genes,) chromosome that decodes to the plain heuristic."""
    genes = _native.GeneLayout(problem.problem, decoder).size
    return np.full(genes, 1 << 31, dtype=np.uint32)


def run_device_local(
    problem: CompactDevices,
    objective: Objective,
    start: NDArray[np.uint32],
    budget: Budget,
    *,
    seed: int,
    threads: int = 1,
    stop_at: float = -math.inf,
    options: DeviceLocalOptions | None = None,
    cancel: Cancel | None = None,
) -> Found:
    """Return the best schedule found from a chromosome by moving parts of it; never a worse one.

    Ops, colocation groups and connected regions go to another device, or earlier or later in the
    order; the decoder fits the rest of the schedule to it.

    Args:
        problem: N ops on D devices.
        objective: what is minimized.
        start: (genes,) of the decoder.
        budget: when to stop; the start counts as an evaluation.
        seed: the only source of randomness.
        threads: never changes the result.
        stop_at: a bound of the objective's value: the search ends when it is reached.
        options: how it moves.
        cancel: ends the search from another thread.

    Cost: per evaluation that of the decoder.
    """
    options = options or DeviceLocalOptions()
    schedule, _, evaluations, was_interrupted, chromosomes = _native.device_local_search(
        problem=problem,
        decoder=options.decoder,
        per_ns=objective.per_ns,
        per_byte=objective.per_byte,
        start=start,
        is_annealing=options.is_annealing,
        critical=options.critical,
        region=options.region,
        relocate=options.relocate,
        release=options.release,
        shift=options.shift,
        reach=options.reach,
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
