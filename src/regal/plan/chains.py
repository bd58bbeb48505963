"""Chains: the buffers of a plan that in-place pairs join into one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.graph.types import Graph
    from regal.plan.types import Allocation, Plan


class Hull(NamedTuple):
    """The steps, both inclusive, and the bytes that some allocations take together."""

    first_step: int
    last_step: int
    bytes: int


def chains_of(graph: Graph, plan: Plan) -> list[list[int]]:
    """Return the planned storages, those joined by in-place pairs in one list."""
    next_of = {graph.tensors[a].storage: graph.tensors[b].storage for a, b in plan.in_place}
    later = set(next_of.values())
    chains = []
    for storage in plan.offsets:
        if storage in later:
            continue
        chain = [storage]
        while chain[-1] in next_of:
            chain.append(next_of[chain[-1]])
        chains.append(chain)
    return chains


def hull_of(parts: Sequence[Allocation]) -> Hull:
    """Return from when to when some allocations live, and the bytes of the largest."""
    return Hull(
        first_step=min(part.first_step for part in parts),
        last_step=max(part.last_step for part in parts),
        bytes=max(part.bytes for part in parts),
    )
