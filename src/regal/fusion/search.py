"""Search for fusion, layouts and order: all at once, or one after the other."""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal.errors import UsageError
from regal.fusion.check import check_fusion
from regal.fusion.keys import HIGHEST, LOWEST, NEUTRAL, Meter, key_search
from regal.fusion.numbers import fusion_numbers
from regal.fusion.policy import fusion_proposal
from regal.fusion.types import CHANNELS_LAST, FusionPlan, Kernel
from regal.plan.problem import order_problem, pair_rows
from regal.policy.choice import NONE
from regal.search.devices.objectives import Weights, objective_of
from regal.search.portfolio import default_evaluations, regal
from regal.search.types import Budget

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from regal._native import Cancel
    from regal.fusion.keys import KeySearch
    from regal.fusion.types import FusionFigures, FusionProblem
    from regal.search.devices.types import Objective

    Genes = NDArray[np.uint32]

DEFAULT_EVALUATIONS = 20_000
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
    """Return the plan that every runtime has: ops alone, contiguous, in the order of the file.

    Where the runtime itself writes in place, it does so here.
    """
    returned = zip(problem.graph.outputs, problem.output_layouts, strict=True)
    last = dict.fromkeys(tensor for tensor, layout in returned if layout == CHANNELS_LAST)
    copies = [
        Kernel(tensor=tensor, layout=CHANNELS_LAST)
        for tensor in last
        if tensor in problem.two_layouts
    ]
    ops = tuple(Kernel(ops=(op,)) for op in range(len(problem.graph.ops)))
    pairs: tuple[tuple[int, int], ...] = ()
    if problem.graph.in_place_by_runtime:
        numbers = order_problem(problem.graph)
        happened = _native.simulate(numbers.native, np.arange(len(ops), dtype=np.int64)).in_place
        pairs = tuple(numbers.tensors_of_pair[row] for row in pair_rows(happened))
    return FusionPlan(kernels=(*ops, *copies), in_place=pairs)


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
    policy: str = NONE,
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
        policy: of fusion and layout keys; see `regal.policy.choice`. "none": uniform keys.
        cancel: ends the search from another thread.

    Raises:
        UsageError: there is no such method, objective or policy, or the problem has several
            devices.
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
    native = fusion_numbers(problem, in_place=in_place)
    search = key_search(
        native,
        goal,
        Meter(budget or Budget(evaluations=DEFAULT_EVALUATIONS), started),
        seed=seed,
        threads=threads,
        capacity=capacity,
        proposal=fusion_proposal(policy, problem, native, goal),
        cancel=cancel,
    )
    chosen = METHODS[method](search)
    plan = _plan_of(search, chosen)
    return FusionOutcome(
        plan=plan,
        figures=check_fusion(problem, plan, capacity=capacity, time_bound_ns=before.time_bound_ns),
        before=before,
        objective=goal,
        method=method,
        seed=seed,
        evaluations=search.meter.spent,
        seconds=time.perf_counter() - started,
    )


def _plan_of(search: KeySearch, genes: Genes) -> FusionPlan:
    """Return the plan of a chromosome; its kernels are ordered once more, for memory."""
    kernels, decoded, problem, pairs, *_ = _native.decode_fusion(
        search.native, search.objective.per_ns, search.objective.per_byte, search.capacity, genes
    )
    evaluations = min(ORDER_EVALUATIONS, default_evaluations(problem.n_ops))
    outcome = regal(
        problem,
        Budget(evaluations=evaluations),
        seed=search.seed,
        threads=search.threads,
        stop_at=0,
    )
    decoded_peak = _native.peak_of(problem, decoded)
    order = outcome.order if outcome.peak_bytes < decoded_peak else decoded
    happened = _native.simulate(problem, order).in_place.reshape(-1, 3).tolist()
    tensors = {tuple(row[:3]): (row[3], row[4]) for row in pairs}
    rows = [Kernel(ops=tuple(ops), tensor=tensor, layout=layout) for ops, tensor, layout in kernels]
    return FusionPlan(
        kernels=tuple(rows[k] for k in order),
        in_place=tuple(tensors[tuple(row)] for row in happened),
    )


def _joint(search: KeySearch) -> Genes:
    """Search all genes at once, from several whole heuristics."""
    every = (NEUTRAL, LOWEST, HIGHEST)
    first, *given = search.starts(every, every)
    return search.improve(
        first, np.concatenate([search.fusion, search.layout, search.ordered]), given, 1.0
    )


def _sequential(search: KeySearch) -> Genes:
    """Search layouts without fusion, then fusion in these layouts, then the kernels' order."""
    parts = 3.0 if search.needs_order else 2.0
    base = search.genes(fusion=LOWEST)
    base = search.improve(
        base, search.layout, search.starts([LOWEST], [LOWEST, HIGHEST]), 1 / parts
    )
    fused = base.copy()
    fused[search.fusion] = NEUTRAL
    base = search.improve(fused, search.fusion, [base], 1 / (parts - 1))
    return search.improve(base, search.ordered, [], 1.0) if search.needs_order else base


def _heuristic(search: KeySearch) -> Genes:
    """Take the plain heuristic: the cheapest layouts without fusion, then what saves most time."""
    search.meter.spent += 1
    return search.genes()


def _fusion_only(search: KeySearch) -> Genes:
    """Search fusion and order; what is sensitive to layouts is contiguous."""
    first, *given = search.starts([NEUTRAL, LOWEST, HIGHEST], [LOWEST])
    return search.improve(first, np.concatenate([search.fusion, search.ordered]), given, 1.0)


def _layout_only(search: KeySearch) -> Genes:
    """Search layouts and order, nothing fused."""
    first, *given = search.starts([LOWEST], [NEUTRAL, LOWEST, HIGHEST])
    return search.improve(first, np.concatenate([search.layout, search.ordered]), given, 1.0)


METHODS: Mapping[str, Callable[[KeySearch], Genes]] = MappingProxyType(
    {
        "joint": _joint,
        "sequential": _sequential,
        "heuristic": _heuristic,
        "fusion-only": _fusion_only,
        "layout-only": _layout_only,
    }
)
