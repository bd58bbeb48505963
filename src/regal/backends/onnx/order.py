"""In which order ONNX Runtime executes the nodes of a graph.

Source: microsoft/onnxruntime, core/graph/graph.cc (ReverseDFSFrom, KahnsTopologicalSort) and
core/graph/graph_viewer.cc. Tests compare both with the profile of real runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.backends.onnx.casts import removed_casts
from regal.frontends.onnx.kinds import SHAPE_READERS
from regal.graph.memory import dependencies
from regal.graph.order import first_order
from regal.graph.types import ABSENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.backends.onnx.casts import RemovedCasts
    from regal.graph.types import Graph, LoadedModel


def default_order(model: LoadedModel) -> tuple[int, ...] | None:
    """Return the ops of the main graph in the order that ONNX Runtime runs them by default.

    It ignores the order of the file: a depth-first search from the outputs towards the
    inputs. Constant nodes, which the runtime folds into weights, come first.

    Cost: O((N + edges) log).
    """
    return default_order_of(model.graph)


def default_order_of(graph: Graph) -> tuple[int, ...]:
    """Return the default order of any graph, a body for instance."""
    gone = removed_casts(graph)
    writers = _writers(graph, gone)
    has_reader = {writer for earlier in writers for writer in earlier}
    leaves = [
        op
        for op in range(len(graph.ops))
        if op not in has_reader and not is_folded(graph, op) and op not in gone.ops
    ]
    visited: set[int] = set()
    order: list[int] = []
    # The last leaf is taken first, and of a node's writers the last one.
    stack = [(leaf, False) for leaf in leaves]
    while stack:
        op, is_leaving = stack.pop()
        if is_leaving:
            order.append(op)
        elif op not in visited:
            visited.add(op)
            stack.append((op, True))
            stack.extend((writer, False) for writer in writers[op] if writer not in visited)
    return _with_removed(graph, order, gone)


def executed_order(graph: Graph, order: Sequence[int]) -> tuple[int, ...]:
    """Return what ONNX Runtime executes of nodes that a file lists in `order`.

    That is `order` itself (PRIORITY_BASED), but a Shape or Size node runs as soon as its input
    is there. Moving it forward only ever shortens lives.
    """
    before: list[list[int]] = [[] for _ in graph.ops]
    for writer, reader in dependencies(graph):
        before[reader].append(writer)
    step_of = {op: step for step, op in enumerate(order)}
    rank = [(op.kind not in SHAPE_READERS, step_of[i]) for i, op in enumerate(graph.ops)]
    return tuple(first_order(before, rank))


def is_folded(graph: Graph, op: int) -> bool:
    """Return whether ONNX Runtime turns the op into a weight when it loads the model."""
    return graph.ops[op].kind == "Constant"


def _writers(graph: Graph, gone: RemovedCasts) -> list[list[int]]:
    """Return, per op, the ops that it reads from as ONNX Runtime sees it, ascending."""
    writer = {
        tensor: i
        for i, op in enumerate(graph.ops)
        for tensor in op.outputs
        if tensor != ABSENT and not is_folded(graph, i)
    }

    def writer_of(tensor: int) -> int | None:
        while tensor in gone.source:
            tensor = gone.source[tensor]
        return writer.get(tensor)

    found = [[writer_of(tensor) for tensor in op.inputs] for op in graph.ops]
    return [sorted({w for w in row if w is not None}) for row in found]


def _with_removed(graph: Graph, order: list[int], gone: RemovedCasts) -> tuple[int, ...]:
    """Return `order` with folded ops first and removed ones right behind what they read."""
    behind: dict[int, list[int]] = {}
    writer = {t: i for i, op in enumerate(graph.ops) for t in op.outputs if t != ABSENT}
    first = [op for op in range(len(graph.ops)) if is_folded(graph, op)]
    for op in sorted(gone.ops):
        source = writer.get(graph.ops[op].inputs[0])
        if source is None:
            first.append(op)
        else:
            behind.setdefault(source, []).append(op)
    placed: list[int] = []
    stack = [*reversed([*first, *order])]
    while stack:
        op = stack.pop()
        placed.append(op)
        stack.extend(reversed(behind.get(op, ())))
    return _writers_first(graph, placed)


def _writers_first(graph: Graph, order: list[int]) -> tuple[int, ...]:
    """Return `order` with every op behind those that it depends on.

    Where a second cast undoes the first, ONNX Runtime's readers skip both and may run before
    the first, which the graph does not allow: that cast is taken forward.
    """
    earlier: list[list[int]] = [[] for _ in graph.ops]
    for writer, reader in dependencies(graph):
        earlier[reader].append(writer)
    placed: dict[int, None] = {}
    stack = [*reversed(order)]
    while stack:
        op = stack[-1]
        waits_for = [writer for writer in earlier[op] if writer not in placed]
        if waits_for and op not in placed:
            stack.extend(reversed(waits_for))
        else:
            placed.setdefault(stack.pop())
    return tuple(placed)
