"""ExecuTorch programs with a smaller planned arena: order and offsets of the memory pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["memory_planning_algorithm", "memory_planning_pass"]


def memory_planning_algorithm(*, max_nodes: int | None = None, seed: int = 0) -> Callable[..., Any]:
    """Return an algorithm for ExecuTorch's `MemoryPlanningAlgorithmSuite`: offsets alone.

    The suite takes the best of its algorithms: `[memory_planning_algorithm(), greedy]` is never
    worse than greedy.

    Args:
        max_nodes: of the search for offsets in each memory; None: enough for about 50 ms.
        seed: of that search.

    Raises:
        ImportError: executorch is not installed.
    """
    from functools import partial

    from regal.executorch.offsets import regal_offsets

    return partial(regal_offsets, max_nodes=max_nodes, seed=seed)


def memory_planning_pass(
    *,
    evaluations: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    algorithms: list[Callable[..., Any]] | None = None,
    alloc_graph_input: bool = True,
    alloc_graph_output: bool = True,
    alloc_mutable_buffers: bool = True,
    share_mutable_buffers: bool = False,
    alignment: int = 16,
) -> Any:
    """Return a `memory_planning_pass` for `ExecutorchBackendConfig`: order, then offsets.

    Args:
        evaluations: orders to try per method of the program; None: by its size.
        seconds: of wall time of that search; None: no limit, and equal bytes on every machine.
        seed: of both searches.
        algorithms: of the suite; None: ours and ExecuTorch's greedy, of which the better wins.
        alloc_graph_input: as the others below, an option of ExecuTorch's `MemoryPlanningPass`.
        alloc_graph_output: whether outputs are planned.
        alloc_mutable_buffers: whether buffers that the program changes are planned.
        share_mutable_buffers: whether the methods of the program share them.
        alignment: bytes, of offsets and sizes.

    Raises:
        ImportError: executorch is not installed.
    """
    from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite, greedy

    from regal.executorch.planning_pass import OrderedMemoryPlanningPass
    from regal.search.types import Budget

    is_limited = evaluations is not None or seconds is not None
    return OrderedMemoryPlanningPass(
        Budget(evaluations=evaluations, seconds=seconds) if is_limited else None,
        seed,
        MemoryPlanningAlgorithmSuite(
            [memory_planning_algorithm(seed=seed), greedy] if algorithms is None else algorithms
        ),
        alloc_graph_input=alloc_graph_input,
        alloc_graph_output=alloc_graph_output,
        alloc_mutable_buffers=alloc_mutable_buffers,
        share_mutable_buffers=share_mutable_buffers,
        alignment=alignment,
    )
