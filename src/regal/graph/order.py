"""Put ops in an order that respects what each needs."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def first_order(
    before: Sequence[Sequence[int]], rank: Sequence[tuple[int, ...]] | None = None
) -> list[int]:
    """Return the legal order that always takes the ready op of the lowest rank.

    Ops that wait for themselves, on a cycle or behind one, are left out.

    Args:
        before: per op, those that must run earlier, each once.
        rank: per op; None: its position. Ties go to the lower position.

    Cost: O((ops + needs) log).
    """
    waits = [len(earlier) for earlier in before]
    later: list[list[int]] = [[] for _ in before]
    for op, earlier in enumerate(before):
        for needed in earlier:
            later[needed].append(op)
    keys = [((rank[op] if rank else ()), op) for op in range(len(before))]
    ready = [keys[op] for op, count in enumerate(waits) if count == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        _, op = heapq.heappop(ready)
        order.append(op)
        for waiting in later[op]:
            waits[waiting] -= 1
            if waits[waiting] == 0:
                heapq.heappush(ready, keys[waiting])
    return order
