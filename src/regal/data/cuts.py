"""Parts of graphs: a connected window of ops, with the inputs and outputs that it needs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from regal.graph.memory import dependencies
from regal.graph.types import ABSENT, COUNTED_ROLES, Role

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from regal.graph.types import Graph, Op, Tensor


def window(graph: Graph, rng: random.Random, size: int) -> Graph:
    """Return the largest connected part of `size` ops that follow each other in the file.

    The part is convex: no path leaves it and comes back.

    Args:
        graph: N ops.
        rng: draws where the window begins.
        size: of the window, at least 1; the part may have fewer ops.
    """
    size = min(max(size, 1), len(graph.ops))
    begin = rng.randrange(len(graph.ops) - size + 1)
    return part_of(graph, _largest_component(graph, range(begin, begin + size)))


def part_of(graph: Graph, ops: Sequence[int]) -> Graph:
    """Return the graph of some ops: what others make for them is given, what others read is kept.

    Args:
        graph: any valid graph.
        ops: numbers of ops, ascending; convex, or the part means something else.
    """
    inside = set(ops)
    written = {t for i in ops for t in graph.ops[i].outputs if t != ABSENT}
    used = sorted(
        {t for i in ops for t in (*graph.ops[i].inputs, *graph.ops[i].outputs) if t != ABSENT}
    )
    wanted = set(graph.outputs)
    for i, op in enumerate(graph.ops):
        if i not in inside:
            wanted.update(op.inputs)
    number = {t: n for n, t in enumerate(used)}
    fixed = _roles_of_fixed_storages(graph)
    first: dict[int, int] = {}  # storage -> its first tensor in the part
    tensors = []
    for t in used:
        tensor = graph.tensors[t]
        storage = first.setdefault(tensor.storage, number[t])
        role = _role_of(tensor, fixed, is_made=t in written, is_kept=t in wanted)
        tensors.append(replace(tensor, storage=storage, role=role))
    place = {i: n for n, i in enumerate(ops)}
    return replace(
        graph,
        ops=tuple(_moved(graph.ops[i], number, place) for i in ops),
        tensors=tuple(tensors),
        inputs=tuple(n for n, tensor in enumerate(tensors) if tensor.role is Role.INPUT),
        outputs=tuple(n for n, tensor in enumerate(tensors) if tensor.role is Role.OUTPUT),
    )


def _role_of(tensor: Tensor, fixed: dict[int, Role], *, is_made: bool, is_kept: bool) -> Role:
    if tensor.role not in COUNTED_ROLES:
        return tensor.role
    held = fixed.get(tensor.storage)
    if held is not None:
        # A view of weights whose op is outside; or one made here, of state at most.
        return held if not is_made else Role.STATE
    if not is_made:
        return Role.INPUT
    return Role.OUTPUT if is_kept else Role.ACTIVATION


def _roles_of_fixed_storages(graph: Graph) -> dict[int, Role]:
    """Return storage -> role for storages of weights, constants and state."""
    return {t.storage: t.role for t in graph.tensors if t.role not in COUNTED_ROLES}


def _moved(op: Op, number: dict[int, int], place: dict[int, int]) -> Op:
    return replace(
        op,
        inputs=tuple(number.get(t, ABSENT) for t in op.inputs),
        outputs=tuple(number.get(t, ABSENT) for t in op.outputs),
        control_inputs=tuple(place[i] for i in op.control_inputs if i in place),
        sub_buffers=tuple((number[a], number[b], offset) for a, b, offset in op.sub_buffers),
    )


def _largest_component(graph: Graph, ops: Sequence[int]) -> list[int]:
    """Return the ops of the largest connected part among `ops`; of equals, the first."""
    inside = set(ops)
    beside: dict[int, list[int]] = {i: [] for i in ops}
    for a, b in dependencies(graph):
        if a in inside and b in inside:
            beside[a].append(b)
            beside[b].append(a)
    seen: set[int] = set()
    best: list[int] = []
    for start in ops:
        if start in seen:
            continue
        seen.add(start)
        found, pending = [], [start]
        while pending:
            i = pending.pop()
            found.append(i)
            fresh = [j for j in beside[i] if j not in seen]
            seen.update(fresh)
            pending += fresh
        if len(found) > len(best):
            best = found
    return sorted(best)
