"""How much of one graph is in another: the share of ops whose surroundings are the same."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regal.graph.memory import dependencies

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from regal.graph.types import Graph

HOPS = 3  # how far the surroundings of an op reach
DIGEST_BYTES = 8


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is compared of one graph, and which graphs it is comparable with."""

    key: str
    kind: tuple[str, str]  # framework and mode: graphs of other kinds are not compared
    counts: Mapping[bytes, int]  # surroundings -> ops that have them
    ops: int


def surroundings_of(graph: Graph, key: str, kind: tuple[str, str]) -> Surroundings:
    """Return the kinds of the ops up to HOPS edges around each op of `graph`, as hashes.

    Cost: O(HOPS (ops + edges)).
    """
    before: list[list[int]] = [[] for _ in graph.ops]
    after: list[list[int]] = [[] for _ in graph.ops]
    for a, b in dependencies(graph):
        before[b].append(a)
        after[a].append(b)
    known = [_digest([op.kind.encode()]) for op in graph.ops]
    for _ in range(HOPS):
        known = [
            _digest(
                [
                    known[i],
                    *sorted(known[j] for j in before[i]),
                    b"|",
                    *sorted(known[j] for j in after[i]),
                ]
            )
            for i in range(len(known))
        ]
    return Surroundings(key, kind, Counter(known), len(known))


def near_copies(
    held_out: Iterable[Surroundings], training: Iterable[Surroundings], most: float
) -> dict[str, tuple[str, float]]:
    """Return key -> (training graph, similarity) of the held-out graphs too similar to one.

    The similarity of two graphs is the number of ops that they share, as a share of the different
    ops of both: 1 for equal graphs, 0 if none has the same surroundings in the other.

    Args:
        held_out: graphs that must be new.
        training: graphs that training sees.
        most: similarity that is allowed.

    Cost: O(surroundings that two graphs share).
    """
    holders: dict[bytes, list[tuple[int, int]]] = defaultdict(list)
    rows = list(training)
    for number, row in enumerate(rows):
        for what, n in row.counts.items():
            holders[what].append((number, n))
    found = {}
    for graph in held_out:
        shared: Counter[int] = Counter()
        for what, n in graph.counts.items():
            for number, other in holders.get(what, ()):
                shared[number] += min(n, other)
        best, most_similar = 0.0, ""
        for number, n in shared.items():
            row = rows[number]
            share = n / (graph.ops + row.ops - n) if row.kind == graph.kind else 0.0
            if share > best:
                best, most_similar = share, row.key
        if best > most:
            found[graph.key] = (most_similar, best)
    return found


def _digest(parts: list[bytes]) -> bytes:
    return hashlib.blake2b(b"\0".join(parts), digest_size=DIGEST_BYTES).digest()
