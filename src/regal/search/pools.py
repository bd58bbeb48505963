"""Place buffers in several memories: the fast one first, what does not fit in the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regal._native import OffsetGreedyRule, place_greedily
from regal.errors import UsageError
from regal.search.offsets import FREE, allocate, native_problem
from regal.units import round_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from regal.search.offsets import Ints

_RULES = (
    OffsetGreedyRule.SIZE,
    OffsetGreedyRule.AREA,
    OffsetGreedyRule.LIFETIME,
    OffsetGreedyRule.TOTAL_WIDTH_AREA,
    OffsetGreedyRule.START,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPlacement:
    """Which memory each buffer got, and where it lies there."""

    pool: NDArray[np.int64]  # (n,) position in the capacities
    offsets: NDArray[np.int64]  # (n,) bytes inside its pool
    arena_bytes: tuple[int, ...]  # per pool
    fits: bool  # False: what is left passes the last capacity; `arena_bytes` says by how much


def place_in_pools(
    first_step: Ints,
    last_step: Ints,
    sizes: Ints,
    *,
    capacities: Sequence[int],
    pinned: Ints | None = None,
    alignment: int = 1,
) -> PoolPlacement:
    """Return a memory and an offset for every buffer.

    The pools are filled one after the other. Everything free is tried in the first; if it does
    not all fit, the greedy rule that keeps the most bytes x steps there decides, and the rest
    goes on to the next pool. Not optimal: what to spill and where it lies are decided apart.

    Args:
        first_step: (n,) first step at which each buffer is live.
        last_step: (n,) last one, included.
        sizes: (n,) bytes.
        capacities: bytes of each pool, the preferred one first.
        pinned: (n,) pool that a buffer must be in, -1 where free.
        alignment: of every offset and size.

    Raises:
        UsageError: no pool is given, or a buffer is pinned to one that does not exist.

    Cost: O(pools n^2).
    """
    first, last = np.asarray(first_step, np.int64), np.asarray(last_step, np.int64)
    size = round_up(np.asarray(sizes, np.int64), alignment)
    pins = np.full(size.size, FREE) if pinned is None else np.asarray(pinned, np.int64)
    if not capacities:
        raise UsageError("pools: no capacity is given; give one per memory")
    wrong = np.flatnonzero((pins < FREE) | (pins >= len(capacities)))
    if wrong.size:
        raise UsageError(
            f"pools: buffer {wrong[0]} is pinned to pool {pins[wrong[0]]}; there are"
            f" {len(capacities)}"
        )
    pool = np.where(size == 0, np.maximum(pins, 0), FREE)
    offsets = np.zeros(size.size, dtype=np.int64)
    arenas: list[int] = []
    for p, capacity in enumerate(capacities):
        is_last = p == len(capacities) - 1
        must = pins == p
        may = (pool == FREE) & ((pins == FREE) | must)
        chosen = np.flatnonzero(may)
        outcome = allocate(
            first[chosen], last[chosen], size[chosen], alignment=alignment,
            capacity=None if is_last else capacity,
        )  # fmt: skip
        placed = outcome.offsets
        if not outcome.is_placed:
            free = np.flatnonzero(may & ~must)
            chosen, placed = _kept(
                first, last, size, np.flatnonzero(must), free, capacity, alignment
            )
        pool[chosen] = p
        offsets[chosen] = placed
        arenas.append(int(max(placed + size[chosen], default=0)))
    fits = all(arena <= capacity for arena, capacity in zip(arenas, capacities, strict=True))
    return PoolPlacement(pool=pool, offsets=offsets, arena_bytes=tuple(arenas), fits=fits)


def _kept(
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    size: NDArray[np.int64],
    must: NDArray[np.int64],
    free: NDArray[np.int64],
    capacity: int,
    alignment: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return what stays in a pool and where: the pinned buffers, and the best greedy choice."""
    base = allocate(first[must], last[must], size[must], alignment=alignment)
    buffers = np.concatenate([must, free])
    fixed = np.concatenate([base.offsets, np.full(free.size, FREE, dtype=np.int64)])
    problem = native_problem(
        first[buffers], last[buffers], size[buffers], alignment=alignment, fixed=fixed
    )
    area = size[buffers] * (last[buffers] - first[buffers] + 1)
    best, most = (must, base.offsets), -1
    for rule in _RULES:
        offsets = place_greedily(problem, rule, capacity=capacity).offsets
        placed = offsets >= 0
        if int(area[placed].sum()) > most:
            best = (buffers[placed], offsets[placed])
            most = int(area[placed].sum())
    return best
