"""Give every buffer of a finished plan one of several memories: SRAM first, then DRAM."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from regal.plan.chains import Hull, chains_of, hull_of
from regal.plan.check import require_valid_plan
from regal.plan.pools import PoolPlan, Slot
from regal.plan.residents import residents_of
from regal.plan.sub_buffers import embedded
from regal.search.pools import place_in_pools
from regal.units import round_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.devices.types import Pool
    from regal.graph.types import Graph
    from regal.plan.types import ModelPlan, Plan


def with_pools(
    graphs: Sequence[Graph], plan: ModelPlan, pools: Sequence[Pool], *, in_one: bool = False
) -> ModelPlan:
    """Return `plan` with a pool and an offset there for every buffer; checked.

    Activations and workspaces come first: what the fastest pool cannot hold goes on to the next
    (`place_in_pools`). Parameters and state take what is left there, those that most ops read
    first. Entries of a model run one at a time and are placed apart.

    Args:
        graphs: the entries of the model.
        plan: of these.
        pools: at least one, fastest first.
        in_one: a runtime with a single arena: it lies whole in the first pool that holds it.

    Cost: O(pools n^2) for n buffers.
    """
    place = _in_one_arena if in_one else _spread
    plans = tuple(
        require_valid_plan(graph, replace(entry, pools=place(graph, entry, tuple(pools))))
        for graph, entry in zip(graphs, plan.plans, strict=True)
    )
    return replace(plan, plans=plans)


def _spread(graph: Graph, plan: Plan, pools: tuple[Pool, ...]) -> PoolPlan:
    graph = embedded(graph, plan.sub_buffers)
    chains = chains_of(graph, plan)
    hulls = [hull_of([plan.offsets[storage] for storage in chain]) for chain in chains]
    hulls += [hull_of([block]) for block in plan.workspaces.values()]
    first, last, sizes = _columns(hulls)
    placed = place_in_pools(
        first, last, sizes, capacities=[pool.bytes for pool in pools], alignment=graph.alignment
    )
    slots = [
        Slot(int(pool), int(offset))
        for pool, offset in zip(placed.pool, placed.offsets, strict=True)
    ]
    return _with_residents(
        graph,
        PoolPlan(
            pools=pools,
            storages={s: slots[k] for k, chain in enumerate(chains) for s in chain},
            workspaces=dict(zip(plan.workspaces, slots[len(chains) :], strict=True)),
            residents=(),
            used_bytes=placed.arena_bytes,
        ),
    )


def _in_one_arena(graph: Graph, plan: Plan, pools: tuple[Pool, ...]) -> PoolPlan:
    graph = embedded(graph, plan.sub_buffers)
    holds = (i for i, pool in enumerate(pools) if plan.arena_bytes <= pool.bytes)
    pool = next(holds, len(pools) - 1)
    return _with_residents(
        graph,
        PoolPlan(
            pools=pools,
            storages={s: Slot(pool, placed.offset) for s, placed in plan.offsets.items()},
            workspaces={i: Slot(pool, block.offset) for i, block in plan.workspaces.items()},
            residents=(),
            used_bytes=tuple(plan.arena_bytes if i == pool else 0 for i in range(len(pools))),
        ),
    )


def _with_residents(graph: Graph, plan: PoolPlan) -> PoolPlan:
    """Return `plan` with the residents on top of what else lies in each pool."""
    rows = residents_of(graph)
    used = [round_up(bytes_, graph.alignment) for bytes_ in plan.used_bytes]
    last = len(plan.pools) - 1
    slots: dict[int, Slot] = {}
    for i in sorted(range(len(rows)), key=lambda i: (-len(rows[i].users), i)):
        size = round_up(rows[i].bytes, graph.alignment)
        room = (k for k, pool in enumerate(plan.pools) if used[k] + size <= pool.bytes)
        pool = next(room, last)
        slots[i] = Slot(pool, used[pool])
        used[pool] += size
    return replace(
        plan, residents=tuple(slots[i] for i in range(len(rows))), used_bytes=tuple(used)
    )


def _columns(hulls: Sequence[Hull]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    table = np.array(hulls, dtype=np.int64).reshape(-1, 3)
    first, last, sizes = (np.ascontiguousarray(column) for column in table.T)
    return first, last, sizes
