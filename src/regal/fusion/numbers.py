"""Turn a fusion problem into the numbers that the native kernel searches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from regal._native import FusionFault, FusionNumbers, build_fusion_problem
from regal.errors import ModelError
from regal.fusion.types import CHANNELS_LAST, CONTIGUOUS, LayoutRule
from regal.graph.memory import counted_storages, dependencies
from regal.graph.types import ABSENT
from regal.plan.problem import in_place_pairs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from regal.fusion.types import FusionProblem

    Ints = NDArray[np.int64]

NO_OUTPUT = -2  # layout of a tensor that the graph does not return
_RULES = {LayoutRule.FIXED: 0, LayoutRule.AGNOSTIC: 1, LayoutRule.SENSITIVE: 2}


def fusion_numbers(problem: FusionProblem, *, in_place: bool = True) -> FusionNumbers:
    """Return `problem` as the searches read it.

    Args:
        problem: N ops; its graph is checked.
        in_place: whether kernels of one op may write over an input that dies.

    Raises:
        ModelError: the graph has a cycle, the tables do not fit it, numbers are too large, or a
            tensor is returned in both layouts.

    Cost: O((N + uses) log).
    """
    graph = problem.graph
    sizes = counted_storages(graph)
    row_of = {storage: row for row, storage in enumerate(sizes)}
    producer = {t: i for i, op in enumerate(graph.ops) for t in op.outputs if t != ABSENT}
    reads = [
        (i, t) for i, op in enumerate(graph.ops) for t in dict.fromkeys(op.inputs) if t != ABSENT
    ]
    wanted = [NO_OUTPUT] * len(graph.tensors)
    for tensor, layout in zip(graph.outputs, problem.output_layouts, strict=True):
        if {wanted[tensor], layout} == {CONTIGUOUS, CHANNELS_LAST}:
            raise ModelError(
                f"tensor '{graph.tensors[tensor].name}' is returned in both layouts; ask for one"
            )
        # Returned twice: the layout that is asked for counts.
        wanted[tensor] = max(wanted[tensor], layout)
    given = {graph.tensors[t].storage for t in graph.inputs}
    pairs = in_place_pairs(graph, row_of, sizes) if in_place else {}
    verdict, native = build_fusion_problem(
        n_devices=problem.n_devices,
        most_ops=problem.most_ops,
        edges=_rows(dependencies(graph), 2),
        reads=_rows(reads, 2),
        producers=_ints(producer.get(t, -1) for t in range(len(graph.tensors))),
        view_of=_ints(problem.view_of),
        has_layouts=_ints(int(t in problem.two_layouts) for t in range(len(graph.tensors))),
        output_layouts=_ints(wanted),
        storages=_ints(row_of.get(tensor.storage, -1) for tensor in graph.tensors),
        tensor_bytes=_ints(tensor.bytes for tensor in graph.tensors),
        bytes=_ints(sizes.values()),
        input_storages=_ints(sorted(row_of[s] for s in given if s in row_of)),
        workspace=_ints(op.workspace_bytes for op in graph.ops),
        in_place=_rows([(op, *tensors) for (op, _, _), tensors in pairs.items()], 3),
        pairs=_rows(sorted(problem.pairs), 2),
        anchors=_ints(sorted(problem.anchors)),
        apart=_ints(sorted(problem.not_with_anchors)),
        rules=_ints(_RULES[rule] for rule in problem.layout_rules),
        alone=_flat(problem.alone_ns),
        work=_flat(problem.work_ns),
        launch=_ints(problem.launch_ns),
        read=_flat(problem.read_ns),
        write=_flat(problem.write_ns),
        convert=_flat(problem.convert_ns),
    )
    if verdict.fault is not FusionFault.NONE:
        raise ModelError(_message(problem, verdict.fault, verdict.guilty))
    return native


def _message(problem: FusionProblem, fault: FusionFault, guilty: int) -> str:
    graph = problem.graph
    if fault is FusionFault.CYCLE:
        return f"op '{graph.ops[guilty].name}' depends on itself: a cycle"
    if fault is FusionFault.TOO_LARGE:
        return f"graph '{graph.name}': times or sizes add up to more than 2^61"
    if fault is FusionFault.BAD_ROW and guilty < 0:
        return (
            f"graph '{graph.name}': a table of the fusion problem has not one row for each of"
            f" {len(graph.ops)} ops, {len(graph.tensors)} tensors, {problem.n_devices} devices"
        )
    return f"graph '{graph.name}' cannot be fused: {fault.name.lower()} at {guilty}"


def _ints(values: Iterable[int]) -> Ints:
    return np.array(list(values), dtype=np.int64)


def _rows(rows: Sequence[tuple[int, ...]], columns: int) -> Ints:
    return np.array(rows, dtype=np.int64).reshape(-1, columns)


def _flat(table: Sequence[Sequence[object]]) -> Ints:
    return np.array(table, dtype=np.int64).reshape(-1)
