"""An order in which nodes can run, as close to the file's as possible."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from regal.errors import ModelError
from regal.frontends.tensorflow.kinds import MERGE, NEXT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from regal.frontends.tensorflow.flat import Flat


def stable_order(count: int, edges: Iterable[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Return (the order, what is left over) of `count` things under `edges`.

    An edge is (earlier, later). Of all that can come next, the lowest number does: where the
    numbers are a legal order already, it is kept. Left over is all that waits for a cycle.
    """
    later: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for a, b in edges:
        later[a].append(b)
        waiting[b] += 1
    ready = [i for i in range(count) if not waiting[i]]
    order = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        for j in later[i]:
            waiting[j] -= 1
            if not waiting[j]:
                heapq.heappush(ready, j)
    return order, [i for i in range(count) if waiting[i]]


def is_back_edge(flat: Flat, producer: int, reader: int) -> bool:
    """Return whether an edge leads from the end of a loop's body to its beginning."""
    return flat.nodes[producer].kind in NEXT and flat.nodes[reader].kind in MERGE


def node_order(flat: Flat) -> list[int]:
    """Return the nodes of `flat`, producers first but for the ends of loops.

    Raises:
        ModelError: there is a cycle without a loop.
    """
    edges = [
        (producer, reader)
        for reader, node in enumerate(flat.nodes)
        for producer, _ in node.inputs
        if not is_back_edge(flat, producer, reader)
    ]
    edges += [(earlier, i) for i, node in enumerate(flat.nodes) for earlier in node.controls]
    order, left = stable_order(len(flat.nodes), edges)
    if left:
        cycle = cycles(len(flat.nodes), edges, left)[0]
        first, second = flat.nodes[cycle[0]], flat.nodes[cycle[-1]]
        raise ModelError(
            f"node '{first.name}' ({first.kind}) waits for itself, through"
            f" '{second.name}' ({second.kind}): a cycle of {len(cycle)} nodes"
        )
    return order


def cycles(count: int, edges: Sequence[tuple[int, int]], among: Sequence[int]) -> list[list[int]]:
    """Return the sets of things among `among` that all wait for each other, each sorted.

    Source: Tarjan 1972 (strongly connected components), without recursion.
    """
    members = set(among)
    later: list[list[int]] = [[] for _ in range(count)]
    loops = set()
    for a, b in edges:
        if a in members and b in members:
            later[a].append(b)
            if a == b:
                loops.add(a)
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    on_path: set[int] = set()
    path: list[int] = []
    found: list[list[int]] = []
    for start in among:
        if start in index:
            continue
        work = [(start, iter(later[start]))]
        index[start] = low[start] = len(index)
        path.append(start)
        on_path.add(start)
        while work:
            node, rest = work[-1]
            step = next(rest, None)
            if step is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = []
                    while True:
                        member = path.pop()
                        on_path.discard(member)
                        part.append(member)
                        if member == node:
                            break
                    if len(part) > 1 or node in loops:
                        found.append(sorted(part))
            elif step not in index:
                index[step] = low[step] = len(index)
                path.append(step)
                on_path.add(step)
                work.append((step, iter(later[step])))
            elif step in on_path:
                low[node] = min(low[node], index[step])
    return sorted(found)
