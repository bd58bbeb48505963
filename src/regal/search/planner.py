"""Plan one graph: bodies first, then the order, then the offsets. The result is checked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from regal._native import simulate
from regal.graph.memory import counted_storages
from regal.plan.check import planned_workspace, require_valid_plan, steps_of
from regal.plan.problem import order_problem, pair_rows
from regal.plan.types import Allocation, Plan
from regal.search.offsets import allocate, greedy_by_size
from regal.search.portfolio import default_budget

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from regal.graph.types import Graph
    from regal.search.types import Budget, OrderMethod

    Place = Callable[
        [NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int], "Placed"
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Offsets of some buffers, their extent, and a proven lower bound on any extent."""

    offsets: NDArray[np.int64]
    arena_bytes: int
    arena_bound: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedGraph:
    """A plan and what finding it took, bodies included."""

    plan: Plan
    evaluations: int


def plan_graph(
    graph: Graph,
    method: OrderMethod,
    budget: Budget | None,
    seed: int,
    threads: int,
    *,
    never_worse: bool,
) -> PlannedGraph:
    """Return a checked plan of `graph` in the order that `method` finds.

    Args:
        graph: a checked graph; its bodies are planned first, each with the same budget.
        method: finds the order.
        budget: for one graph; None is the default for its size.
        seed: of every random choice.
        threads: changes the speed, never the result.
        never_worse: keep the order of the file where the found one packs worse.

    Raises:
        PlanError: the plan did not pass the checker, which is a defect of regal.
    """
    bodies = {
        i: tuple(
            plan_graph(body, method, budget, seed, threads, never_worse=never_worse)
            for body in op.subgraphs
        )
        for i, op in enumerate(graph.ops)
        if op.subgraphs
    }
    body_plans = {i: tuple(planned.plan for planned in each) for i, each in bodies.items()}
    evaluations = sum(planned.evaluations for each in bodies.values() for planned in each)
    problem = order_problem(graph, planned_workspace(graph, body_plans))
    budget_here = budget or default_budget(len(graph.ops))
    outcome = method(problem.native, budget_here, seed=seed, threads=threads, stop_at=0)
    found = tuple(int(op) for op in outcome.order)
    in_file = tuple(range(len(graph.ops)))
    orders = [found, in_file] if never_worse and found != in_file else [found]
    candidates = [
        plan_of_order(graph, order, body_plans, peak_bound=outcome.lower_bound)
        for order in orders
    ]
    # A lower peak that packs worse than the file's own order is no gain.
    best = min(candidates, key=lambda plan: (plan.arena_bytes, plan.peak_bytes))
    return PlannedGraph(
        plan=require_valid_plan(graph, best), evaluations=evaluations + outcome.evaluations
    )


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
