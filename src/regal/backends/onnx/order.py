"""In which order ONNX Runtime executes the nodes of a graph.

Source: microsoft/onnxruntime, core/graph/graph.cc (ReverseDFSFrom, KahnsTopologicalSort) and
core/graph/graph_viewer.cc. Tests compare both with the profile of real runs.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from regal.frontends.onnx.kinds import SHAPE_READERS
from regal.graph.types import ABSENT

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    writers = _writers(graph)
    has_reader = {writer for earlier in writers for writer in earlier}
    leaves = [i for i, op in enumerate(graph.ops) if i not in has_reader and not _folded(graph, i)]
    visited: set[int] = set()
    order = [i for i in range(len(graph.ops)) if _folded(graph, i)]
    # The last leaf is taken first, and of a node's writers the last one.
    stack = [(leaf, False) for leaf in leaves]
    while stack:
        op, is_leaving = stack.pop()
        if is_leaving:
            order.append(op)
            continue
        if op in visited:
            continue
        visited.add(op)
        stack.append((op, True))
        stack.extend((writer, False) for writer in writers[op] if writer not in visited)
    return tuple(order)


def executed_order(graph: Graph, order: Sequence[int]) -> tuple[int, ...]:
    """Return what ONNX Runtime executes of nodes that a file lists in `order`.

    That is `order` itself (PRIORITY_BASED), but a Shape or Size node runs as soon as its input
    is there. Moving it forward only ever shortens lives.
    """
    rank = {op: step for step, op in enumerate(order)}
    writers = _writers(graph)
    readers: list[list[int]] = [[] for _ in graph.ops]
    waits = [len(earlier) for earlier in writers]
    for op, earlier in enumerate(writers):
        for writer in earlier:
            readers[writer].append(op)

    def priority(op: int) -> tuple[int, int, int]:
        first = 0 if _folded(graph, op) or graph.ops[op].kind in SHAPE_READERS else 1
        return (first, rank[op], op)

    ready = [priority(op) for op, count in enumerate(waits) if count == 0]
    heapq.heapify(ready)
    executed = []
    while ready:
        op = heapq.heappop(ready)[-1]
        executed.append(op)
        for reader in readers[op]:
            waits[reader] -= 1
            if waits[reader] == 0:
                heapq.heappush(ready, priority(reader))
    return tuple(executed)


def _writers(graph: Graph) -> list[list[int]]:
    """Return, per op, the ops that it reads from, ascending; folded ones are no ops."""
    writer = {
        tensor: i
        for i, op in enumerate(graph.ops)
        for tensor in op.outputs
        if tensor != ABSENT and not _folded(graph, i)
    }
    return [sorted({writer[t] for t in op.inputs if t in writer}) for op in graph.ops]


def _folded(graph: Graph, op: int) -> bool:
    return graph.ops[op].kind == "Constant"
