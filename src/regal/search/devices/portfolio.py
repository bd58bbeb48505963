"""The default method for several devices: heuristics, then rounds of three searches over keys."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal.search.devices.brkga import DeviceBrkgaOptions, run_device_brkga
from regal.search.devices.compact import compact_devices
from regal.search.devices.es import DeviceEsOptions, run_device_es
from regal.search.devices.local import DeviceLocalOptions, run_device_local
from regal.search.devices.types import DeviceOutcome
from regal.search.types import Budget

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from regal._native import (
        Cancel,
        CompactDevices,
        DeviceDecoder,
        DeviceFigures,
        DeviceSchedule,
        DeviceScore,
    )
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.compact import Found
    from regal.search.devices.types import Objective

MOST_SEEDS = 8  # heuristic schedules that the genetic search starts from


@dataclass(frozen=True, slots=True, kw_only=True)
class PortfolioOptions:
    """How the evaluations of a round are shared. Chosen on the training graphs.

    Every round starts anew and hands its best on; each is longer than the one before, so that
    a small budget sees all stages and a large one more than one basin.
    """

    first_round: int = 800  # evaluations
    growth: float = 1.5
    es_share: float = 0.25
    brkga_share: float = 0.2
    kept: int = 8  # chromosomes of the evolution strategy that the genetic search starts from


def regal(
    problem: ScheduleProblem,
    objective: Objective,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    cancel: Cancel | None = None,
) -> DeviceOutcome:
    """Return the best schedule of all heuristics and of rounds of search.

    A round is an evolution strategy over feature weights, a genetic search over keys that starts
    from its best and from the best heuristics, and a local search from the best of all. Running
    time is searched with the earliest-finish decoder, memory with the one that inherits
    placements, both with both in turn. It is never worse than the best heuristic, and it stops
    when a proven bound is reached. A run that the clock ended is repeated by its evaluations.

    Cost: the heuristics take 15 to 40 ms for 1,000 ops on two devices.
    """
    return search_in_rounds(
        problem, objective, budget, PortfolioOptions(), seed=seed, threads=threads, cancel=cancel
    )


def search_in_rounds(
    problem: ScheduleProblem,
    objective: Objective,
    budget: Budget,
    options: PortfolioOptions,
    *,
    seed: int,
    threads: int,
    cancel: Cancel | None = None,
) -> DeviceOutcome:
    """Return what `regal` does with other shares."""
    run = _Run(
        problem=problem,
        objective=objective,
        budget=budget,
        threads=threads,
        cancel=_native.Cancel() if cancel is None else cancel,
        time_bound=_native.device_time_bound(problem.native),
        peak_bound=_native.device_peak_bound(problem.native),
    )
    _add_heuristics(run)
    evaluations = float(options.first_round)
    for number in count():
        if run.is_over:
            break
        _search(run, options, int(evaluations), seed=seed + number, number=number)
        evaluations *= options.growth
    return run.outcome()


@dataclass(slots=True, kw_only=True)
class _Run:
    """The best schedule so far, the bounds, and what is left of the budget."""

    problem: ScheduleProblem
    objective: Objective
    budget: Budget
    threads: int
    cancel: Cancel
    time_bound: int
    peak_bound: int
    started: float = field(default_factory=time.perf_counter)
    evaluations: int = 0
    was_interrupted: bool = False
    note: str = ""
    seeds: list[DeviceSchedule] = field(default_factory=list)
    _compact: CompactDevices | None = None
    _best: tuple[DeviceScore, DeviceSchedule, DeviceFigures] | None = None
    _keys: tuple[DeviceDecoder, NDArray[np.uint32]] | None = None  # that decode to the best

    @property
    def compact(self) -> CompactDevices:
        """Return the problem as the searches read it; built when first needed."""
        if self._compact is None:
            self._compact = compact_devices(self.problem)
        return self._compact

    @property
    def bound(self) -> float:
        """Return a value that no schedule beats."""
        return self.objective.value(self.time_bound, self.peak_bound)

    def offer(self, schedule: DeviceSchedule) -> bool:
        """Keep `schedule` if it is better; return whether it is."""
        figures = _native.simulate_devices(self.problem.native, schedule)
        if figures is None:
            raise AssertionError("a decoded schedule waits in a circle")
        score = _native.score_devices(figures, self.objective.per_ns, self.objective.per_byte)
        if self._best is not None and not score.is_better_than(self._best[0]):
            return False
        self._best = score, schedule, figures
        self._keys = None
        return True

    def take(self, found: Found, decoder: DeviceDecoder) -> None:
        """Count what a stage did, and keep its schedule if it is better."""
        self.evaluations += found.evaluations
        self.was_interrupted |= found.was_interrupted
        if self.offer(found.schedule) and len(found.chromosomes):
            self._keys = decoder, found.chromosomes[0]

    def keys_of_best(self, decoder: DeviceDecoder) -> NDArray[np.uint32]:
        """Return the (genes,) chromosome that decodes to the best schedule, or nearly."""
        if self._keys is not None and self._keys[0] == decoder:
            return self._keys[1]
        keys: NDArray[np.uint32] = _native.encode_schedule(self.compact, decoder, self.best)[0]
        return keys

    @property
    def best(self) -> DeviceSchedule:
        """Return the best schedule; there is one after the heuristics."""
        if self._best is None:
            raise AssertionError("no heuristic ran")
        return self._best[1]

    def left(self, most: int) -> Budget:
        """Return the budget of a stage that wants `most` evaluations."""
        evaluations = most
        if self.budget.evaluations is not None:
            evaluations = min(most, self.budget.evaluations - self.evaluations)
        seconds = None
        if self.budget.seconds is not None:
            seconds = max(0.0, self.budget.seconds - (time.perf_counter() - self.started))
        return Budget(evaluations=max(1, evaluations), seconds=seconds)

    @property
    def is_over(self) -> bool:
        """Return whether the bound is reached, the budget used up, or the run ended early."""
        if self._best is not None:
            score = self._best[0]
            if score.overflow == 0 and score.value <= self.bound:
                return True
        is_used_up = (
            self.budget.evaluations is not None and self.evaluations >= self.budget.evaluations
        ) or (
            self.budget.seconds is not None
            and time.perf_counter() - self.started >= self.budget.seconds
        )
        return is_used_up or self.was_interrupted or self.cancel.is_cancelled

    def outcome(self) -> DeviceOutcome:
        """Return what the run has found and proven."""
        if self._best is None:
            raise AssertionError("no heuristic ran")
        _, schedule, figures = self._best
        return DeviceOutcome(
            schedule=schedule,
            figures=figures,
            evaluations=self.evaluations,
            seconds=time.perf_counter() - self.started,
            time_bound_ns=self.time_bound,
            peak_bound=self.peak_bound,
            was_interrupted=self.was_interrupted or self.cancel.is_cancelled,
            note=self.note,
        )


def _add_heuristics(run: _Run) -> None:
    named, spent = _native.heuristic_schedules(
        run.problem.native, run.objective.per_ns, run.objective.per_byte
    )
    run.evaluations += spent
    run.seeds = [one.schedule for one in named[:MOST_SEEDS]]
    run.offer(named[0].schedule)
    run.note = f"best heuristic: {named[0].name}"


def decoder_of_round(objective: Objective, number: int) -> DeviceDecoder:
    """Return the decoder of a round: by the objective, both in turn where both count."""
    if objective.per_byte == 0:
        return _native.DeviceDecoder.EFT
    if objective.per_ns == 0:
        return _native.DeviceDecoder.INHERIT
    return (_native.DeviceDecoder.EFT, _native.DeviceDecoder.INHERIT)[number % 2]


def _search(
    run: _Run, options: PortfolioOptions, evaluations: int, *, seed: int, number: int
) -> None:
    """Run one round of about so many evaluations."""
    decoder = decoder_of_round(run.objective, number)
    spread = run_device_es(
        run.compact,
        run.objective,
        run.left(int(evaluations * options.es_share)),
        seed=seed,
        threads=run.threads,
        stop_at=run.bound,
        options=DeviceEsOptions(decoder=decoder),
        kept=options.kept,
        cancel=run.cancel,
    )
    run.take(spread, decoder)
    if run.is_over:
        return
    bred = run_device_brkga(
        run.compact,
        run.objective,
        run.left(int(evaluations * options.brkga_share)),
        seed=seed,
        threads=run.threads,
        stop_at=run.bound,
        options=DeviceBrkgaOptions(decoder=decoder),
        seeds=run.seeds if number == 0 else [],
        chromosomes=np.vstack([run.keys_of_best(decoder), spread.chromosomes]),
        cancel=run.cancel,
    )
    run.take(bred, decoder)
    if run.is_over:
        return
    improved = run_device_local(
        run.compact,
        run.objective,
        run.keys_of_best(decoder),
        run.left(int(evaluations * (1 - options.es_share - options.brkga_share))),
        seed=seed,
        threads=run.threads,
        stop_at=run.bound,
        options=DeviceLocalOptions(decoder=decoder),
        cancel=run.cancel,
    )
    run.take(improved, decoder)
