"""When are two graphs the same? Their structure: kinds and edges, without sizes."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from regal.graph.memory import dependencies

if TYPE_CHECKING:
    from collections.abc import Iterable

    from regal.graph.types import Graph


def structure_hash(graph: Graph) -> str:
    """Return a hash of the kinds of the ops and the edges between them, bodies included.

    Sizes, names and the order of the ops in the file do not change it: an op is known by what
    it computes from what, and then by who reads it; the graph by the multiset of its ops. Two
    graphs that differ in width or resolution alone are equal.

    Cost: O(ops + edges).
    """
    earlier: list[list[int]] = [[] for _ in graph.ops]
    later: list[list[int]] = [[] for _ in graph.ops]
    for before, after in dependencies(graph):
        earlier[after].append(before)
        later[before].append(after)
    made: list[bytes] = []  # what an op computes
    for i, op in enumerate(graph.ops):
        own = [op.kind.encode(), *(structure_hash(body).encode() for body in op.subgraphs)]
        made.append(_digest(own, (made[j] for j in earlier[i])))
    known = list(made)  # and what becomes of it
    for i in reversed(range(len(graph.ops))):
        known[i] = _digest([made[i]], (known[j] for j in later[i]))
    return hashlib.sha256(b"".join(sorted(known))).hexdigest()[:32]


def _digest(own: list[bytes], others: Iterable[bytes]) -> bytes:
    return hashlib.sha256(b"\0".join([*own, *sorted(others)])).digest()
