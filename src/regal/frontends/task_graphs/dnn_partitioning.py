"""Graphs of "Efficient Algorithms for Device Placement of DNN Graph Operators" (NeurIPS 2020).

One JSON object: `maxFPGAs` equal accelerators ("FPGA" in the files, whatever they are) with
`maxSizePerFPGA` bytes each, `nodes` with a time on an accelerator and on a CPU, and `edges` with
the time between an accelerator and the memory of the host. Times are in milliseconds.

The cost model of the known optima (docs/task-graphs.md): an op that accelerators do not
support takes its CPU time; a tensor that changes devices goes through the host's memory, so it
takes twice the cost of its edge, without contention; the sizes of the nodes on a device, summed,
are limited, and activations do not count there.
"""

from __future__ import annotations

from collections import Counter
from reprlib import repr as repr_of
from typing import TYPE_CHECKING

from regal.devices.types import MOST_DEVICES
from regal.errors import ModelError
from regal.frontends.task_graphs.fields import (
    NS_PER_MS,
    bytes_of,
    count_of,
    id_of,
    json_of,
    name_of,
    ns_of,
    number_of,
    object_of,
    rows_of,
)
from regal.frontends.task_graphs.tasks import TaskGraph, equal_devices

if TYPE_CHECKING:
    from typing import Any

    from regal.devices.types import System
    from regal.graph.types import LoadedModel


def parse(data: bytes, name: str, *, with_colors: bool = False) -> LoadedModel:
    """Return the graph and its accelerators.

    With `with_colors`, nodes of one `colorClass` are colocated. The format asks for it; the
    known optima of this cost model leave it out (docs/decisions/0017 has both).

    Raises:
        ModelError: names the node or edge.
    """
    document = json_of(data, name)
    graph = TaskGraph(name.removesuffix(".json"))
    nodes = [
        object_of(node, f"'{name}': node {i}")
        for i, node in enumerate(rows_of(document, "nodes", f"'{name}'"))
    ]
    labels = [node.get("name") for node in nodes]
    counts = Counter(label for label in labels if isinstance(label, str))
    tasks: dict[int, int] = {}
    for position, node in enumerate(nodes):
        where = f"'{name}': node {position}"
        number = id_of(node, "id", where)
        if number in tasks:
            raise ModelError(f"{where} has id {number}, as an earlier node has; ids are unique")
        label = name_of(node, "name", where) if "name" in node else "node"
        where = f"{where} ('{label}')"
        tasks[number] = graph.task(
            label if counts[label] == 1 else f"{label}#{number}",
            "backward" if _flag(node, "isBackwardNode", where, default=False) else "forward",
            times_ns=_times(node, where),
            parameter_bytes=bytes_of(number_of(node, "size", where, 0), f"{where}: 'size'"),
            colocation=_color(node, where) if with_colors else "",
        )
    _add_edges(graph, tasks, document, name)
    return graph.model(_system(document, name))


def _times(node: dict[str, Any], where: str) -> dict[str, int]:
    """Return the time on a CPU, and on all else: an accelerator, if it supports the node."""
    times = {
        key: ns_of(number_of(node, key, where), NS_PER_MS, f"{where}: '{key}'")
        for key in ("cpuLatency", "fpgaLatency")
    }
    is_supported = _flag(node, "supportedOnFpga", where)
    return {"cpu": times["cpuLatency"], "": times["fpgaLatency" if is_supported else "cpuLatency"]}


def _color(node: dict[str, Any], where: str) -> str:
    return f"color {id_of(node, 'colorClass', where)}" if "colorClass" in node else ""


def _flag(node: dict[str, Any], key: str, where: str, *, default: bool | None = None) -> bool:
    value = node.get(key, default)
    if value not in (True, False, 0, 1) or isinstance(value, float):
        raise ModelError(f"{where}: '{key}' is {repr_of(value)}, expected 0 or 1")
    return bool(value)


def _add_edges(
    graph: TaskGraph, tasks: dict[int, int], document: dict[str, Any], name: str
) -> None:
    for position, row in enumerate(rows_of(document, "edges", f"'{name}'")):
        where = f"'{name}': edge {position}"
        edge = object_of(row, where)
        ends = [id_of(edge, key, where) for key in ("sourceId", "destId")]
        for end in ends:
            if end not in tasks:
                raise ModelError(f"{where} names node {end}, which does not exist")
        cost = 2 * number_of(edge, "cost", where)
        size = bytes_of(number_of(edge, "size", where, 0), f"{where}: 'size'")
        transfer_ns = ns_of(cost, NS_PER_MS, f"{where}: twice its 'cost'")
        graph.hand_over(tasks[ends[0]], tasks[ends[1]], size, transfer_ns)


def _system(document: dict[str, Any], name: str) -> System:
    count = count_of(document, "maxFPGAs", f"'{name}'", MOST_DEVICES)
    memory = number_of(document, "maxSizePerFPGA", f"'{name}'")
    return equal_devices(
        f"{count} accelerators",
        "fpga",
        count,
        memory_bytes=int(memory),
        capacity_counts_live=False,
    )
