"""What ops take when their buffers lie in several memories of one device."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from regal.cost.operands import size_of
from regal.cost.roofline import BYTES, ROOFLINE, peak_of
from regal.cost.types import FORBIDDEN
from regal.cost.work import work_of
from regal.graph.types import ABSENT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.cost.types import GraphCost
    from regal.cost.work import Work
    from regal.devices.types import Device
    from regal.graph.types import Graph, Op


def pooled_time_ns(
    graph: Graph,
    pool_of_storage: Mapping[int, int],
    pool_of_workspace: Mapping[int, int],
    device: Device,
    cost: GraphCost,
) -> int:
    """Return the running time of a graph, each op as fast as the memories that it touches.

    launch + max(operations / peak, sum over pools of bytes moved there / bandwidth); the bytes
    that an op moves are split like the sizes of its operands. Times that were measured or given
    stay, and so do those of ops with bodies. A storage that is not named lies in the first pool.

    Args:
        graph: N ops.
        pool_of_storage: position in the pools.
        pool_of_workspace: the same for the scratch memory of ops.
        device: with pools.
        cost: of the graph on this device.

    Cost: O(N operands).
    """
    total = 0
    for i, op in enumerate(graph.ops):
        given, source = cost.op_ns[i][0], cost.sources[i]
        work = work_of(op, graph.tensors, graph.framework)
        peak = peak_of(device, work)
        is_fixed = source not in (BYTES, ROOFLINE) or op.subgraphs or work.kind == "none"
        if is_fixed or peak is None or given == FORBIDDEN:
            total += given
            continue
        touched = _touched(op, graph, pool_of_storage, pool_of_workspace.get(i, 0))
        moving = _moving_ns(work, device, touched)
        total += device.launch_ns + ceil(max(work.flops * 1e9 / peak, moving))
    return total


def _touched(
    op: Op, graph: Graph, pool_of_storage: Mapping[int, int], workspace_pool: int
) -> dict[int, int]:
    """Return pool -> bytes of the operands of an op that lie there."""
    touched = {workspace_pool: op.workspace_bytes}
    for t in {t for t in (*op.inputs, *op.outputs) if t != ABSENT}:
        pool = pool_of_storage.get(graph.tensors[t].storage, 0)
        touched[pool] = touched.get(pool, 0) + size_of(graph.tensors[t])
    return touched


def _moving_ns(work: Work, device: Device, touched: Mapping[int, int]) -> float:
    total = sum(touched.values())
    if not total:
        return work.bytes * 1e9 / (device.pools[0].bytes_per_s or device.bytes_per_s)
    return sum(
        work.bytes * (size / total) * 1e9 / (device.pools[pool].bytes_per_s or device.bytes_per_s)
        for pool, size in sorted(touched.items())
    )
