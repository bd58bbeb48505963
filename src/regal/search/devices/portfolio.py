"""The default method for several devices, stage by stage; each stage starts from all before it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal._native import DeviceRule
from regal.plan.schedule_problem import UNLIMITED
from regal.search.devices.anneal import anneal
from regal.search.devices.brkga import DeviceBrkgaOptions, run_device_brkga
from regal.search.devices.compact import compact_devices, decoder_for
from regal.search.devices.es import DeviceEsOptions, run_device_es
from regal.search.devices.guide import FIRST_RULES
from regal.search.devices.local import DeviceLocalOptions, run_device_local
from regal.search.devices.outcomes import score_of, simulated
from regal.search.devices.types import CurvePoint, DeviceOutcome
from regal.search.types import Budget

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from regal._native import (
        Cancel,
        CompactDevices,
        DeviceDecoder,
        DeviceFigures,
        DeviceSchedule,
        DeviceScore,
        NamedSchedule,
    )
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.es import Adapted, WeightPrior
    from regal.search.devices.types import Objective

MOST_STARTS = 8  # schedules that a stage starts from
MOST_CHROMOSOMES = 20
STRATEGY_EVALUATIONS = 300  # of the evolution strategy: it gains most at first
# Of each stage in the first round; each round doubles them, so that no stage starves.
LOCAL_EVALUATIONS = 400
ANNEAL_EVALUATIONS = 600
GENETIC_EVALUATIONS = 600
# All rules: those of about one evaluation each, then by what they take.
CHEAP_FIRST = (
    *FIRST_RULES,
    DeviceRule.ROUND_ROBIN,
    DeviceRule.M_TOPO,
    DeviceRule.FILE_ORDER,
    DeviceRule.BFS,
    DeviceRule.DFS,
    DeviceRule.GREEDY_MEMORY,
)
CHEAP_FACTOR = 8  # of evaluations of the annealing for one of another stage, where it is plain


def regal(
    problem: ScheduleProblem,
    objective: Objective,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    cancel: Cancel | None = None,
) -> DeviceOutcome:
    """Return the best schedule of heuristics, evolution strategy, local search, annealing, BRKGA.

    It is never worse than the best heuristic, and it stops when a proven bound is reached. The
    evaluations of each stage do not depend on the budget: a run that the clock ended is repeated
    by its number of evaluations. Of a budget too small for all heuristics, the cheap ones come
    first, and those that do not fit are left out; the first always runs.

    Cost: the heuristics take 15 to 40 ms for 1,000 ops on two devices; an evaluation of the other
    stages about 50 to 150 ns per op and device.
    """
    run = PortfolioRun(problem, objective, budget, seed=seed, threads=threads, cancel=cancel)
    usual_search(run)
    return run.outcome()


def usual_search(run: PortfolioRun, prior: WeightPrior | None = None) -> None:
    """Spend the budget of a run as without a policy; the evolution strategy may have a prior."""
    run.heuristics()
    if run.goes_on():
        run.strategy(STRATEGY_EVALUATIONS, prior)
    run.rounds()


@dataclass(slots=True)
class _Kept:
    """A schedule that later stages may start from."""

    score: DeviceScore
    schedule: DeviceSchedule
    figures: DeviceFigures


@dataclass(slots=True)
class _Found:
    """The chromosomes of one decoder, best stages last."""

    best: NDArray[np.uint32] | None = None  # (genes,)
    all: list[NDArray[np.uint32]] = field(default_factory=list)  # (k, genes) of each stage


class PortfolioRun:
    """One run: what it may still spend, and what it has found."""

    def __init__(
        self,
        problem: ScheduleProblem,
        objective: Objective,
        budget: Budget,
        *,
        seed: int,
        threads: int,
        cancel: Cancel | None = None,
        compact: CompactDevices | None = None,
        decoder: DeviceDecoder | None = None,
    ) -> None:
        self._started = time.perf_counter()
        self._problem, self._objective, self._budget = problem, objective, budget
        self._seed, self._threads = seed, threads
        self._cancel = _native.Cancel() if cancel is None else cancel
        self._compact: CompactDevices = compact_devices(problem) if compact is None else compact
        self._time_bound = _native.device_time_bound(problem.native)
        self._peak_bound = _native.device_peak_bound(problem.native)
        self._bound = objective.value(self._time_bound, self._peak_bound)
        self._kept: list[_Kept] = []  # best first
        self._curve: list[CurvePoint] = []
        self._spent = 0
        self._stage = 0
        self._was_interrupted = False
        self._decoder = decoder_for(objective) if decoder is None else decoder
        self._found = _Found()

    def goes_on(self) -> bool:
        """Return whether something is left to spend and to gain."""
        best = self._kept[0].score
        is_optimal = best.overflow == 0 and best.value <= self._bound
        if is_optimal or self._was_interrupted or self._problem.n_ops == 0:
            return False
        limit, seconds = self._budget.evaluations, self._budget.seconds
        has_evaluations = limit is None or self._spent < limit
        return has_evaluations and (seconds is None or self._seconds() < seconds)

    def cheapness(self) -> int:
        """Return about how many evaluations of the annealing cost one of the other stages.

        Those try each op on each device; annealing does not, which shows where neither links nor
        memory have to be kept book of.
        """
        problem = self._problem
        is_limited = problem.capacity_counts_live and bool((problem.capacity < UNLIMITED).any())
        is_plain = not (problem.has_contention or self._objective.per_byte > 0 or is_limited)
        return max(CHEAP_FACTOR, problem.n_devices) if is_plain else 1

    @property
    def best(self) -> DeviceScore:
        """Return what the best schedule so far is worth."""
        return self._kept[0].score

    @property
    def spent(self) -> int:
        """Return how many evaluations are done."""
        return self._spent

    @property
    def bound(self) -> float:
        """Return a value that no schedule is below."""
        return self._bound

    @property
    def capacity(self) -> float:
        """Return the bytes of all devices; devices without a limit count much."""
        return float(np.minimum(self._problem.capacity, 1 << 40).sum())

    def heuristics(self, rules: Sequence[DeviceRule] = ()) -> Sequence[NamedSchedule]:
        """Run schedules that need no search, and return them, best first; no rules: all.

        The first ones count as far as the budget has room for them, cheap ones first; later ones
        only if it has room for all of them.
        """
        named, spent = self._ruled(rules)
        limit = self._budget.evaluations
        if limit is not None and self._spent + spent > limit:
            if self._kept:
                return ()
            named, spent = self._fitting(rules or CHEAP_FIRST, limit)
        self._spent += spent
        for one in named[:MOST_STARTS]:
            self._keep(one.schedule)
        self._mark()
        return named

    def _ruled(self, rules: Sequence[DeviceRule]) -> tuple[Sequence[NamedSchedule], int]:
        objective = self._objective
        return _native.heuristic_schedules(
            self._problem.native, objective.per_ns, objective.per_byte, rules
        )

    def _fitting(
        self, rules: Sequence[DeviceRule], limit: int
    ) -> tuple[Sequence[NamedSchedule], int]:
        """Return what those rules give that fit into a limit one by one, best first."""
        found: list[NamedSchedule] = []
        total = 0
        for rule in rules:
            named, spent = self._ruled((rule,))
            if total + spent <= limit or not found:
                found += named
                total += spent
        ranked = sorted(found, key=lambda one: (one.score.overflow, one.score.value))
        return ranked, total

    def strategy(self, evaluations: int, prior: WeightPrior | None = None) -> Adapted:
        """Search over the weights of node features, from a prior or the plain heuristic.

        Returns what the distribution has become.
        """
        found = run_device_es(
            self._compact,
            self._objective,
            self._left(evaluations),
            seed=self._next_seed(),
            threads=self._threads,
            stop_at=self._bound,
            options=DeviceEsOptions(decoder=self._decoder),
            prior=prior,
            kept=MOST_CHROMOSOMES,
            cancel=self._cancel,
        )
        self._charge(found.schedule, found.evaluations, found.was_interrupted)
        self._note(found.chromosomes)
        return found

    def rounds(self) -> None:
        """Search by turns, each round twice as long as the one before, to the end of the budget."""
        factor = 1
        while self.goes_on():
            stages: tuple[tuple[Callable[[int], None], int], ...] = (
                (self.local, LOCAL_EVALUATIONS),
                (self.anneal, ANNEAL_EVALUATIONS * self.cheapness()),
                (self.genetic, GENETIC_EVALUATIONS),
            )
            for stage, evaluations in stages:
                if self.goes_on():
                    stage(evaluations * factor)
            factor *= 2

    def local(self, evaluations: int) -> None:
        """Move parts of the best schedule."""
        start = self._start()
        found = run_device_local(
            self._compact,
            self._objective,
            start,
            self._left(evaluations),
            seed=self._next_seed(),
            threads=self._threads,
            stop_at=self._bound,
            options=DeviceLocalOptions(decoder=self._decoder, is_annealing=self._stage % 2 == 0),
            cancel=self._cancel,
        )
        self._charge(found.schedule, found.evaluations, found.was_interrupted)
        self._note(found.chromosomes)

    def anneal(self, evaluations: int) -> None:
        """Anneal the placements of the best schedules."""
        found = anneal(
            self._problem,
            self._objective,
            self._starts(),
            self._left(evaluations),
            seed=self._next_seed(),
            threads=self._threads,
            stop_at=self._bound,
            cancel=self._cancel,
        )
        self._charge(found.schedule, found.evaluations, found.was_interrupted)

    def genetic(self, evaluations: int) -> None:
        """Cross the best schedules and chromosomes of all stages."""
        chromosomes = np.concatenate(self._found.all) if self._found.all else None
        found = run_device_brkga(
            self._compact,
            self._objective,
            self._left(evaluations),
            seed=self._next_seed(),
            threads=self._threads,
            stop_at=self._bound,
            options=DeviceBrkgaOptions(decoder=self._decoder),
            seeds=self._starts(),
            chromosomes=None if chromosomes is None else chromosomes[-MOST_CHROMOSOMES:],
            cancel=self._cancel,
        )
        self._charge(found.schedule, found.evaluations, found.was_interrupted)
        self._note(found.chromosomes)

    def outcome(self) -> DeviceOutcome:
        """Return the best schedule of all stages."""
        best = self._kept[0]
        return DeviceOutcome(
            schedule=best.schedule,
            figures=best.figures,
            evaluations=self._spent,
            seconds=self._seconds(),
            time_bound_ns=self._time_bound,
            peak_bound=self._peak_bound,
            was_interrupted=self._was_interrupted,
            curve=tuple(self._curve),
        )

    def _seconds(self) -> float:
        return time.perf_counter() - self._started

    def _left(self, most: int) -> Budget:
        """Return what a stage may spend; every stage does at least one evaluation."""
        limit, seconds = self._budget.evaluations, self._budget.seconds
        return Budget(
            evaluations=most if limit is None else max(1, min(most, limit - self._spent)),
            seconds=None if seconds is None else max(0.0, seconds - self._seconds()),
        )

    def _next_seed(self) -> int:
        self._stage += 1
        return (self._seed + 0x9E3779B97F4A7C15 * self._stage) % (1 << 64)

    def _charge(self, schedule: DeviceSchedule, evaluations: int, was_interrupted: bool) -> None:
        self._spent += evaluations
        self._was_interrupted |= was_interrupted or self._cancel.is_cancelled
        self._keep(schedule)
        self._mark()

    def _mark(self) -> None:
        """Note the best value if it is a new one."""
        best = self._kept[0].score
        is_new = not self._curve or best.value < self._curve[-1].value
        if is_new and best.overflow == 0:
            self._curve.append(
                CurvePoint(evaluations=self._spent, seconds=self._seconds(), value=best.value)
            )

    def _keep(self, schedule: DeviceSchedule) -> None:
        """Keep a schedule if it is among the best; no two of equal score."""
        figures = simulated(self._problem, schedule)
        score = score_of(figures, self._objective)
        new = _Kept(score, schedule, figures)
        place = sum(not score.is_better_than(kept.score) for kept in self._kept)
        is_known = place > 0 and not self._kept[place - 1].score.is_better_than(score)
        if not is_known:
            self._kept.insert(place, new)
            del self._kept[MOST_STARTS:]

    def _starts(self) -> list[DeviceSchedule]:
        return [kept.schedule for kept in self._kept]

    def _note(self, chromosomes: NDArray[np.uint32]) -> None:
        if len(chromosomes):
            self._found.all = [*self._found.all[-2:], chromosomes[::-1]]  # best last
            self._found.best = chromosomes[0]

    def _start(self) -> NDArray[np.uint32]:
        """Return the chromosome to move: the one that decodes to the better schedule."""
        choices: list[NDArray[np.uint32]] = list(
            _native.encode_schedule(self._compact, self._decoder, self._kept[0].schedule)
        )
        if self._found.best is not None:
            choices.append(self._found.best)
        limit = self._budget.evaluations
        if limit is not None and self._spent + len(choices) >= limit:
            return choices[0]  # no evaluation is left to tell them apart
        weights = (self._objective.per_ns, self._objective.per_byte)
        best = choices[0]
        best_score: DeviceScore | None = None
        for genes in choices:
            _, score = _native.decode_schedule(self._compact, self._decoder, *weights, genes)
            self._spent += 1
            if best_score is None or score.is_better_than(best_score):
                best, best_score = genes, score
        return best
