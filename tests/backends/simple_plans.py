"""Valid plans from an obvious planner: any legal order, largest buffer first, lowest gap."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from regal.graph.memory import dependencies
from regal.plan.check import require_valid_plan
from regal.plan.types import ModelPlan, Plan
from regal.search.offsets import greedy_by_size
from regal.search.packing import plan_of_order

if TYPE_CHECKING:
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
    plan = plan_of_order(
        graph, tuple(order), bodies, peak_bound=0, place=greedy_by_size, in_place=in_place
    )
    return require_valid_plan(graph, plan)


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
