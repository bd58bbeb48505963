"""Sub-buffers: parts of a concatenation and slices that need no memory of their own.

If the kernel of an op survives it, an input of a concatenation can be written straight into its
place in the output, and a slice can be read where it lies in its source. That joins two storages:
the inner one becomes part of the outer one, which is then live as long as any of its parts. It
saves the copy, and can cost memory when a small part keeps a large whole alive: a decision.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from regal.errors import PlanError
from regal.graph.memory import counted_storages

if TYPE_CHECKING:
    from collections.abc import Iterable

    from regal.graph.types import Graph, SubBuffer


def sub_buffer_choices(graph: Graph) -> tuple[SubBuffer, ...]:
    """Return the choices that the ops of `graph` offer and that its storages allow, in op order.

    The inner tensor must fill its storage, both storages must count, and the place must be
    aligned. One tensor may have several choices; a plan takes at most one of them.
    """
    sizes = counted_storages(graph)
    choices = []
    for op in graph.ops:
        for inner, outer, offset in op.sub_buffers:
            a, b = graph.tensors[inner], graph.tensors[outer]
            place = b.storage_offset + offset
            fills = a.storage_offset == 0 and a.bytes == sizes.get(a.storage)
            joins = b.storage in sizes and a.storage != b.storage
            if fills and joins and place % graph.alignment == 0:
                choices.append((inner, outer, offset))
    return tuple(choices)


def embedded(graph: Graph, chosen: Iterable[SubBuffer]) -> Graph:
    """Return `graph` with the storages of the inner tensors moved into those of the outer ones.

    Raises:
        PlanError: a choice that the graph does not offer, a tensor placed twice, or a circle.
    """
    chosen = tuple(chosen)
    if not chosen:
        return graph
    offered = set(sub_buffer_choices(graph))
    parent: dict[int, _Place] = {}
    for choice in chosen:
        inner, outer, offset = choice
        if choice not in offered:
            raise PlanError(f"plan places {_text(graph, choice)}; no op of the graph allows that")
        a, b = graph.tensors[inner], graph.tensors[outer]
        if a.storage in parent:
            raise PlanError(f"plan places {_text(graph, choice)}, but places it elsewhere too")
        parent[a.storage] = _Place(storage=b.storage, offset=b.storage_offset + offset)
        if _root(a.storage, parent) is None:
            raise PlanError(f"plan places {_text(graph, choice)}, which lies inside itself")
    tensors = []
    for tensor in graph.tensors:
        place = _root(tensor.storage, parent)
        if place is not None and tensor.storage in parent:
            tensor = replace(
                tensor,
                storage=place.storage,
                storage_offset=tensor.storage_offset + place.offset,
            )
        tensors.append(tensor)
    return replace(graph, tensors=tuple(tensors))


def compatible(graph: Graph, wanted: Iterable[SubBuffer]) -> tuple[SubBuffer, ...]:
    """Return the choices of `wanted` that go together; of two for one tensor, the first."""
    parent: dict[int, _Place] = {}
    taken = []
    for choice in wanted:
        inner, outer, offset = choice
        a, b = graph.tensors[inner], graph.tensors[outer]
        if a.storage in parent:
            continue
        parent[a.storage] = _Place(storage=b.storage, offset=b.storage_offset + offset)
        if _root(a.storage, parent) is None:
            del parent[a.storage]
            continue
        taken.append(choice)
    return tuple(taken)


def relaxations(graph: Graph) -> tuple[Graph, ...]:
    """Return graphs whose lower bounds on the peak hold for `graph` with any sub-buffers.

    Joined storages take at least the bytes of each of them, and of parts that do not overlap
    all together. So it is sound to count, of what could be joined, the wholes alone (first
    graph) or the parts alone (second graph). Without choices the graph itself is returned.
    """
    choices = sub_buffer_choices(graph)
    if not choices:
        return (graph,)
    storage = [tensor.storage for tensor in graph.tensors]
    parts = {storage[inner] for inner, _, _ in choices}
    wholes = {storage[outer] for _, outer, _ in choices}
    return _free(graph, parts), _free(graph, wholes | _overlapping_parts(graph, choices))


def _overlapping_parts(graph: Graph, choices: tuple[SubBuffer, ...]) -> set[int]:
    places: dict[int, list[tuple[int, int, int]]] = {}
    for inner, outer, offset in choices:
        a, b = graph.tensors[inner], graph.tensors[outer]
        begin = b.storage_offset + offset
        places.setdefault(b.storage, []).append((begin, begin + a.bytes, a.storage))
    overlapping: set[int] = set()
    for rows in places.values():
        rows.sort()
        end, last = 0, -1
        for begin, stop, storage in rows:
            if begin < end:
                overlapping |= {storage, last}
            if stop > end:
                end, last = stop, storage
    return overlapping


def _free(graph: Graph, storages: set[int]) -> Graph:
    tensors = tuple(
        replace(tensor, bytes=0, storage_offset=0) if tensor.storage in storages else tensor
        for tensor in graph.tensors
    )
    return replace(graph, tensors=tensors)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    storage: int
    offset: int


def _root(storage: int, parent: dict[int, _Place]) -> _Place | None:
    """Return where `storage` lies in the outermost storage; None for a circle."""
    place = _Place(storage=storage, offset=0)
    for _ in range(len(parent) + 1):
        if place.storage not in parent:
            return place
        outer = parent[place.storage]
        place = _Place(storage=outer.storage, offset=place.offset + outer.offset)
    return None


def _text(graph: Graph, choice: SubBuffer) -> str:
    inner, outer, offset = choice
    n = len(graph.tensors)
    if not (0 <= inner < n and 0 <= outer < n):
        return f"tensor {inner} inside tensor {outer}"
    return f"'{graph.tensors[inner].name}' at byte {offset} of '{graph.tensors[outer].name}'"
