"""Plan one graph: bodies first, then the order, then the offsets. The result is checked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from regal._native import simulate
from regal.graph.memory import counted_storages
from regal.plan.check import planned_workspace, require_valid_plan, steps_of
from regal.plan.problem import order_problem, pair_rows
from regal.plan.sub_buffers import compatible, embedded, relaxations, sub_buffer_choices
from regal.plan.types import Allocation, Plan
from regal.search.exact import lower_bound
from regal.search.offsets import allocate, greedy_by_size
from regal.search.portfolio import default_evaluations, exact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from regal.graph.types import Graph, SubBuffer
    from regal.search.meter import Meter
    from regal.search.types import OrderMethod

    Place = Callable[
        [NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int], "Placed"
    ]


# Where choosing sub-buffers op by op pays: each try is a search of its own.
MOST_TOGGLE_STEPS = 5_000  # ops with a choice * ops


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Offsets of some buffers, their extent, and a proven lower bound on any extent."""

    offsets: NDArray[np.int64]
    arena_bytes: int
    arena_bound: int


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


def plan_model(entries: Sequence[Graph], search: Search) -> tuple[Plan, ...]:
    """Return one checked plan per entry; the main entry, `entries[0]`, may spend what is left.

    Raises:
        PlanError: a plan did not pass the checker, which is a defect of regal.
    """
    others = [plan_graph(graph, search, is_last=False) for graph in entries[1:]]
    return (plan_graph(entries[0], search, is_last=True), *others)


def plan_graph(graph: Graph, search: Search, *, is_last: bool) -> Plan:
    """Return a checked plan of `graph`; bodies are planned first.

    Args:
        graph: a checked graph.
        search: the method and the budget.
        is_last: no other search follows: spend what the meter has left.

    Raises:
        PlanError: the plan did not pass the checker, which is a defect of regal.
    """
    bodies = {
        i: tuple(plan_graph(body, search, is_last=False) for body in op.subgraphs)
        for i, op in enumerate(graph.ops)
        if op.subgraphs
    }
    choices = sub_buffer_choices(graph)
    if not choices:
        plan = _plan_variant(graph, (), bodies, search, is_last=is_last)
    elif not search.decides_all:
        plan = _plan_variant(graph, (), bodies, search, is_last=is_last)
        bound = peak_bound_of(graph, planned_workspace(graph, bodies))
        plan = replace(plan, peak_bound=min(plan.peak_bound, bound))
    else:
        plan = _plan_with_choices(graph, choices, bodies, search, is_last=is_last)
    return require_valid_plan(graph, plan)


def _plan_with_choices(
    graph: Graph,
    choices: tuple[SubBuffer, ...],
    bodies: Mapping[int, tuple[Plan, ...]],
    search: Search,
    *,
    is_last: bool,
) -> Plan:
    """Return the best plan over some sets of sub-buffers: all, none, then op by op."""
    tried: dict[frozenset[SubBuffer], Plan] = {}

    def plan_of(wanted: Iterable[SubBuffer], is_last: bool = False) -> Plan:
        chosen = compatible(graph, wanted)
        key = frozenset(chosen)
        if key not in tried or is_last:
            plan = _plan_variant(graph, chosen, bodies, search, is_last=is_last)
            tried[key] = min(tried.get(key, plan), plan, key=_cost)
        return tried[key]

    best = min(plan_of(choices), plan_of(()), key=_cost)
    bound = _bound_of_all_choices(graph, bodies, search)
    groups = _choices_by_op(graph, choices)
    if len(groups) * len(graph.ops) <= MOST_TOGGLE_STEPS:
        for group in groups:
            if best.peak_bytes <= bound and best.arena_bytes <= best.arena_bound:
                break
            taken = set(best.sub_buffers)
            toggled = taken - group if taken & group else taken | group
            best = min(best, plan_of(c for c in choices if c in toggled), key=_cost)
    if is_last and search.meter.is_limited and best.peak_bytes > bound:
        best = min(best, plan_of(best.sub_buffers, is_last=True), key=_cost)
    # The bound of a variant says nothing about the others.
    return replace(best, peak_bound=min(bound, best.peak_bytes))


def _plan_variant(
    graph: Graph,
    chosen: tuple[SubBuffer, ...],
    bodies: Mapping[int, tuple[Plan, ...]],
    search: Search,
    *,
    is_last: bool,
) -> Plan:
    """Return the plan that the method finds with these sub-buffers."""
    joined = embedded(graph, chosen)
    problem = order_problem(joined, planned_workspace(graph, bodies))
    n_ops = len(graph.ops)
    uncapped = is_last and search.meter.is_limited
    budget = search.meter.budget(None if uncapped else default_evaluations(n_ops))
    in_file = tuple(range(n_ops))
    if budget is None:
        orders, bound = [in_file], lower_bound(problem.native)
    else:
        outcome = search.method(
            problem.native, budget, seed=search.seed, threads=search.threads, stop_at=0
        )
        search.meter.charge(outcome)
        found = tuple(int(op) for op in outcome.order)
        orders, bound = [found], outcome.lower_bound
        if search.decides_all and found != in_file:
            orders.append(in_file)
    plans = [plan_of_order(joined, order, bodies, peak_bound=bound) for order in orders]
    # A lower peak that packs worse than the file's own order is no gain.
    return replace(min(plans, key=_cost), sub_buffers=chosen)


def _bound_of_all_choices(
    graph: Graph, bodies: Mapping[int, tuple[Plan, ...]], search: Search
) -> int:
    """Return a lower bound on the peak that holds whatever sub-buffers a plan takes."""
    workspace = planned_workspace(graph, bodies)
    bound = peak_bound_of(graph, workspace)
    for relaxed in relaxations(graph):
        budget = search.meter.budget(default_evaluations(len(graph.ops)))
        if budget is None:
            break
        problem = order_problem(relaxed, workspace)
        outcome = exact(
            problem.native, budget, seed=search.seed, threads=search.threads, stop_at=0
        )
        search.meter.charge(outcome)
        bound = max(bound, outcome.lower_bound)
    return bound


def _choices_by_op(graph: Graph, choices: tuple[SubBuffer, ...]) -> list[set[SubBuffer]]:
    groups = [set(choices) & set(op.sub_buffers) for op in graph.ops]
    return [group for group in groups if group]


def _cost(plan: Plan) -> tuple[int, int]:
    return plan.arena_bytes, plan.peak_bytes


def peak_bound_of(graph: Graph, workspace: Sequence[int]) -> int:
    """Return a peak that no order, in-place choice or sub-buffer of `graph` can beat: cheap."""
    problems = (order_problem(relaxed, workspace) for relaxed in relaxations(graph))
    return max(lower_bound(problem.native) for problem in problems)


def before_plan(graph: Graph, order: Sequence[int] | None = None) -> Plan:
    """Return what the runtime does with the graph as it is.

    The order is the file's (or `order`, where the runtime has its own), in place only where
    the runtime itself does it, offsets by the greedy-by-size rule that TFLM and LiteRT use.
    """
    bodies = {
        i: tuple(before_plan(body) for body in op.subgraphs)
        for i, op in enumerate(graph.ops)
        if op.subgraphs
    }
    plan = plan_of_order(
        graph,
        tuple(order) if order is not None else tuple(range(len(graph.ops))),
        bodies,
        peak_bound=0,
        place=_place_greedily,
        in_place=graph.in_place_by_runtime,
    )
    return require_valid_plan(graph, plan)


def plan_of_order(
    graph: Graph,
    order: tuple[int, ...],
    bodies: Mapping[int, tuple[Plan, ...]],
    *,
    peak_bound: int,
    place: Place | None = None,
    in_place: bool = True,
) -> Plan:
    """Return the plan that runs `order`, with in-place choices and offsets added.

    In-place pairs never raise the peak of an order, but joined buffers can be harder to pack;
    where the arena stays above its bound, the pairs that the peak does not need are given up.
    """
    problem = order_problem(graph, planned_workspace(graph, bodies), in_place=in_place)
    simulation = simulate(problem.native, np.array(order, dtype=np.int64))
    pairs = tuple(problem.tensors_of_pair[row] for row in pair_rows(simulation.in_place))
    plan = Plan(
        order=order,
        in_place=pairs,
        offsets={},
        peak_bytes=simulation.peak_bytes,
        arena_bytes=0,
        peak_bound=min(peak_bound, simulation.peak_bytes),
        arena_bound=0,
        bodies=bodies,
    )
    planned = with_offsets(graph, plan, place or _place_well)
    if planned.arena_bytes == planned.arena_bound or not pairs or place is not None:
        return planned
    needed = _needed_pairs(graph, plan, simulation.bytes_at_step)
    loose = with_offsets(graph, replace(plan, in_place=needed), _place_well)
    return min(planned, loose, key=lambda p: p.arena_bytes)


def with_offsets(graph: Graph, plan: Plan, place: Place) -> Plan:
    """Return `plan` with an offset for every buffer and every block of workspace."""
    steps = steps_of(graph, plan.order)
    sizes = counted_storages(graph)
    group_of = _groups(graph, plan, steps)
    groups: dict[int, list[int]] = {}
    for storage in steps:
        groups.setdefault(group_of[storage], []).append(storage)
    blocks = _block_sizes(graph, plan.bodies)
    step_of = {op: step for step, op in enumerate(plan.order)}

    rows = [
        (
            min(steps[s][0] for s in members),
            max(steps[s][1] for s in members),
            max(sizes[s] for s in members),
        )
        for members in groups.values()
    ]
    rows += [(step_of[i], step_of[i], size) for i, size in blocks.items()]
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    first, last, size = (np.ascontiguousarray(column) for column in table.T)
    placed = place(first, last, size, graph.alignment)
    at = [int(offset) for offset in placed.offsets]
    offsets = {
        s: Allocation(
            offset=offset, bytes=sizes[s], first_step=steps[s][0], last_step=steps[s][1]
        )
        for members, offset in zip(groups.values(), at[: len(groups)], strict=True)
        for s in members
    }
    workspaces = {
        i: Allocation(
            offset=offset, bytes=size, first_step=step_of[i], last_step=step_of[i]
        )
        for (i, size), offset in zip(blocks.items(), at[len(groups) :], strict=True)
    }
    return replace(
        plan,
        offsets=offsets,
        workspaces=workspaces,
        arena_bytes=placed.arena_bytes,
        arena_bound=placed.arena_bound,
    )


def _block_sizes(graph: Graph, bodies: Mapping[int, tuple[Plan, ...]]) -> dict[int, int]:
    sizes = {
        i: op.workspace_bytes
        + max((body.arena_bytes for body in bodies.get(i, ())), default=0)
        for i, op in enumerate(graph.ops)
    }
    return {i: size for i, size in sizes.items() if size > 0}


def _groups(
    graph: Graph, plan: Plan, storages: Mapping[int, tuple[int, int]]
) -> dict[int, int]:
    """Return storage -> first storage of its in-place chain."""
    source_of = {
        graph.tensors[b].storage: graph.tensors[a].storage for a, b in plan.in_place
    }
    group_of = {}
    for storage in storages:
        root = storage
        while root in source_of:
            root = source_of[root]
        group_of[storage] = root
    return group_of


def _needed_pairs(
    graph: Graph, plan: Plan, bytes_at_step: NDArray[np.int64]
) -> tuple[tuple[int, int], ...]:
    """Return the in-place pairs without which the peak of the plan would rise."""
    writer = {t: i for i, op in enumerate(graph.ops) for t in op.outputs}
    step_of = {op: step for step, op in enumerate(plan.order)}
    return tuple(
        (a, b)
        for a, b in plan.in_place
        if bytes_at_step[step_of[writer[b]]] + graph.tensors[a].bytes > plan.peak_bytes
    )


def _place_well(
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    size: NDArray[np.int64],
    alignment: int,
) -> Placed:
    outcome = allocate(first, last, size, alignment=alignment)
    return Placed(
        offsets=outcome.offsets,
        arena_bytes=outcome.arena_bytes,
        arena_bound=outcome.lower_bound,
    )


def _place_greedily(
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    size: NDArray[np.int64],
    alignment: int,
) -> Placed:
    outcome = greedy_by_size(first, last, size, alignment=alignment)
    return Placed(
        offsets=outcome.offsets,
        arena_bytes=outcome.arena_bytes,
        arena_bound=outcome.lower_bound,
    )
