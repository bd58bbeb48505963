"""Residents: parameters, constants and state, which lie on every device that uses them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from regal.graph.types import ABSENT, Role

if TYPE_CHECKING:
    from regal.graph.types import Graph

IN_A_BODY = -1
RESIDENT_ROLES = frozenset({Role.PARAMETER, Role.CONSTANT, Role.STATE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """One storage that its users need on their devices all the time."""

    storage: int  # of the graph, or IN_A_BODY
    bytes: int
    users: tuple[int, ...]  # ops, ascending


def residents_of(graph: Graph) -> list[Resident]:
    """Return the residents of `graph`: its own by storage, then those of bodies by op.

    What a body holds itself is needed where the op that owns the body runs. What a body captures
    is an input of that op.
    """
    sizes: dict[int, int] = {}
    resident: set[int] = set()
    for tensor in graph.tensors:
        end = tensor.storage_offset + tensor.bytes
        sizes[tensor.storage] = max(sizes.get(tensor.storage, 0), end)
        if tensor.role in RESIDENT_ROLES:
            resident.add(tensor.storage)
    users: dict[int, list[int]] = {}
    for i, op in enumerate(graph.ops):
        used = {graph.tensors[t].storage for t in (*op.inputs, *op.outputs) if t != ABSENT}
        for storage in used & resident:
            users.setdefault(storage, []).append(i)
    rows = [
        Resident(storage=storage, bytes=sizes[storage], users=tuple(users[storage]))
        for storage in sorted(users)
        if sizes[storage] > 0
    ]
    for i, op in enumerate(graph.ops):
        rows += [
            Resident(storage=IN_A_BODY, bytes=size, users=(i,))
            for body in op.subgraphs
            for size in _body_residents(body)
        ]
    return rows


def _body_residents(body: Graph) -> list[int]:
    """Return the bytes of each resident storage of a body and of the bodies inside it."""
    sizes: dict[int, int] = {}
    for tensor in body.tensors:
        if tensor.role in RESIDENT_ROLES and tensor.bytes > 0:
            end = tensor.storage_offset + tensor.bytes
            sizes[tensor.storage] = max(sizes.get(tensor.storage, 0), end)
    inner = [size for op in body.ops for b in op.subgraphs for size in _body_residents(b)]
    return [sizes[storage] for storage in sorted(sizes)] + inner
