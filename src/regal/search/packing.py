"""From an order to a whole plan: in-place pairs follow from it, and every buffer gets an offset."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from regal._native import simulate
from regal.graph.memory import counted_storages, steps_of
from regal.plan.check import require_valid_plan
from regal.plan.problem import order_problem, pair_rows, planned_workspace
from regal.plan.types import Allocation, Plan
from regal.search.offsets import allocate, greedy_by_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from regal.graph.types import Graph
    from regal.search.offsets import AllocationOutcome, Ints


class Place(Protocol):
    """A way to give offsets to buffers: `allocate`, or the rule of a runtime."""

    def __call__(
        self, first_step: Ints, last_step: Ints, sizes: Ints, *, alignment: int
    ) -> AllocationOutcome:
        """Return an offset for every buffer; steps are inclusive."""
        ...


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
        place=greedy_by_size,
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
    planned = with_offsets(graph, plan, place or allocate)
    if planned.arena_bytes == planned.arena_bound or not pairs or place is not None:
        return planned
    needed = _needed_pairs(graph, plan, simulation.bytes_at_step)
    loose = with_offsets(graph, replace(plan, in_place=needed), allocate)
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
    placed = place(first, last, size, alignment=graph.alignment)
    arena_bound = placed.lower_bound
    least = _block_sizes(graph, plan.bodies, are_least=True)
    if least != blocks:
        # A body could be packed better than it was: its block is not the least one.
        size[len(groups) :] = [least.get(i, 0) for i in blocks]
        used = size > 0
        floor = greedy_by_size(first[used], last[used], size[used], alignment=graph.alignment)
        arena_bound = min(arena_bound, floor.lower_bound)
    at = [int(offset) for offset in placed.offsets]
    offsets = {
        s: Allocation(offset=offset, bytes=sizes[s], first_step=steps[s][0], last_step=steps[s][1])
        for members, offset in zip(groups.values(), at[: len(groups)], strict=True)
        for s in members
    }
    workspaces = {
        i: Allocation(offset=offset, bytes=size, first_step=step_of[i], last_step=step_of[i])
        for (i, size), offset in zip(blocks.items(), at[len(groups) :], strict=True)
    }
    return replace(
        plan,
        offsets=offsets,
        workspaces=workspaces,
        arena_bytes=placed.arena_bytes,
        arena_bound=arena_bound,
    )


def _block_sizes(
    graph: Graph, bodies: Mapping[int, tuple[Plan, ...]], *, are_least: bool = False
) -> dict[int, int]:
    """Return op -> bytes of its block, as planned or as small as the bodies' bounds allow."""
    sizes = {
        i: op.workspace_bytes
        + max(
            (body.arena_bound if are_least else body.arena_bytes for body in bodies.get(i, ())),
            default=0,
        )
        for i, op in enumerate(graph.ops)
    }
    return {i: size for i, size in sizes.items() if size > 0}


def _groups(graph: Graph, plan: Plan, storages: Mapping[int, tuple[int, int]]) -> dict[int, int]:
    """Return storage -> first storage of its in-place chain."""
    source_of = {graph.tensors[b].storage: graph.tensors[a].storage for a, b in plan.in_place}
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
