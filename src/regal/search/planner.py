"""Plan one graph: bodies first, then the order, then the offsets. The result is checked."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from regal.plan.check import require_valid_plan
from regal.plan.problem import least_workspace, order_problem, planned_workspace
from regal.plan.sub_buffers import compatible, embedded, relaxations, sub_buffer_choices
from regal.search.exact import lower_bound, solve_exact
from regal.search.packing import plan_of_order
from regal.search.portfolio import default_evaluations, exact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from regal.graph.types import Graph, SubBuffer
    from regal.plan.types import Plan
    from regal.search.meter import Meter
    from regal.search.types import OrderMethod

    Order = tuple[int, ...]

# Where choosing sub-buffers op by op pays: each try is a search of its own.
MOST_TOGGLE_STEPS = 12_000  # starts * ops with a choice * ops
MOST_STARTS = 16
QUICK_EVALUATIONS = 2_000  # of one try


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """How to search; one object serves all graphs of a model."""

    method: OrderMethod
    meter: Meter
    seed: int = 0
    threads: int = 1
    # What the default method decides besides the order: sub-buffers, and to keep the order of
    # the file where the found one packs worse. Baselines are an order alone.
    decides_all: bool = True


def plan_model(
    entries: Sequence[Graph], search: Search, runtime_order: Order | None = None
) -> tuple[Plan, ...]:
    """Return one checked plan per entry; the main entry, `entries[0]`, may spend what is left.

    Args:
        entries: checked graphs.
        search: the method and the budget.
        runtime_order: how the runtime runs the main entry today; None: in the file's order.

    Raises:
        PlanError: a plan did not pass the checker, which is a defect of regal.
    """
    others = [plan_graph(graph, search, None, is_last=False) for graph in entries[1:]]
    return (plan_graph(entries[0], search, runtime_order, is_last=True), *others)


def plan_graph(graph: Graph, search: Search, runtime_order: Order | None, *, is_last: bool) -> Plan:
    """Return a checked plan of `graph`; bodies are planned first.

    Args:
        graph: a checked graph.
        search: the method and the budget.
        runtime_order: how the runtime runs it today; None: in the file's order.
        is_last: no other search follows: spend what the meter has left.

    Raises:
        PlanError: the plan did not pass the checker, which is a defect of regal.
    """
    bodies = {
        i: tuple(plan_graph(body, search, None, is_last=False) for body in op.subgraphs)
        for i, op in enumerate(graph.ops)
        if op.subgraphs
    }
    today = plan_of_order(
        graph, runtime_order or tuple(range(len(graph.ops))), bodies, peak_bound=0
    )
    job = _Job(graph=graph, bodies=bodies, search=search, today=today, is_last=is_last)
    if not search.decides_all:
        plan = _plan_variant(job, ())
        bound = peak_bound_of(graph, planned_workspace(graph, bodies))
        if not sub_buffer_choices(graph):
            # Only without them does what the method has proven hold.
            bound = max(bound, plan.peak_bound)
        plan = replace(plan, peak_bound=min(bound, plan.peak_bytes))
    elif choices := sub_buffer_choices(graph):
        plan = _plan_with_choices(job, choices)
    else:
        plan = _plan_variant(job, ())
    least = least_workspace(graph, bodies)
    if least != planned_workspace(graph, bodies):
        # A body could be planned better than it was: the search of this graph took it as given.
        plan = replace(plan, peak_bound=min(plan.peak_bound, peak_bound_of(graph, least)))
    return require_valid_plan(graph, plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """One graph to plan. `today` is the plan of the runtime's own order, packed well."""

    graph: Graph
    bodies: Mapping[int, tuple[Plan, ...]]
    search: Search
    today: Plan
    is_last: bool
    most_evaluations: int | None = None  # None: the default for the size of the graph

    def rank(self, plan: Plan) -> tuple[bool, int, int]:
        """Return the key by which plans compare: first, never worse than today.

        Where the runtime takes offsets the arena decides; where it allocates by itself, as
        ONNX Runtime does, the peak.
        """
        today = self.today
        is_worse = plan.peak_bytes > today.peak_bytes or plan.arena_bytes > today.arena_bytes
        if self.graph.in_place_by_runtime:
            return is_worse, plan.peak_bytes, plan.arena_bytes
        return is_worse, plan.arena_bytes, plan.peak_bytes


def _plan_with_choices(job: _Job, choices: tuple[SubBuffer, ...]) -> Plan:
    """Return the best plan over some sets of sub-buffers: all, none, then op by op."""
    thorough = replace(job, is_last=False)
    quick = replace(thorough, most_evaluations=QUICK_EVALUATIONS)
    tried: dict[frozenset[SubBuffer], Plan] = {}

    def plan_of(wanted: Iterable[SubBuffer]) -> Plan:
        chosen = compatible(job.graph, wanted)
        key = frozenset(chosen)
        if key not in tried:
            tried[key] = _plan_variant(quick, chosen)
        return tried[key]

    first = (_plan_variant(thorough, compatible(job.graph, choices)), _plan_variant(thorough, ()))
    best = min(first, key=job.rank)
    bound = _bound_of_all_choices(job)
    for start in _starts(job, choices):
        if _is_done(best, bound):
            break
        best = min(best, _toggled(start, choices, plan_of, job, bound), key=job.rank)
    if best not in first and not _is_done(best, bound):
        best = min(best, _plan_variant(thorough, best.sub_buffers), key=job.rank)
    if job.is_last and job.search.meter.is_limited and best.peak_bytes > bound:
        best = min(best, _plan_variant(job, best.sub_buffers), key=job.rank)
    # The bound of a variant says nothing about the others.
    return replace(best, peak_bound=min(bound, best.peak_bytes))


def _starts(job: _Job, choices: tuple[SubBuffer, ...]) -> list[set[SubBuffer]]:
    """Return the sets from which choices are toggled: all, none, then random ones.

    Toggling one op at a time gets stuck: two ops that share a whole gain only together. Each
    try is a search of its own, so large graphs get fewer starts, or none.
    """
    groups = _choices_by_op(job.graph, choices)
    steps = len(groups) * max(len(job.graph.ops), 1)
    rng = random.Random(job.search.seed)
    starts: list[set[SubBuffer]] = [set(choices), set()]
    for _ in range(MOST_STARTS - len(starts)):
        starts.append({c for group in groups if rng.random() < 0.5 for c in sorted(group)})
    return starts[: MOST_TOGGLE_STEPS // max(steps, 1)]


def _toggled(
    start: set[SubBuffer],
    choices: tuple[SubBuffer, ...],
    plan_of: Callable[[Iterable[SubBuffer]], Plan],
    job: _Job,
    bound: int,
) -> Plan:
    """Return the best plan from `start` on, taking or leaving the choices of one op at a time."""
    best = plan_of(c for c in choices if c in start)
    for group in _choices_by_op(job.graph, choices):
        if _is_done(best, bound):
            break
        taken = set(best.sub_buffers)
        toggled = taken - group if taken & group else taken | group
        best = min(best, plan_of(c for c in choices if c in toggled), key=job.rank)
    return best


def _is_done(plan: Plan, bound: int) -> bool:
    return plan.peak_bytes <= bound and plan.arena_bytes <= plan.arena_bound


def _plan_variant(job: _Job, chosen: tuple[SubBuffer, ...]) -> Plan:
    """Return the plan that the method finds with these sub-buffers."""
    search = job.search
    joined = embedded(job.graph, chosen)
    problem = order_problem(joined, planned_workspace(job.graph, job.bodies))
    uncapped = job.is_last and search.meter.is_limited
    cap = job.most_evaluations or default_evaluations(len(joined.ops))
    budget = search.meter.budget(None if uncapped else cap)
    if budget is None:
        orders, bound = [job.today.order], lower_bound(problem.native)
    else:
        outcome = search.method(
            problem.native,
            budget,
            seed=search.seed,
            threads=search.threads,
            stop_at=lower_bound(problem.native),
        )
        search.meter.charge(outcome)
        found = tuple(int(op) for op in outcome.order)
        orders, bound = [found], outcome.lower_bound
        if search.decides_all and found != job.today.order:
            orders.append(job.today.order)
    plans = [
        # Packing a large graph takes longer than a short search: never pack an order twice.
        replace(job.today, peak_bound=min(bound, job.today.peak_bytes))
        if order == job.today.order and not chosen
        else plan_of_order(joined, order, job.bodies, peak_bound=bound)
        for order in orders
    ]
    return replace(min(plans, key=job.rank), sub_buffers=chosen)


def _bound_of_all_choices(job: _Job) -> int:
    """Return a lower bound on the peak that holds whatever sub-buffers a plan takes."""
    graph, search = job.graph, job.search
    workspace = planned_workspace(graph, job.bodies)
    bound = peak_bound_of(graph, workspace)
    for relaxed in relaxations(graph):
        budget = search.meter.budget(default_evaluations(len(graph.ops)))
        if budget is None:
            break
        problem = order_problem(relaxed, workspace)
        outcome = exact(problem.native, budget, seed=search.seed, threads=search.threads, stop_at=0)
        search.meter.charge(outcome)
        bound = max(bound, outcome.lower_bound)
    return bound


def _choices_by_op(graph: Graph, choices: tuple[SubBuffer, ...]) -> list[set[SubBuffer]]:
    groups = [set(choices) & set(op.sub_buffers) for op in graph.ops]
    return [group for group in groups if group]


def peak_floor(graph: Graph, max_states: int = 0) -> int:
    """Return a peak that no plan of `graph` and its bodies can beat.

    Cheap without `max_states`; with them the exact search raises it as far as they reach.
    """
    workspace = [
        op.workspace_bytes + max((peak_floor(b, max_states) for b in op.subgraphs), default=0)
        for op in graph.ops
    ]
    bound = peak_bound_of(graph, workspace)
    for relaxed in relaxations(graph) if max_states else ():
        problem = order_problem(relaxed, workspace)
        bound = max(bound, solve_exact(problem.native, max_states=max_states).lower_bound)
    return bound


def peak_bound_of(graph: Graph, workspace: Sequence[int]) -> int:
    """Return a peak that no order, in-place choice or sub-buffer of `graph` can beat: cheap."""
    problems = (order_problem(relaxed, workspace) for relaxed in relaxations(graph))
    return max(lower_bound(problem.native) for problem in problems)
