"""A plan: every decision about how one graph is executed, with the numbers it reaches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.graph.types import SubBuffer
    from regal.plan.pools import PoolPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Where one storage lies. Steps are positions in the plan's order, both inclusive."""

    offset: int
    bytes: int
    first_step: int
    last_step: int
    device: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan of one graph on one device.

    `order` is a permutation of the ops. `in_place` holds (input tensor, output tensor)
    pairs that share bytes; together they count once. `sub_buffers` are the choices of the
    graph that were taken: the inner tensor is part of the outer one's storage, and has no
    storage of its own any more (see `regal.plan.sub_buffers`). `offsets` has one entry per counted
    storage (see `Graph`); the two storages of an in-place pair have the same offset.
    `bodies[i]` are the plans of `graph.ops[i].subgraphs`, in the same sequence. Sibling
    bodies share one block: `workspaces[i]`, which lives for the step of its op; offsets
    inside a body count from the start of that block. Ops that need scratch memory have a
    block too. `pools` says where all that lies on a device with several memories.
    """

    order: tuple[int, ...]
    in_place: tuple[tuple[int, int], ...]
    sub_buffers: tuple[SubBuffer, ...] = ()
    offsets: Mapping[int, Allocation]
    peak_bytes: int  # max over steps of live bytes + workspace
    arena_bytes: int  # extent of the offsets after alignment
    peak_bound: int  # proven: no plan of this graph has a lower peak
    arena_bound: int  # proven: no offsets for this order and in-place choice end lower
    workspaces: Mapping[int, Allocation] = field(default_factory=dict)
    bodies: Mapping[int, tuple[Plan, ...]] = field(default_factory=dict)
    pools: PoolPlan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlan:
    """The plans of all entries of a model, and how they were found.

    One entry runs at a time, so the figures of the model are the largest of its entries.
    """

    graph_hash: str
    method: str
    seed: int
    evaluations: int
    plans: tuple[Plan, ...]  # one per entry of the model

    @property
    def peak_bytes(self) -> int:
        """Return the peak of the model."""
        return max(plan.peak_bytes for plan in self.plans)

    @property
    def arena_bytes(self) -> int:
        """Return the arena of the model."""
        return max(plan.arena_bytes for plan in self.plans)

    @property
    def peak_bound(self) -> int:
        """Return a peak that no plan of the model can beat: proven."""
        return max(plan.peak_bound for plan in self.plans)

    @property
    def arena_bound(self) -> int:
        """Return an arena that no offsets can beat, the order as it is: proven."""
        return max(plan.arena_bound for plan in self.plans)

    @property
    def pool_bytes(self) -> tuple[int, ...]:
        """Return what is used of each pool, in the worst entry; () without pools."""
        used = [plan.pools.used_bytes for plan in self.plans if plan.pools is not None]
        return tuple(map(max, zip(*used, strict=True)))

    @property
    def pool_overflow_bytes(self) -> int:
        """Return what passes the pools, in the worst entry."""
        pools = [plan.pools for plan in self.plans if plan.pools is not None]
        return max((pool.overflow_bytes for pool in pools), default=0)
