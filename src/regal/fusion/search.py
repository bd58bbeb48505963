"""Search for fusion, layouts and order: all at once, or one after the other."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal.errors import UsageError
from regal.fusion.check import check_fusion
from regal.fusion.numbers import fusion_numbers
from regal.fusion.types import FusionPlan, Kernel
from regal.search.devices.objectives import Weights, objective_of
from regal.search.portfolio import default_evaluations, regal
from regal.search.types import Budget

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from regal._native import Cancel, FusionNumbers
    from regal.fusion.types import FusionFigures, FusionProblem
    from regal.search.devices.types import Objective

    Genes = NDArray[np.uint32]

NEUTRAL, LOWEST, HIGHEST = 1 << 31, 0, (1 << 32) - 1
UNLIMITED = 2**63 - 1
NO_LIMIT = 2**62
BRKGA_SHARE = 0.5  # of what a search may spend; local search takes the rest
POPULATION, ELITES, MUTANTS, ELITE_BIAS = 40, 8, 5, 0.7
ORDER_EVALUATIONS = 20_000  # of the last search for an order of the kernels that were found


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionOutcome:
    """The best plan that a method found, judged."""

    plan: FusionPlan
    figures: FusionFigures
    before: FusionFigures  # every op alone, contiguous, in the order of the file
    objective: Objective
    method: str
    seed: int
    evaluations: int  # plans decoded; those of the last search for an order are not counted
    seconds: float

    @property
    def value(self) -> float:
        """Return what was minimized."""
        return self.objective.value(self.figures.time_ns, self.figures.peak)


def unfused_plan(problem: FusionProblem) -> FusionPlan:
    """Return the plan that every runtime has: ops alone, contiguous, in the order of the file."""
    copies = [
        Kernel(tensor=tensor, layout=layout)
        for tensor, layout in dict(
            zip(problem.graph.outputs, problem.output_layouts, strict=True)
        ).items()
        if layout > 0 and tensor in problem.two_layouts
    ]
    ops = tuple(Kernel(ops=(op,)) for op in range(len(problem.graph.ops)))
    return FusionPlan(kernels=(*ops, *copies))


def plan_fusion(
    problem: FusionProblem,
    objective: str = "time",
    budget: Budget | None = None,
    *,
    method: str = "joint",
    seed: int = 0,
    threads: int = 1,
    weights: Weights | None = None,
    capacity: int | None = None,
    in_place: bool = True,
    cancel: Cancel | None = None,
) -> FusionOutcome:
    """Return the best plan of `problem` on one device that a method finds, judged.

    Args:
        problem: N ops on one device.
        objective: "time", "memory" or "balanced" (against the plan without fusion).
        budget: when to stop; None: 20,000 evaluations.
        method: a key of METHODS.
        seed: the only source of randomness; same seed and evaluations, same plan.
        threads: never changes the result.
        weights: of "balanced"; None: equal ones.
        capacity: bytes that the peak may take; plans that fit come first. None: any.
        in_place: whether kernels of one op may write over an input that dies.
        cancel: ends the search from another thread.

    Raises:
        UsageError: there is no such method or objective, or the problem has several devices.
        PlanError: the plan did not pass the checker, which is a defect of regal.
    """
    if method not in METHODS:
        raise UsageError(f"unknown method '{method}'; known: {', '.join(METHODS)}")
    if problem.n_devices != 1:
        raise UsageError(f"the problem has {problem.n_devices} devices; plan_fusion takes one")
    started = time.perf_counter()
    before = check_fusion(problem, unfused_plan(problem))
    goal = objective_of(
        objective,
        weights or Weights(),
        before_time_ns=before.time_ns,
        before_peak_bytes=before.peak,
    )
    native = fusion_numbers(problem, in_place=in_place).native
    genes, producers, sensitive = _native.fusion_genes(native)
    search = _Search(
        native=native,
        objective=goal,
        capacity=UNLIMITED if capacity is None else capacity,
        seed=seed,
        threads=threads,
        fusion=np.arange(len(producers), dtype=np.int64),
        layout=genes.layout + np.arange(len(sensitive), dtype=np.int64),
        order=np.arange(genes.priority, genes.size, dtype=np.int64),
        cancel=_native.Cancel() if cancel is None else cancel,
        meter=_Meter(budget or Budget(evaluations=20_000), started),
    )
    chosen = METHODS[method](search)
    plan = search.plan_of(chosen)
    return FusionOutcome(
        plan=plan,
        figures=check_fusion(problem, plan, capacity=capacity),
        before=before,
        objective=goal,
        method=method,
        seed=seed,
        evaluations=search.meter.spent,
        seconds=time.perf_counter() - started,
    )


class _Meter:
    """What is left of a budget."""

    def __init__(self, budget: Budget, started: float) -> None:
        self._evaluations = NO_LIMIT if budget.evaluations is None else budget.evaluations
        self._seconds = math.inf if budget.seconds is None else budget.seconds
        self._started = started
        self.spent = 0

    def share(self, share: float) -> tuple[int, float]:
        """Return the evaluations (at least 1) and seconds that a part of what is left may take."""
        left = self._evaluations - self.spent
        if left < NO_LIMIT // 2:
            left = math.ceil(left * share)
        seconds = self._seconds - (time.perf_counter() - self._started)
        return max(left, 1), max(seconds * share, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
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
    meter: _Meter = field(compare=False)

    @property
    def needs_order(self) -> bool:
        return self.objective.per_byte > 0 or self.capacity != UNLIMITED

    def genes(self, fusion: int = NEUTRAL, layout: int = NEUTRAL) -> Genes:
        """Return a chromosome with one key for all producers and one for all sensitive ops."""
        row = np.full(int(self.order[-1]) + 1, NEUTRAL, dtype=np.uint32)
        row[self.fusion] = fusion
        row[self.layout] = layout
        return row

    def improve(
        self, base: Genes, searched: NDArray[np.int64], given: list[Genes], share: float
    ) -> Genes:
        """Return the best chromosome found from `base` and `given` over the searched genes."""
        evaluations, seconds = self.meter.share(share * BRKGA_SHARE)
        rows = np.array(given, dtype=np.uint32).reshape(len(given), len(base))
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
        )
        self.meter.spent += spent
        is_better = (climbed_score.overflow, climbed_score.value) <= (score.overflow, score.value)
        return climbed if is_better else best

    def plan_of(self, genes: Genes) -> FusionPlan:
        """Return the plan of a chromosome; its kernels are ordered once more, for memory."""
        kernels, decoded, problem, pairs, _ = _native.decode_fusion(
            self.native, self.objective.per_ns, self.objective.per_byte, self.capacity, genes
        )
        evaluations = min(ORDER_EVALUATIONS, default_evaluations(problem.n_ops))
        outcome = regal(
            problem,
            Budget(evaluations=evaluations),
            seed=self.seed,
            threads=self.threads,
            stop_at=0,
        )
        decoded_peak = _native.peak_of(problem, decoded)
        order = outcome.order if outcome.peak_bytes < decoded_peak else decoded
        happened = _native.simulate(problem, order).in_place.reshape(-1, 3).tolist()
        tensors = {tuple(row[:3]): (row[3], row[4]) for row in pairs}
        rows = [
            Kernel(ops=tuple(ops), tensor=tensor, layout=layout) for ops, tensor, layout in kernels
        ]
        return FusionPlan(
            kernels=tuple(rows[k] for k in order),
            in_place=tuple(tensors[tuple(row)] for row in happened),
        )


def _joint(search: _Search) -> Genes:
    """Search all genes at once, from several whole heuristics."""
    heads = [search.fusion, search.layout, search.order if search.needs_order else search.order[:0]]
    given = [
        search.genes(fusion=fusion, layout=layout)
        for fusion in (NEUTRAL, LOWEST, HIGHEST)
        for layout in (NEUTRAL, LOWEST, HIGHEST)
    ]
    return search.improve(given[0], np.concatenate(heads), given[1:], 1.0)


def _sequential(search: _Search) -> Genes:
    """Search layouts without fusion, then fusion in these layouts, then the kernels' order."""
    parts = 3.0 if search.needs_order else 2.0
    base = search.genes(fusion=LOWEST)
    given = [search.genes(fusion=LOWEST, layout=layout) for layout in (LOWEST, HIGHEST)]
    base = search.improve(base, search.layout, given, 1 / parts)
    off = base
    base = base.copy()
    base[search.fusion] = NEUTRAL
    base = search.improve(base, search.fusion, [off], 1 / (parts - 1))
    return search.improve(base, search.order, [], 1.0) if search.needs_order else base


def _heuristic(search: _Search) -> Genes:
    """Take the plain heuristic: the cheapest layouts without fusion, then what saves most time."""
    search.meter.spent += 1
    return search.genes()


def _fusion_only(search: _Search) -> Genes:
    """Search fusion and order, all contiguous."""
    heads = [search.fusion, search.order if search.needs_order else search.order[:0]]
    given = [search.genes(fusion=fusion, layout=LOWEST) for fusion in (NEUTRAL, LOWEST, HIGHEST)]
    return search.improve(given[0], np.concatenate(heads), given[1:], 1.0)


def _layout_only(search: _Search) -> Genes:
    """Search layouts and order, nothing fused."""
    heads = [search.layout, search.order if search.needs_order else search.order[:0]]
    given = [search.genes(fusion=LOWEST, layout=layout) for layout in (NEUTRAL, LOWEST, HIGHEST)]
    return search.improve(given[0], np.concatenate(heads), given[1:], 1.0)


METHODS: Mapping[str, Callable[[_Search], Genes]] = {
    "joint": _joint,
    "sequential": _sequential,
    "heuristic": _heuristic,
    "fusion-only": _fusion_only,
    "layout-only": _layout_only,
}
