"""PyTorch Inductor's own orders of a graph, on nodes that only look like Inductor's.

`torch._inductor.memory` reads a few attributes of scheduler nodes and buffers; the objects
here have these and nothing else, so that its functions order any graph of ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.peer_offsets import Skipped

from regal import _native

if TYPE_CHECKING:
    from numpy.typing import NDArray


def inductor_order(problem: _native.OrderProblem, rule: str) -> NDArray[np.int64]:
    """Return the order of Inductor's `topological_sort_<rule>`: lpmf, bfs or dfs.

    Raises:
        Skipped: torch is not installed.
    """
    try:
        memory = import_module("torch._inductor.memory")
    except ImportError as error:
        raise Skipped(f"package torch is not installed ({error})") from error
    nodes, inputs, outputs = _nodes_of(problem, memory)
    if rule == "lpmf":
        buffers = {buffer.name: buffer for node in nodes for buffer in node.outputs}
        made = memory.topological_sort_lpmf(nodes, inputs, buffers, outputs)
    else:
        made = getattr(memory, f"topological_sort_{rule}")(nodes)
    return np.array([node.op for node in made], dtype=np.int64)


@dataclass(slots=True, eq=False)
class _Buffer:
    """What Inductor reads of a scheduler buffer, or of an input that may be freed."""

    name: str
    mpi_buffer: Any = None

    def get_name(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class _Dependency:
    name: str


@dataclass(slots=True, eq=False)
class _Node:
    """What Inductor reads of a scheduler node."""

    op: int
    outputs: list[_Buffer] = field(default_factory=list)
    unmet_dependencies: list[_Dependency] = field(default_factory=list)
    mpi_node: Any = None

    def get_outputs(self) -> list[_Buffer]:
        return self.outputs

    def get_buffer_names(self) -> list[str]:
        # One name per node is enough for dependencies, control edges included.
        return [f"op{self.op}"]


def _nodes_of(
    problem: _native.OrderProblem, memory: Any
) -> tuple[list[_Node], dict[str, _Buffer], set[str]]:
    """Return the nodes, the inputs that may be freed, and the names of the outputs."""
    edges, touches, sizes, _, inputs, outputs, _ = _native.problem_rows(problem)
    ordered = import_module("torch.utils._ordered_set").OrderedSet
    nodes = [_Node(op) for op in range(problem.n_ops)]
    touching: list[list[int]] = [[] for _ in sizes]
    for op, storage in touches.reshape(-1, 2).tolist():
        touching[storage].append(op)
    given = set(inputs.tolist())
    buffers = [_Buffer(f"buf{storage}") for storage in range(len(sizes))]
    for node in nodes:
        node.mpi_node = memory.MemoryPlanningInfoForNode(index=node.op)
    for storage, size in enumerate(sizes.tolist()):
        users = sorted(touching[storage])
        readers = users if storage in given else users[1:]  # the first one writes it
        buffer = buffers[storage]
        after = ordered(nodes[op] for op in readers)
        buffer.mpi_buffer = memory.MemoryPlanningInfoForBuffer(size, size, after, after)
        for op in readers:
            nodes[op].mpi_node.pred_buffers.add(buffer)
        if storage not in given and users:
            nodes[users[0]].outputs.append(buffer)
            nodes[users[0]].mpi_node.size += size
    for earlier, later in edges.reshape(-1, 2).tolist():
        nodes[later].mpi_node.pred_nodes.add(nodes[earlier])
        nodes[earlier].mpi_node.succ_nodes.add(nodes[later])
        nodes[later].unmet_dependencies.append(_Dependency(f"op{earlier}"))
    freeable = {buffers[storage].name: buffers[storage] for storage in given}
    return nodes, freeable, {buffers[storage].name for storage in outputs.tolist()}
