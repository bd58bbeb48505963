"""Fusion and layouts where several devices share the work: with placement, order and transfers."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal.cost.roofline import ROOFLINE
from regal.cost.types import FORBIDDEN, GraphCost
from regal.errors import UsageError
from regal.fusion.contract import kernel_graph
from regal.fusion.keys import HIGHEST, LOWEST, NEUTRAL, KeySearch, Meter, key_search
from regal.fusion.numbers import fusion_numbers
from regal.fusion.policy import fusion_proposal
from regal.fusion.types import CONTIGUOUS, FusionPlan, FusionTransfer, Kernel
from regal.plan.problem import planned_workspace
from regal.plan.schedule_check import check_schedule_plan
from regal.plan.schedule_problem import schedule_problem
from regal.policy.choice import NONE
from regal.search.devices.objectives import Weights, objective_of
from regal.search.devices.outcomes import score_of, simulated_outcome
from regal.search.devices.packing import packed_schedule
from regal.search.devices.planner import on_first_devices, planned_bodies
from regal.search.devices.portfolio import regal
from regal.search.types import Budget

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from regal._native import FusionDevices
    from regal.devices.types import System
    from regal.fusion.contract import KernelGraph
    from regal.fusion.types import FusionProblem
    from regal.plan.schedule import SchedulePlan
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.planner import Bodies
    from regal.search.devices.types import DeviceOutcome, Objective

    Genes = NDArray[np.uint32]

DEFAULT_EVALUATIONS = 10_000
METHODS = ("joint", "sequential", "heuristic", "unfused")
# Of the budget of "joint": layouts and fusion as for one device, a schedule of these kernels, then
# all genes at once; a schedule of those kernels takes the rest.
ALONE_SHARE = 0.05
FIRST_SHARE = 0.55
KEYS_SHARE = 0.2
STEPS_SHARE = 0.25  # of "sequential", for layouts, and as much for fusion


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFusionOutcome:
    """The best plan that a method found, as kernels and as a checked schedule of them."""

    plan: FusionPlan
    kernels: KernelGraph
    schedule: SchedulePlan  # of `kernels.graph`
    before_time_ns: int  # no fusion, contiguous, all on the first device that may run it
    before_peak_bytes: int
    objective: Objective
    method: str
    seed: int
    evaluations: int
    seconds: float

    @property
    def value(self) -> float:
        """Return what was minimized."""
        figures = self.schedule.figures
        return self.objective.value(figures.time_ns, figures.peak)


def plan_fusion_on_devices(
    problem: FusionProblem,
    system: System,
    objective: str = "time",
    budget: Budget | None = None,
    *,
    method: str = "joint",
    seed: int = 0,
    threads: int = 1,
    weights: Weights | None = None,
    policy: str = NONE,
) -> DeviceFusionOutcome:
    """Return the best plan of `problem` on the devices of `system` that a method finds, checked.

    "joint" searches layouts and fusion at once, first as for one device, then with placement,
    order and transfers, and schedules the kernels of both once more; the better ones stay.
    "sequential" finds layouts, then fusion, each as for one device, then schedules those kernels.
    "unfused" schedules the ops unfused, those sensitive to layouts contiguous; "heuristic" the
    kernels that neutral keys give.

    Args:
        problem: N ops on D devices.
        system: those devices.
        objective: "time", "memory" or "balanced".
        budget: when to stop; None: 10,000 evaluations.
        method: one of METHODS.
        seed: the only source of randomness.
        threads: never changes the result.
        weights: of "balanced"; None: equal ones.
        policy: of fusion and layout keys; see `regal.policy.choice`. "none": uniform keys.

    Raises:
        UsageError: there is no such method, objective or policy, or the system has not D devices.
        PlanError: the plan did not pass the checker, which is a defect of regal.
    """
    if method not in METHODS:
        raise UsageError(f"unknown method '{method}'; known: {', '.join(METHODS)}")
    if problem.n_devices != len(system.devices):
        raise UsageError(
            f"the problem has {problem.n_devices} devices, system '{system.name}' has"
            f" {len(system.devices)}"
        )
    started = time.perf_counter()
    bodies = planned_bodies(problem.graph, seed=seed, threads=threads)
    workspace = planned_workspace(problem.graph, bodies)
    base = schedule_problem(problem.graph, system, _alone(problem), workspace)
    problem = replace(problem, pairs=_placeable_pairs(problem, base))
    before = on_first_devices(base, range(base.n_ops))
    goal = objective_of(
        objective,
        weights or Weights(),
        before_time_ns=before.figures.time,
        before_peak_bytes=before.figures.most,
    )
    meter = Meter(budget or Budget(evaluations=DEFAULT_EVALUATIONS), started)
    native = fusion_numbers(problem)
    devices = _devices(problem, base)
    proposal = fusion_proposal(policy, problem, native, goal, base)
    search = key_search(
        native, goal, meter, seed=seed, threads=threads, devices=devices, proposal=proposal
    )
    alone = key_search(native, goal, meter, seed=seed, threads=threads, proposal=proposal)
    candidates = [
        _scheduled(problem, system, bodies, search, genes, share)
        for genes, share in _proposals(search, alone, method)
    ]
    best = candidates[0]
    for other in candidates[1:]:
        if score_of(other.found.figures, goal).is_better_than(score_of(best.found.figures, goal)):
            best = other
    contracted = best.kernels
    packed = packed_schedule(
        contracted.graph,
        best.problem,
        best.found.schedule,
        best.found.figures,
        best.bodies,
        time_bound_ns=0,
        peak_bound=0,
    )
    check_schedule_plan(contracted.graph, system, contracted.cost, packed)
    return DeviceFusionOutcome(
        plan=_placed(best.plan, contracted, packed),
        kernels=contracted,
        schedule=packed,
        before_time_ns=before.figures.time,
        before_peak_bytes=before.figures.most,
        objective=goal,
        method=method,
        seed=seed,
        evaluations=meter.spent,
        seconds=time.perf_counter() - started,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """Kernels, and the best schedule of them that was found."""

    plan: FusionPlan
    kernels: KernelGraph
    bodies: Bodies  # of the kernels that have some
    problem: ScheduleProblem
    found: DeviceOutcome


def _scheduled(
    problem: FusionProblem,
    system: System,
    bodies: Bodies,
    search: KeySearch,
    genes: Genes,
    share: float,
) -> _Candidate:
    """Return the kernels of a chromosome, scheduled with a share of what is left."""
    kernels, _, _, _, _, schedule, rows = _native.decode_fusion(
        search.native,
        search.objective.per_ns,
        search.objective.per_byte,
        search.capacity,
        genes,
        search.devices,
    )
    search.meter.spent += 1
    sequence = schedule.order.tolist()
    plan = FusionPlan(
        kernels=tuple(
            Kernel(
                ops=tuple(kernels[k][0]),
                tensor=kernels[k][1],
                layout=kernels[k][2],
                device=int(schedule.placement[k]),
            )
            for k in sequence
        )
    )
    contracted = kernel_graph(problem, plan)
    inside = {
        k: bodies[plan.kernels[k].ops[0]]
        for k, op in enumerate(contracted.graph.ops)
        if op.subgraphs
    }
    workspace = planned_workspace(contracted.graph, inside)
    small = schedule_problem(contracted.graph, system, contracted.cost, workspace)
    count = len(problem.graph.tensors)
    numbers = [contracted.tensors[t] + count * contracted.is_copy[t] for t in small.tensors]
    if numbers != list(rows):
        raise AssertionError("the kernel and the graph of kernels number tensors differently")
    found = _rescheduled(small, _renumbered(schedule, sequence), search, share)
    return _Candidate(plan=plan, kernels=contracted, bodies=inside, problem=small, found=found)


def _proposals(search: KeySearch, alone: KeySearch, method: str) -> Iterator[tuple[Genes, float]]:
    """Yield chromosomes and the share of what is left that scheduling their kernels may take.

    `alone` knows no placement.
    """
    every = (NEUTRAL, LOWEST, HIGHEST)
    if method == "unfused":
        yield search.genes(fusion=LOWEST, layout=LOWEST), 1.0
        return
    if method == "heuristic":
        yield search.genes(), 1.0
        return
    if method == "joint":
        first, *given = alone.starts(every, every)
        both = np.concatenate([alone.fusion, alone.layout])
        found = _widened(search, alone, alone.improve(first, both, given, ALONE_SHARE))
        yield found, FIRST_SHARE / (1 - ALONE_SHARE)
        given = [found, *search.starts(every, every)]
        searched = np.concatenate([search.fusion, search.layout, search.ordered])
        left = 1 - ALONE_SHARE - FIRST_SHARE
        yield search.improve(search.genes(), searched, given, KEYS_SHARE / left), 1.0
        return
    base = alone.genes(fusion=LOWEST)
    base = alone.improve(base, alone.layout, alone.starts([LOWEST], [LOWEST, HIGHEST]), STEPS_SHARE)
    fused = base.copy()
    fused[alone.fusion] = NEUTRAL
    base = alone.improve(fused, alone.fusion, [base], STEPS_SHARE / (1 - STEPS_SHARE))
    yield _widened(search, alone, base), 1.0


def _widened(search: KeySearch, alone: KeySearch, genes: Genes) -> Genes:
    """Return the chromosome with the layouts and the fusion of one without placement."""
    wide = search.genes()
    wide[search.fusion] = genes[alone.fusion]
    wide[search.layout] = genes[alone.layout]
    return wide


def _rescheduled(
    problem: ScheduleProblem,
    start: _native.DeviceSchedule,
    search: KeySearch,
    share: float,
) -> DeviceOutcome:
    """Return the better one of a schedule and of what the default method finds."""
    kept = simulated_outcome(problem, start, 0, time.perf_counter())
    if search.meter.is_empty:
        return kept
    evaluations, seconds = search.meter.share(share)
    budget = Budget(evaluations=evaluations, seconds=None if math.isinf(seconds) else seconds)
    objective = search.objective
    found = regal(problem, objective, budget, seed=search.seed, threads=search.threads)
    search.meter.spent += found.evaluations
    is_better = score_of(found.figures, objective).is_better_than(score_of(kept.figures, objective))
    return found if is_better else kept


def _renumbered(schedule: _native.DeviceSchedule, sequence: list[int]) -> _native.DeviceSchedule:
    """Return a schedule whose ops are numbered by their place in `sequence`."""
    n = len(sequence)
    return _native.DeviceSchedule(
        np.ascontiguousarray(schedule.placement[sequence]),
        np.arange(n, dtype=np.int64),
        schedule.sends.reshape(-1, 3),
        schedule.home,
    )


def _placed(plan: FusionPlan, kernels: KernelGraph, packed: SchedulePlan) -> FusionPlan:
    """Return the plan with the devices, order and transfers of a schedule of its kernels."""
    schedule = packed.schedule
    made = _made_in(plan, kernels)
    return FusionPlan(
        kernels=tuple(
            replace(plan.kernels[k], device=schedule.placement[k]) for k in schedule.order
        ),
        transfers=tuple(
            FusionTransfer(
                tensor=kernels.tensors[sent.tensor],
                layout=made[sent.tensor],
                source=sent.source,
                target=sent.target,
            )
            for sent in schedule.transfers
        ),
        in_place=tuple((kernels.tensors[a], kernels.tensors[b]) for a, b in schedule.in_place),
    )


def _made_in(plan: FusionPlan, kernels: KernelGraph) -> list[int]:
    """Return the layout of every tensor of the graph of kernels."""
    made = [CONTIGUOUS] * len(kernels.tensors)
    for kernel, op in zip(plan.kernels, kernels.graph.ops, strict=True):
        for tensor in op.outputs:
            if tensor >= 0:
                made[tensor] = kernel.layout
    return made


def _alone(problem: FusionProblem) -> GraphCost:
    """Return what ops take that are not fused and contiguous."""
    return GraphCost(
        op_ns=tuple(
            tuple(times[CONTIGUOUS] if times[CONTIGUOUS] == FORBIDDEN else max(times[CONTIGUOUS], 1)
                  for times in row)
            for row in problem.alone_ns
        ),
        sources=(ROOFLINE,) * len(problem.alone_ns),
    )  # fmt: skip


def _placeable_pairs(problem: FusionProblem, base: ScheduleProblem) -> frozenset[tuple[int, int]]:
    """Return the pairs whose colocation groups may run on the same devices.

    Kernels join groups; groups that differ in their devices could be left with none.
    """
    may_run = base.native.may_run.reshape(-1, base.n_devices)[base.native.group]
    return frozenset((a, b) for a, b in problem.pairs if np.array_equal(may_run[a], may_run[b]))


def _devices(problem: FusionProblem, base: ScheduleProblem) -> FusionDevices:
    """Return what the system adds, in the numbers of the graph."""
    count = len(problem.graph.tensors)
    transfers = np.ones((len(base.transfers), count), dtype=np.int64)
    transfers[:, list(base.tensors)] = base.transfers
    sendable = np.zeros(count, dtype=np.int64)
    sendable[list(base.tensors)] = 1
    return _native.FusionDevices(
        groups=base.groups,
        sendable=sendable,
        resident_bytes=base.resident_bytes,
        resident_users=base.resident_users,
        capacity=base.capacity,
        link_classes=np.ascontiguousarray(base.link_classes).reshape(-1),
        transfers=transfers.reshape(-1),
        latency=np.ascontiguousarray(base.latency).reshape(-1),
        has_contention=base.has_contention,
        capacity_counts_live=base.capacity_counts_live,
    )
