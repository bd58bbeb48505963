"""What counts as memory: storages, when they live, and what a graph holds besides the peak."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.graph.types import ABSENT, COUNTED_ROLES, Role

if TYPE_CHECKING:
    from collections.abc import Iterable

    from regal.graph.types import Graph


def counted_storages(graph: Graph) -> dict[int, int]:
    """Return storage -> bytes for the storages that count in the peak, in ascending order.

    A storage counts when all its tensors are inputs, outputs or activations: a reshaped
    parameter is still a parameter. Storages of 0 bytes are left out.
    """
    sizes: dict[int, int] = {}
    elsewhere: set[int] = set()
    for tensor in graph.tensors:
        end = tensor.storage_offset + tensor.bytes
        sizes[tensor.storage] = max(sizes.get(tensor.storage, 0), end)
        if tensor.role not in COUNTED_ROLES:
            elsewhere.add(tensor.storage)
    return {s: sizes[s] for s in sorted(sizes) if sizes[s] > 0 and s not in elsewhere}


def steps_of(graph: Graph, order: Iterable[int]) -> dict[int, tuple[int, int]]:
    """Return storage -> (first, last step, both inclusive) for the counted storages in use."""
    step_of = {op: step for step, op in enumerate(order)}
    counted = counted_storages(graph)
    steps: dict[int, tuple[int, int]] = {}
    for position, op in enumerate(graph.ops):
        for tensor in (*op.inputs, *op.outputs):
            storage = graph.tensors[tensor].storage if tensor != ABSENT else ABSENT
            if storage in counted:
                first, last = steps.get(storage, (step_of[position], step_of[position]))
                step = step_of[position]
                steps[storage] = (min(first, step), max(last, step))
    last_step = len(graph.ops) - 1
    given = {graph.tensors[t].storage for t in graph.inputs}
    kept = {graph.tensors[t].storage for t in graph.outputs}
    for storage in counted if last_step >= 0 else ():
        if storage in kept and (storage in given or storage in steps):
            steps[storage] = (steps.get(storage, (0, 0))[0], last_step)
        if storage in given and storage in steps:
            steps[storage] = (0, steps[storage][1])
    return steps


def bytes_by_role(graph: Graph, *roles: Role) -> int:
    """Return the bytes of all storages that hold a tensor of one of `roles`, bodies included."""
    sizes: dict[int, int] = {}
    for tensor in graph.tensors:
        if tensor.role in roles:
            sizes[tensor.storage] = max(sizes.get(tensor.storage, 0), tensor.bytes)
    bodies = (body for op in graph.ops for body in op.subgraphs)
    return sum(sizes.values()) + sum(bytes_by_role(body, *roles) for body in bodies)


def parameter_bytes(graph: Graph) -> int:
    """Return the bytes of parameters and constants."""
    return bytes_by_role(graph, Role.PARAMETER, Role.CONSTANT)


def state_bytes(graph: Graph) -> int:
    """Return the bytes of variables and other state."""
    return bytes_by_role(graph, Role.STATE)


def dependencies(graph: Graph) -> list[tuple[int, int]]:
    """Return (earlier op, later op) rows: data and control, sorted, no repeats."""
    writer = {t: i for i, op in enumerate(graph.ops) for t in op.outputs if t != ABSENT}
    edges = {(writer[t], i) for i, op in enumerate(graph.ops) for t in op.inputs if t in writer}
    edges |= {(earlier, i) for i, op in enumerate(graph.ops) for earlier in op.control_inputs}
    return sorted(edges)
