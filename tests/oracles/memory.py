"""Slow and obvious: the peak of an order, from the definition, and the best of all orders."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

from regal.graph.types import COUNTED_ROLES, Graph

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def storages_of(graph: Graph) -> dict[int, list[int]]:
    """Return counted storage -> its tensors."""
    members: dict[int, list[int]] = {}
    for index, tensor in enumerate(graph.tensors):
        members.setdefault(tensor.storage, []).append(index)
    return {
        storage: tensors
        for storage, tensors in members.items()
        if all(graph.tensors[t].role in COUNTED_ROLES for t in tensors)
        and any(graph.tensors[t].bytes for t in tensors)
    }


def lives_of(graph: Graph, order: Sequence[int]) -> dict[int, set[int]]:
    """Return storage -> the steps in which it is live."""
    lives = {}
    for storage, tensors in storages_of(graph).items():
        steps = [
            step
            for step, i in enumerate(order)
            if set(tensors) & {*graph.ops[i].inputs, *graph.ops[i].outputs}
        ]
        kept = bool(set(tensors) & set(graph.outputs))
        given = bool(set(tensors) & set(graph.inputs))
        if steps or (given and kept):
            first = 0 if given else min(steps)
            last = len(order) - 1 if kept else max(steps)
            lives[storage] = set(range(first, last + 1))
    return lives


def slow_peak(graph: Graph, order: Sequence[int], *, in_place: bool) -> int:
    """Return the peak of `order`: per step, add up what is live; joined pairs count once."""
    size = {
        storage: max(graph.tensors[t].bytes + graph.tensors[t].storage_offset for t in tensors)
        for storage, tensors in storages_of(graph).items()
    }
    lives = lives_of(graph, order)
    peak = 0
    for step, i in enumerate(order):
        op = graph.ops[i]
        total = sum(size[s] for s in lives if step in lives[s]) + op.workspace_bytes
        used: set[int] = set()
        for source, target in op.in_place if in_place else ():
            a = graph.tensors[op.inputs[source]].storage
            b = graph.tensors[op.outputs[target]].storage
            both = a in lives and b in lives and a != b and size[a] == size[b]
            kept = {graph.tensors[t].storage for t in graph.outputs}
            given = {graph.tensors[t].storage for t in graph.inputs}
            free = a not in kept and b not in given and not {a, b} & used
            for position, tensor in enumerate(op.inputs):
                if tensor >= 0 and graph.tensors[tensor].storage == a:
                    free = free and (position, target) in op.in_place
            if both and free and max(lives[a]) == step == min(lives[b]):
                total -= size[a]
                used |= {a, b}
        peak = max(peak, total)
    return peak


def legal_orders(graph: Graph) -> Iterator[tuple[int, ...]]:
    """Yield every order in which writers come before readers."""
    writer = {t: i for i, op in enumerate(graph.ops) for t in op.outputs}
    before = [
        {writer[t] for t in op.inputs if t in writer} | set(op.control_inputs) for op in graph.ops
    ]
    for order in permutations(range(len(graph.ops))):
        step = {op: position for position, op in enumerate(order)}
        if all(step[earlier] < step[op] for op in order for earlier in before[op]):
            yield order


def best_peak(graph: Graph) -> int:
    """Return the lowest peak of all orders, in place wherever allowed."""
    return min(slow_peak(graph, order, in_place=True) for order in legal_orders(graph))
