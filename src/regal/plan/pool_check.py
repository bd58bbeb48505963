"""Judge which memory each buffer lies in: in no pool two that live together share a byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from regal._native import OffsetFault, check_offsets
from regal.errors import PlanError
from regal.plan.chains import Hull, chains_of, hull_of
from regal.plan.residents import residents_of

if TYPE_CHECKING:
    from regal._native import OffsetVerdict
    from regal.graph.types import Graph
    from regal.plan.pools import PoolPlan, Slot
    from regal.plan.types import Plan


class _Buffer(NamedTuple):
    name: str
    hull: Hull
    slot: Slot


def require_valid_pools(graph: Graph, plan: Plan, pools: PoolPlan) -> None:
    """Check the slots of a plan whose own steps and sizes are already judged.

    Residents live in every step. What passes the size of a pool is an overflow, not an error.

    Args:
        graph: with the sub-buffers of the plan joined.
        plan: of this graph.
        pools: its slots.

    Raises:
        PlanError: names the buffers, their pool and bytes.

    Cost: pairs of buffers that share a step.
    """
    if not pools.pools or len(pools.used_bytes) != len(pools.pools):
        raise PlanError(f"plan of '{graph.name}' has {len(pools.pools)} pools, expected some")
    buffers = _buffers(graph, plan, pools)
    for buffer in buffers:
        if not 0 <= buffer.slot.pool < len(pools.pools):
            raise PlanError(
                f"{buffer.name} lies in pool {buffer.slot.pool}; there are {len(pools.pools)}"
            )
    for number, used in enumerate(pools.used_bytes):
        mine = [buffer for buffer in buffers if buffer.slot.pool == number]
        rows = np.array([(*b.hull, b.slot.offset) for b in mine], dtype=np.int64).reshape(-1, 4)
        verdict = check_offsets(rows, used, graph.alignment)
        if verdict.fault is not OffsetFault.NONE:
            name = pools.pools[number].name
            raise PlanError(f"pool '{name}': {_say(mine, used, graph.alignment, verdict)}")


def _buffers(graph: Graph, plan: Plan, pools: PoolPlan) -> list[_Buffer]:
    residents = residents_of(graph)
    for what, found, planned in (
        ("storages", sorted(pools.storages), sorted(plan.offsets)),
        ("workspaces", sorted(pools.workspaces), sorted(plan.workspaces)),
        ("residents", list(range(len(pools.residents))), list(range(len(residents)))),
    ):
        if found != planned:
            raise PlanError(
                f"plan of '{graph.name}' has pools for {len(found)} {what}, it has {len(planned)}"
                if len(found) != len(planned)
                else f"plan of '{graph.name}' has pools for other {what} than it has"
            )
    names = {tensor.storage: tensor.name for tensor in reversed(graph.tensors)}
    buffers = []
    for chain in chains_of(graph, plan):
        slots = [pools.storages[storage] for storage in chain]
        name = f"buffer '{names[chain[0]]}'"
        if len(set(slots)) > 1:
            raise PlanError(f"{name} shares bytes in place, but its chain has several slots")
        buffers.append(_Buffer(name, hull_of([plan.offsets[s] for s in chain]), slots[0]))
    for op, slot in pools.workspaces.items():
        name = f"workspace of op '{graph.ops[op].name}'"
        buffers.append(_Buffer(name, hull_of([plan.workspaces[op]]), slot))
    last = max(len(plan.order) - 1, 0)
    for row, slot in zip(residents, pools.residents, strict=True):
        name = f"resident '{names.get(row.storage, 'of a body')}'"
        buffers.append(_Buffer(name, Hull(0, last, row.bytes), slot))
    return buffers


def _say(buffers: list[_Buffer], used: int, alignment: int, verdict: OffsetVerdict) -> str:
    def place(i: int) -> str:
        name, hull, slot = buffers[i]
        return f"{name} at bytes [{slot.offset}, {slot.offset + hull.bytes})"

    a, b = verdict.first, verdict.second
    match verdict.fault:
        case OffsetFault.OVERLAP:
            first = max(buffers[a].hull.first_step, buffers[b].hull.first_step)
            last = min(buffers[a].hull.last_step, buffers[b].hull.last_step)
            return f"{place(a)} overlaps {place(b)} during steps {first}-{last}"
        case OffsetFault.NEGATIVE:
            return f"{place(a)} starts before the pool"
        case OffsetFault.MISALIGNED:
            return f"{place(a)} is not aligned to {alignment} bytes"
        case OffsetFault.PAST_END:
            return f"{place(a)} ends after the {used} bytes that are said to be used"
    return f"{place(a)}: {verdict.fault.name.lower()}"
