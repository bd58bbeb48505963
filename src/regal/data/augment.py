"""Make new training graphs of known ones: other sizes, times, batches, parts, compositions.

For training only: graphs for validation and tests stay as they were traced. Everything follows
from the seed; every result is a valid graph.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from regal.cost.work import MOST_FLOPS
from regal.data.compose import composed
from regal.data.cuts import window
from regal.graph.check import MOST_BYTES
from regal.graph.types import ABSENT, COUNTED_ROLES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from regal.graph.types import Graph, Op, Tensor

PARTS = 64  # scales are whole numbers of 64ths, so that sizes stay whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Augmentation:
    """How far an augmented graph may be from its original."""

    size_spread: float = 0.5  # standard deviation of the logarithm of a storage's scale
    time_spread: float = 0.3  # the same of the scale of an op's operations
    batches: tuple[int, ...] = (1, 1, 2, 4, 8)  # one is drawn
    cut_chance: float = 0.3
    compose_chance: float = 0.2
    fewest_ops: int = 30  # of a part
    most_ops: int = 20_000  # of a composition


def augmented(
    graph: Graph, seed: int, options: Augmentation, others: Sequence[Graph] = ()
) -> Graph:
    """Return a variation of `graph`: perhaps a part of it, or it and another one; new sizes.

    Args:
        graph: from the training side.
        seed: decides everything.
        options: how far to go.
        others: training graphs that it may be composed with, those of its framework are used.

    Cost: O(ops + edges).
    """
    rng = random.Random(f"augment {seed}")
    if rng.random() < options.cut_chance and len(graph.ops) > options.fewest_ops:
        # Small parts are as likely as large ones: the scale is that of the logarithm.
        share = (options.fewest_ops / len(graph.ops)) ** rng.random()
        graph = window(graph, rng, round(share * len(graph.ops)))
    fitting = [
        other
        for other in others
        if other.framework == graph.framework
        and len(other.ops) + len(graph.ops) <= options.most_ops
    ]
    if fitting and rng.random() < options.compose_chance:
        graph = composed(graph, rng.choice(fitting), in_series=rng.random() < 0.5)
    graph = batched(graph, rng.choice(options.batches))
    graph = resized(graph, lambda: rng.lognormvariate(0.0, options.size_spread))
    return retimed(graph, lambda: rng.lognormvariate(0.0, options.time_spread))


def batched(graph: Graph, factor: int) -> Graph:
    """Return `graph` for a batch `factor` times as large: activations and work grow, weights not.

    Inputs and activations grow all, as if the batch were an axis of each of them.
    """
    if factor == 1 or _overflows(graph, factor):
        return graph
    counted = _counted(graph)
    tensors = tuple(
        _scaled(tensor, PARTS * factor) if tensor.storage in counted else tensor
        for tensor in graph.tensors
    )
    ops = tuple(
        replace(
            op,
            flops=min(op.flops * factor, MOST_FLOPS),
            workspace_bytes=op.workspace_bytes * factor,
            times_ns={kind: ns * factor for kind, ns in op.times_ns.items()},
            subgraphs=tuple(batched(body, factor) for body in op.subgraphs),
        )
        for op in graph.ops
    )
    return replace(graph, tensors=tensors, ops=ops)


def resized(graph: Graph, draw: Callable[[], float]) -> Graph:
    """Return `graph` with its activations scaled, each group of storages by a draw of its own.

    Storages that ops may overwrite or place inside each other scale together: the choice stays
    legal. Bodies stay as they are.
    """
    if _overflows(graph, PARTS):
        return graph
    group = _groups(graph)
    counted = _counted(graph)
    scale: dict[int, int] = {}
    tensors = []
    for tensor in graph.tensors:
        if tensor.storage not in counted:
            tensors.append(tensor)
            continue
        root = group[tensor.storage]
        if root not in scale:
            scale[root] = min(max(round(PARTS * draw()), 1), PARTS * PARTS)
        tensors.append(_scaled(tensor, scale[root]))
    ops = [_fitting(op, tensors) for op in graph.ops]
    return replace(graph, tensors=tuple(tensors), ops=tuple(ops))


def retimed(graph: Graph, draw: Callable[[], float]) -> Graph:
    """Return `graph` with the operations, and the known times, of each op scaled by a draw."""
    ops = []
    for op in graph.ops:
        factor = draw()
        ops.append(
            replace(
                op,
                flops=min(round(op.flops * factor), MOST_FLOPS),
                times_ns={kind: max(round(ns * factor), 1) for kind, ns in op.times_ns.items()},
            )
        )
    return replace(graph, ops=tuple(ops))


def _scaled(tensor: Tensor, parts: int) -> Tensor:
    """Return `tensor` times parts / PARTS; views stay inside their storage: both round down."""
    begin = tensor.storage_offset * parts // PARTS
    end = (tensor.storage_offset + tensor.bytes) * parts // PARTS
    return replace(tensor, bytes=max(end - begin, 1 if tensor.bytes else 0), storage_offset=begin)


def _counted(graph: Graph) -> frozenset[int]:
    """Return the storages that hold inputs, outputs and activations only."""
    fixed = {t.storage for t in graph.tensors if t.role not in COUNTED_ROLES}
    return frozenset(t.storage for t in graph.tensors if t.storage not in fixed)


def _groups(graph: Graph) -> dict[int, int]:
    """Return storage -> one storage of its group: linked by in-place choices and sub-buffers."""
    root = {tensor.storage: tensor.storage for tensor in graph.tensors}

    def found(storage: int) -> int:
        while root[storage] != storage:
            root[storage] = root[root[storage]]
            storage = root[storage]
        return storage

    for op in graph.ops:
        pairs = [(op.inputs[a], op.outputs[b]) for a, b in op.in_place]
        for a, b in (*pairs, *((inner, outer) for inner, outer, _ in op.sub_buffers)):
            if ABSENT not in (a, b):
                first, second = (found(graph.tensors[t].storage) for t in (a, b))
                root[max(first, second)] = min(first, second)
    return {storage: found(storage) for storage in root}


def _fitting(op: Op, tensors: Sequence[Tensor]) -> Op:
    """Return `op` with the sub-buffers that still lie inside their new, rounded sizes."""
    kept = tuple(
        (inner, outer, offset)
        for inner, outer, offset in op.sub_buffers
        if offset + tensors[inner].bytes <= tensors[outer].bytes
    )
    return op if kept == op.sub_buffers else replace(op, sub_buffers=kept)


def _overflows(graph: Graph, factor: int) -> bool:
    total = sum(t.bytes + t.storage_offset for t in graph.tensors)
    total += sum(op.workspace_bytes for op in graph.ops)
    return total * factor > MOST_BYTES
