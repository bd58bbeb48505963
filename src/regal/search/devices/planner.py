"""Plan the graphs of a model on several devices: bodies first, then schedules, then offsets."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from regal._native import (
    device_peak_bound,
    device_time_bound,
    one_device_relaxation,
)
from regal.graph.file import model_hash
from regal.graph.restrict import restricted
from regal.plan.problem import least_workspace, planned_workspace
from regal.plan.schedule import ModelSchedule
from regal.plan.schedule_check import check_schedule_plan
from regal.plan.schedule_problem import schedule_problem
from regal.search.devices.objectives import Weights, objective_of
from regal.search.devices.outcomes import completed_outcome, score_of
from regal.search.devices.packing import packed_schedule
from regal.search.exact import solve_exact
from regal.search.meter import Meter
from regal.search.offsets import greedy_by_size
from regal.search.packing import before_plan
from regal.search.planner import Search, plan_graph
from regal.search.portfolio import regal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from regal.cost.types import GraphCost
    from regal.devices.types import System
    from regal.graph.types import Graph, LoadedModel
    from regal.plan.schedule import SchedulePlan
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.plan.types import Plan
    from regal.search.devices.types import DeviceMethod, DeviceOutcome, Objective
    from regal.search.types import OrderMethod

    Order = Sequence[int]
    Bodies = Mapping[int, tuple[Plan, ...]]

# Without a limit of the caller, a search of N ops takes so many evaluations: some seconds at most.
DEFAULT_EVALUATIONS = 50_000
DEFAULT_STEPS = 30_000_000  # evaluations * ops
LEAST_EVALUATIONS = 200
BODY_EVALUATIONS = 2_000  # of each body
# The bound of the peak may look at so many sets of ops: some 20 ms.
BOUND_STATES = 20_000
MOST_BOUND_OPS = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSearch:
    """How to search; one object serves all graphs of a model."""

    method: DeviceMethod
    method_name: str
    objective: str  # see `regal.search.devices.objectives`
    meter: Meter
    weights: Weights = field(default_factory=Weights)
    seed: int = 0
    threads: int = 1
    body_method: OrderMethod = regal  # bodies of control flow run on one device
    in_place: bool = True  # may ops write over an input that dies?
    sub_buffers: bool = True  # may they in bodies? Outside bodies no schedule takes any
    # May the schedule from before stay where the method finds none that is better? Baselines are
    # compared by what they find.
    keeps_before: bool = True


def plan_schedules(
    model: LoadedModel,
    system: System,
    costs: Sequence[GraphCost],
    search: DeviceSearch,
    before: ModelSchedule,
) -> ModelSchedule:
    """Return one checked schedule per entry; the main entry may spend what is left.

    Bodies of control flow are planned first, on one device and with an effort of their own that
    does not count as evaluations.

    Args:
        model: a checked model.
        system: D devices.
        costs: of each entry on these devices.
        search: the method, the objective and the budget.
        before: what happens without a search (`before_schedule`): the objective "balanced" is
            measured against it, and it stays where nothing better is found.

    Raises:
        ModelError: no device can run an op or a colocation group.
        PlanError: a schedule did not pass the checker, which is a defect of regal.
    """
    entries = list(zip(model.entries, costs, before.plans, strict=True))
    others = [_plan_entry(*entry, system, search, is_last=False) for entry in entries[1:]]
    main = _plan_entry(*entries[0], system, search, is_last=True)
    return ModelSchedule(
        graph_hash=model_hash(model),
        system=system,
        objective=search.objective,
        method=search.method_name,
        seed=search.seed,
        evaluations=search.meter.spent,
        plans=(main, *others),
    )


def before_schedule(
    model: LoadedModel,
    system: System,
    costs: Sequence[GraphCost],
    default_order: Order | None = None,
) -> ModelSchedule:
    """Return what happens without regal: everything on the first device that may run it.

    The order is the file's (or `default_order`, of the main entry), in place only where the
    runtime itself does it, offsets by greedy-by-size. Colocation groups go to the first device
    that may run them all. Nothing heeds the memory of a device.

    Raises:
        ModelError: no device can run an op or a colocation group.
    """
    plans = []
    for i, (graph, cost) in enumerate(zip(model.entries, costs, strict=True)):
        bodies = {
            k: tuple(before_plan(body) for body in op.subgraphs)
            for k, op in enumerate(graph.ops)
            if op.subgraphs
        }
        problem = schedule_problem(
            graph,
            system,
            cost,
            planned_workspace(graph, bodies),
            in_place=graph.in_place_by_runtime,
        )
        order = default_order if i == 0 and default_order is not None else range(len(graph.ops))
        first = on_first_devices(problem, order)
        plan = packed_schedule(
            graph,
            problem,
            first.schedule,
            first.figures,
            bodies,
            time_bound_ns=0,
            peak_bound=0,
            place=greedy_by_size,
        )
        check_schedule_plan(graph, system, cost, plan)
        plans.append(plan)
    return ModelSchedule(
        graph_hash=model_hash(model),
        system=system,
        objective="",
        method="before",
        seed=0,
        evaluations=0,
        plans=tuple(plans),
    )


def default_device_evaluations(n_ops: int) -> int:
    """Return how many evaluations a search takes for which the caller sets no limit."""
    return max(LEAST_EVALUATIONS, min(DEFAULT_EVALUATIONS, DEFAULT_STEPS // max(n_ops, 1)))


def _plan_entry(
    graph: Graph,
    cost: GraphCost,
    before: SchedulePlan,
    system: System,
    search: DeviceSearch,
    *,
    is_last: bool,
) -> SchedulePlan:
    """Return the checked schedule of one entry."""
    graph = restricted(graph, in_place=search.in_place, sub_buffers=search.sub_buffers)
    bodies = planned_bodies(graph, search.body_method, seed=search.seed, threads=search.threads)
    workspace = planned_workspace(graph, bodies)
    problem = schedule_problem(graph, system, cost, workspace)
    objective = objective_of(
        search.objective,
        search.weights,
        before_time_ns=before.figures.time_ns,
        before_peak_bytes=before.figures.peak,
    )
    start = completed_outcome(problem, before.schedule.placement, before.schedule.order)
    found = _searched(problem, objective, search, is_last=is_last)
    best = start if found is None else found
    if search.keeps_before and score_of(start.figures, objective).is_better_than(
        score_of(best.figures, objective)
    ):
        best = start
    plan = packed_schedule(
        graph,
        problem,
        best.schedule,
        best.figures,
        bodies,
        time_bound_ns=max(
            device_time_bound(problem.native), 0 if found is None else found.time_bound_ns
        ),
        peak_bound=max(peak_floor(problem), 0 if found is None else found.peak_bound),
    )
    least = least_workspace(graph, bodies)
    if least != workspace:
        # A body could be planned better than it was: the search took it as given.
        floor = peak_floor(schedule_problem(graph, system, cost, least))
        plan = replace(plan, peak_bound=min(plan.peak_bound, floor))
    check_schedule_plan(graph, system, cost, plan)
    return plan


def peak_floor(problem: ScheduleProblem) -> int:
    """Return a peak that no schedule has below: proven, with a short exact search."""
    bound = device_peak_bound(problem.native)
    if problem.n_ops > MOST_BOUND_OPS:
        return bound
    shared = solve_exact(one_device_relaxation(problem.native), max_states=BOUND_STATES)
    return max(bound, -(-shared.lower_bound // problem.n_devices))


def planned_bodies(
    graph: Graph, method: OrderMethod = regal, *, seed: int = 0, threads: int = 1
) -> Bodies:
    """Return the plans of the bodies of each op that has some, on one device."""
    return {
        i: tuple(
            plan_graph(
                body,
                Search(
                    method=method,
                    meter=Meter(evaluations=BODY_EVALUATIONS),
                    seed=seed,
                    threads=threads,
                ),
                None,
                is_last=False,
            )
            for body in op.subgraphs
        )
        for i, op in enumerate(graph.ops)
        if op.subgraphs
    }


def on_first_devices(problem: ScheduleProblem, order: Order) -> DeviceOutcome:
    """Return the schedule with each colocation group on the first device that may run it."""
    may_run = problem.native.may_run.reshape(-1, problem.n_devices)
    placement = may_run.argmax(axis=1)[problem.native.group] if problem.n_ops else []
    return completed_outcome(problem, [int(device) for device in placement], order)


def _searched(
    problem: ScheduleProblem, objective: Objective, search: DeviceSearch, *, is_last: bool
) -> DeviceOutcome | None:
    """Return what the method finds; None: the budget is used up."""
    uncapped = is_last and search.meter.is_limited
    budget = search.meter.budget(None if uncapped else default_device_evaluations(problem.n_ops))
    if budget is None:
        return None
    outcome = search.method(problem, objective, budget, seed=search.seed, threads=search.threads)
    search.meter.charge(outcome)
    return outcome
