"""When are two graphs the same? Their structure: kinds and edges, without sizes."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from regal.graph.memory import dependencies

if TYPE_CHECKING:
    from regal.graph.types import Graph


def structure_hash(graph: Graph) -> str:
    """Return a hash of the kinds of the ops and the edges between them, bodies included.

    Sizes, names and the order of the ops in the file do not change it: an op is known by what
    it computes from what (a hash over its kind and its inputs), the graph by the multiset of
    its ops. Two graphs that differ in width or resolution alone are equal.

    Cost: O(ops + edges).
    """
    earlier: list[list[int]] = [[] for _ in graph.ops]
    for before, after in dependencies(graph):
        earlier[after].append(before)
    known: list[bytes] = []
    for i, op in enumerate(graph.ops):
        parts = [op.kind.encode(), *sorted(known[j] for j in earlier[i])]
        parts += [structure_hash(body).encode() for body in op.subgraphs]
        known.append(hashlib.sha256(b"\0".join(parts)).digest())
    return hashlib.sha256(b"".join(sorted(known))).hexdigest()[:32]
