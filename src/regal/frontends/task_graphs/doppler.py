"""Compute graphs of DOPPLER (ICLR 2026): ops with flops and bytes, on four equal devices.

Lines: the number of nodes with the inputs, the nodes that are inputs, the sources of the edges,
their targets, then one line "flops,bytes" per op (further columns tell its kind). Ops are
numbered without the inputs, so nothing says which op reads which input: inputs are left out.

The cost model is that of the published simulator: an op takes flops / 10^10 milliseconds, its
result bytes / 10^10 milliseconds to each other device, without contention. The memory of the
devices has no limit there. Four devices is the setting of the publication.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.errors import ModelError
from regal.frontends.task_graphs.fields import (
    NS_PER_MS,
    bytes_of,
    integer_in,
    ns_of,
    number_in,
    text_of,
)
from regal.frontends.task_graphs.tasks import TaskGraph, equal_devices

if TYPE_CHECKING:
    from regal.graph.types import LoadedModel

NS_PER_UNIT = NS_PER_MS / 1e10
DEVICES = 4


def parse(data: bytes, name: str) -> LoadedModel:
    """Return the ops and four devices.

    Raises:
        ModelError: names the line.
    """
    lines = [line.strip() for line in text_of(data, name).splitlines()]
    lines = [line for line in lines if line]
    if len(lines) < 5:
        raise ModelError(f"'{name}' has {len(lines)} lines; a DOPPLER graph has at least 5")
    nodes = integer_in(lines[0], f"'{name}': the number of nodes")
    inputs, sources, targets = (
        _numbers(line, f"'{name}': its {what}")
        for line, what in zip(lines[1:4], ("inputs", "sources", "targets"), strict=True)
    )
    if len(sources) != len(targets):
        raise ModelError(f"'{name}' has {len(sources)} sources of edges but {len(targets)} targets")
    rows = lines[4:]
    if len(rows) != nodes - len(inputs):
        raise ModelError(
            f"'{name}' announces {nodes} nodes, {len(inputs)} of them inputs, but lists"
            f" {len(rows)} ops"
        )
    graph = TaskGraph(name.removesuffix(".txt"))
    results = []
    for i, row in enumerate(rows):
        where = f"'{name}': op {i}"
        cells = [cell.strip() for cell in row.split(",")]
        if len(cells) < 2:
            raise ModelError(f"{where} is '{row}', expected flops,bytes")
        flops = number_in(cells[0], f"{where}: its flops")
        size = number_in(cells[1], f"{where}: its bytes")
        kind = cells[2] if len(cells) > 2 and cells[2] else "op"
        task = graph.task(
            f"op{i}", kind, times_ns={"": ns_of(flops, NS_PER_UNIT, f"{where}: its time")}
        )
        transfer_ns = ns_of(size, NS_PER_UNIT, f"{where}: its transfer")
        results.append(graph.value(task, bytes_of(size, where), transfer_ns=transfer_ns))
    for i, (source, target) in enumerate(zip(sources, targets, strict=True)):
        if max(source, target) >= len(rows):
            raise ModelError(
                f"'{name}': edge {i} from op {source} to op {target}; there are {len(rows)} ops"
            )
        graph.read(target, results[source])
    return graph.model(equal_devices(f"{DEVICES} devices", "gpu", DEVICES))


def _numbers(line: str, what: str) -> list[int]:
    return [integer_in(word.strip(), what) for word in line.split(",") if word.strip()]
