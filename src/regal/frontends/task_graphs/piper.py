"""Inputs of the Piper planner (NeurIPS 2021): layers with times, sizes, and equal devices.

One JSON object: `maxDevices` devices with `maxMemoryPerDevice` bytes and `bandwidth` bytes/s to
the outside, `nodes` with their ways to run (`TMPCs`: tensor parallel degree -> variants), and
`edges` with bytes. Times and bandwidth speak of seconds. Read is what one device can do with one
sample: the first variant of degree 1, forward and backward in one op; each layer holds
`memoryUsageA` (activations kept for the backward pass) and `memoryUsageB` (weights and what the
optimizer adds) on its device all the time. An edge carries its bytes forward and backward, so it
is one value of twice the bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.devices.types import MOST_DEVICES
from regal.errors import ModelError
from regal.frontends.task_graphs.fields import (
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
from regal.units import NS_PER_S

if TYPE_CHECKING:
    from typing import Any

    from regal.graph.types import LoadedModel


def parse(data: bytes, name: str) -> LoadedModel:
    """Return the layers and their devices.

    Raises:
        ModelError: names the node or edge.
    """
    document = json_of(data, name)
    graph = TaskGraph(name.removesuffix(".json"))
    tasks: dict[int, int] = {}
    for position, row in enumerate(rows_of(document, "nodes", f"'{name}'")):
        where = f"'{name}': node {position}"
        node = object_of(row, where)
        number = id_of(node, "id", where)
        if number in tasks:
            raise ModelError(f"{where} has id {number}, as an earlier node has; ids are unique")
        variant = _variant(node, where)
        memory = number_of(variant, "memoryUsageA", where) + number_of(
            variant, "memoryUsageB", where
        )
        time = number_of(variant, "timePerSample", where)
        kind = name_of(node, "name", where) if "name" in node else "layer"
        tasks[number] = graph.task(
            f"{kind}#{number}",
            kind,
            times_ns={"": ns_of(time, NS_PER_S, f"{where}: 'timePerSample'")},
            parameter_bytes=bytes_of(memory, f"{where}: its memory"),
        )
    for position, row in enumerate(rows_of(document, "edges", f"'{name}'")):
        where = f"'{name}': edge {position}"
        edge = object_of(row, where)
        ends = [id_of(edge, key, where) for key in ("sourceId", "destId")]
        for end in ends:
            if end not in tasks:
                raise ModelError(f"{where} names node {end}, which does not exist")
        size = 2 * number_of(edge, "communicationCost", where)
        graph.hand_over(tasks[ends[0]], tasks[ends[1]], bytes_of(size, where), None)
    count = count_of(document, "maxDevices", f"'{name}'", MOST_DEVICES)
    bandwidth = number_of(document, "bandwidth", f"'{name}'")
    if bandwidth < 1:
        raise ModelError(f"'{name}': 'bandwidth' is {bandwidth:g} bytes/s, expected 1 or more")
    return graph.model(
        equal_devices(
            f"{count} devices",
            "gpu",
            count,
            memory_bytes=int(number_of(document, "maxMemoryPerDevice", f"'{name}'")),
            bytes_per_s=bandwidth,
            capacity_counts_live=False,
        )
    )


def _variant(node: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the first way to run a node on one device."""
    ways = object_of(node.get("TMPCs"), f"{where}: 'TMPCs'")
    if "1" not in ways:
        raise ModelError(f"{where} cannot run on one device: 'TMPCs' has degrees {sorted(ways)}")
    variants = rows_of(ways, "1", f"{where}: 'TMPCs'")
    if not variants:
        raise ModelError(f"{where}: 'TMPCs' of degree 1 is empty")
    return object_of(variants[0], f"{where}: the first variant of degree 1")
