"""Valid plans from an obvious planner: any legal order, largest buffer first, lowest gap."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np

from regal._native import simulate
from regal.graph.memory import counted_storages, dependencies, steps_of
from regal.plan.check import require_valid_plan
from regal.plan.problem import order_problem, planned_workspace
from regal.plan.types import Allocation, ModelPlan, Plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.graph.types import Graph, LoadedModel


def model_plan(model: LoadedModel, seed: int | None = None, *, in_place: bool = True) -> ModelPlan:
    """Return a checked plan of all entries; in file order, or in a random one of `seed`."""
    return ModelPlan(
        graph_hash="",
        method="simple",
        seed=seed or 0,
        evaluations=1,
        plans=tuple(graph_plan(g, seed, in_place=in_place) for g in model.entries),
    )


def graph_plan(graph: Graph, seed: int | None = None, *, in_place: bool = True) -> Plan:
    order = list(range(len(graph.ops))) if seed is None else random_order(graph, seed)
    return plan_in_order(graph, order, seed, in_place=in_place)


def plan_in_order(
    graph: Graph, order: list[int], seed: int | None = None, *, in_place: bool = True
) -> Plan:
    bodies = {
        i: tuple(graph_plan(body, seed, in_place=in_place) for body in op.subgraphs)
        for i, op in enumerate(graph.ops)
        if op.subgraphs
    }
    problem = order_problem(graph, planned_workspace(graph, bodies), in_place=in_place)
    simulation = simulate(problem.native, np.array(order, dtype=np.int64))
    rows = np.array(simulation.in_place).reshape(-1, 3)
    pairs = tuple(problem.tensors_of_pair[int(op), int(a), int(b)] for op, a, b in rows)
    steps, sizes = steps_of(graph, order), counted_storages(graph)
    source = {graph.tensors[b].storage: graph.tensors[a].storage for a, b in pairs}
    chains: dict[int, list[int]] = {}
    for storage in steps:
        root = storage
        while root in source:
            root = source[root]
        chains.setdefault(root, []).append(storage)
    step_of = {op: step for step, op in enumerate(order)}
    blocks = {
        i: op.workspace_bytes + max((b.arena_bytes for b in bodies.get(i, ())), default=0)
        for i, op in enumerate(graph.ops)
    }
    rectangles = {
        ("chain", root): (
            min(steps[s][0] for s in chain),
            max(steps[s][1] for s in chain),
            max(sizes[s] for s in chain),
        )
        for root, chain in chains.items()
    }
    for i, size in blocks.items():
        if size:
            rectangles["block", i] = (step_of[i], step_of[i], size)
    places = first_fit(rectangles, graph.alignment)
    offsets = {
        s: Allocation(
            offset=places["chain", root],
            bytes=sizes[s],
            first_step=steps[s][0],
            last_step=steps[s][1],
        )
        for root, chain in chains.items()
        for s in chain
    }
    workspaces = {
        i: Allocation(
            offset=places["block", i], bytes=size, first_step=step_of[i], last_step=step_of[i]
        )
        for i, size in blocks.items()
        if size
    }
    arena = max(
        (up(places[key] + rectangles[key][2], graph.alignment) for key in rectangles), default=0
    )
    plan = Plan(
        order=tuple(order),
        in_place=pairs,
        offsets=offsets,
        peak_bytes=simulation.peak_bytes,
        arena_bytes=arena,
        peak_bound=0,
        arena_bound=0,
        workspaces=workspaces,
        bodies=bodies,
    )
    return require_valid_plan(graph, plan)


def first_fit(
    rectangles: Mapping[tuple[str, int], tuple[int, int, int]], alignment: int
) -> dict[tuple[str, int], int]:
    """Return an offset for each (first step, last step, bytes): the greedy rule of TFLM."""
    placed: dict[tuple[str, int], int] = {}
    for key in sorted(rectangles, key=lambda k: (-rectangles[k][2], k)):
        first, last, size = rectangles[key]
        offset = 0
        busy = sorted(
            (placed[other], placed[other] + up(rectangles[other][2], alignment))
            for other in placed
            if rectangles[other][0] <= last and first <= rectangles[other][1]
        )
        for start, end in busy:
            if start - offset >= up(size, alignment):
                break
            offset = max(offset, end)
        placed[key] = offset
    return placed


def random_order(graph: Graph, seed: int) -> list[int]:
    """Return a random order in which every op follows what it depends on."""
    chance = random.Random(seed)
    waits: dict[int, set[int]] = {i: set() for i in range(len(graph.ops))}
    for earlier, later in dependencies(graph):
        waits[later].add(earlier)
    order: list[int] = []
    while waits:
        ready = sorted(i for i, before in waits.items() if not before)
        chosen = chance.choice(ready)
        order.append(chosen)
        del waits[chosen]
        for before in waits.values():
            before.discard(chosen)
    return order


def up(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment
