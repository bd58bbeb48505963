"""Turn a graph into the numbers that the native kernel searches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regal._native import OrderProblem, ProblemFault, build_problem
from regal.errors import ModelError
from regal.graph.memory import counted_storages, dependencies
from regal.graph.types import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from regal.graph.types import Graph, Op
    from regal.plan.types import Plan

InPlaceRow = tuple[int, int, int]  # op, row of the input storage, row of the output storage


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedProblem:
    """A native problem, and the way back from its numbers to the graph's."""

    native: OrderProblem
    storages: tuple[int, ...]  # row of the problem -> storage of the graph
    bytes: tuple[int, ...]  # per row
    tensors_of_pair: Mapping[InPlaceRow, tuple[int, int]]  # row -> (input, output) tensor


def order_problem(
    graph: Graph, workspace: Sequence[int] | None = None, *, in_place: bool = True
) -> NumberedProblem:
    """Return the problem "in which order do the ops of `graph` run on one device?".

    Args:
        graph: a checked graph of N ops.
        workspace: N byte counts that replace the ops' own workspaces (planned bodies).
        in_place: whether ops may write over an input that dies.

    Raises:
        ModelError: the graph has a cycle or sizes that do not fit.

    Cost: O((N + uses) log).
    """
    sizes = counted_storages(graph)
    row_of = {storage: row for row, storage in enumerate(sizes)}
    touches = [
        (i, row_of[graph.tensors[t].storage])
        for i, op in enumerate(graph.ops)
        for t in (*op.inputs, *op.outputs)
        if t != ABSENT and graph.tensors[t].storage in row_of
    ]
    pairs = in_place_pairs(graph, row_of, sizes) if in_place else {}
    verdict, native = build_problem(
        _rows(dependencies(graph), 2),
        _rows(touches, 2),
        np.array(list(sizes.values()), dtype=np.int64),
        np.array(
            [op.workspace_bytes for op in graph.ops] if workspace is None else list(workspace),
            dtype=np.int64,
        ),
        _storage_rows(graph, graph.inputs, row_of),
        _storage_rows(graph, graph.outputs, row_of),
        _rows(list(pairs), 3),
    )
    if verdict.fault is ProblemFault.CYCLE:
        raise ModelError(f"op '{graph.ops[verdict.guilty].name}' depends on itself: a cycle")
    if verdict.fault is not ProblemFault.NONE:
        raise ModelError(
            f"graph '{graph.name}' cannot be planned: {verdict.fault.name.lower()}"
            f" at {verdict.guilty}"
        )
    return NumberedProblem(
        native=native,
        storages=tuple(sizes),
        bytes=tuple(sizes.values()),
        tensors_of_pair=pairs,
    )


def planned_workspace(graph: Graph, bodies: Mapping[int, Iterable[Plan]]) -> list[int]:
    """Return, per op, the bytes of its workspace: its own, plus the largest of its bodies."""
    return [
        op.workspace_bytes + max((body.peak_bytes for body in bodies.get(i, ())), default=0)
        for i, op in enumerate(graph.ops)
    ]


def least_workspace(graph: Graph, bodies: Mapping[int, Iterable[Plan]]) -> list[int]:
    """Return, per op, workspace that no plan of its bodies can go below: their bounds count."""
    return [
        op.workspace_bytes + max((body.peak_bound for body in bodies.get(i, ())), default=0)
        for i, op in enumerate(graph.ops)
    ]


def in_place_pairs(
    graph: Graph, row_of: Mapping[int, int], sizes: Mapping[int, int]
) -> dict[InPlaceRow, tuple[int, int]]:
    """Return the in-place choices of the ops that two equal, counted storages allow."""
    given = {graph.tensors[t].storage for t in graph.inputs}
    kept = {graph.tensors[t].storage for t in graph.outputs}
    pairs: dict[InPlaceRow, tuple[int, int]] = {}
    for i, op in enumerate(graph.ops):
        for source, target in op.in_place:
            read, written = op.inputs[source], op.outputs[target]
            if ABSENT in (read, written):
                continue
            a, b = graph.tensors[read].storage, graph.tensors[written].storage
            legal = a != b and a in row_of and b in row_of and sizes[a] == sizes[b]
            # A part of a larger storage begins elsewhere than the storage that would take over.
            whole = all(graph.tensors[t].bytes == sizes.get(a) for t in (read, written))
            alone = _others_survive(graph, op, (source, target), a)
            if legal and whole and alone and a not in kept and b not in given:
                pairs.setdefault((i, row_of[a], row_of[b]), (read, written))
    return pairs


def _others_survive(graph: Graph, op: Op, pair: tuple[int, int], storage: int) -> bool:
    """Return whether no other operand of `op` loses bytes when `pair` shares `storage`.

    Another input there, as a slice that lies where its source lies, must be whole and one that
    the op may overwrite like the first; another output there would be overwritten itself.
    """
    source, target = pair
    size = graph.tensors[op.inputs[source]].bytes
    inputs_survive = all(
        (position, target) in op.in_place and graph.tensors[tensor].bytes == size
        for position, tensor in enumerate(op.inputs)
        if tensor != ABSENT and graph.tensors[tensor].storage == storage
    )
    return inputs_survive and all(
        tensor == ABSENT or graph.tensors[tensor].storage != storage for tensor in op.outputs
    )


def pair_rows(flat: NDArray[np.int64]) -> list[InPlaceRow]:
    """Return the in-place rows that the kernel reports as one flat array."""
    return [(int(op), int(a), int(b)) for op, a, b in flat.reshape(-1, 3)]


def _storage_rows(
    graph: Graph, tensors: Sequence[int], row_of: Mapping[int, int]
) -> NDArray[np.int64]:
    storages = {graph.tensors[t].storage for t in tensors}
    return np.array(sorted(row_of[s] for s in storages if s in row_of), dtype=np.int64)


def _rows(rows: Sequence[tuple[int, ...]], columns: int) -> NDArray[np.int64]:
    return np.array(rows, dtype=np.int64).reshape(-1, columns)
