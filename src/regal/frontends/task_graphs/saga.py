"""Task graphs of SAGA and DAGBench: tasks with costs, and a network of machines with speeds.

A task of cost c takes c / speed on a machine, a dependency of size s takes s / speed on a link;
links carry any number of transfers. The files leave the units open. Here one unit of time is a
millisecond (what DAGBench's measured graphs use) and one unit of size a byte; where a file has
fractions of units, all its sizes count in thousandths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.devices.types import MOST_DEVICES, Link, System
from regal.errors import ModelError
from regal.frontends.task_graphs.fields import (
    NS_PER_MS,
    bytes_of,
    json_of,
    name_of,
    ns_of,
    number_of,
    object_of,
    rows_of,
)
from regal.frontends.task_graphs.tasks import TaskGraph, device

if TYPE_CHECKING:
    from typing import Any

    from regal.devices.types import Device
    from regal.graph.types import LoadedModel

UNITS_PER_S = 1e9 / NS_PER_MS


def parse(data: bytes, name: str) -> LoadedModel:
    """Return the task graph, and its network if the file has one.

    Raises:
        ModelError: names the task, dependency, machine or link.
    """
    document = json_of(data, name)
    where = f"'{name}'"
    rows = object_of(document["task_graph"], f"{where}: 'task_graph'")
    edges = [
        object_of(edge, f"{where}: dependency {i}")
        for i, edge in enumerate(rows_of(rows, "dependencies", where))
    ]
    sizes = [number_of(edge, "size", f"{where}: dependency {i}") for i, edge in enumerate(edges)]
    scale = 1 if all(size.is_integer() for size in sizes) else 1000
    speeds = _speeds(document, where)
    graph = TaskGraph(name.removesuffix(".json"))
    tasks: dict[str, int] = {}
    for i, row in enumerate(rows_of(rows, "tasks", where)):
        task = object_of(row, f"{where}: task {i}")
        label = name_of(task, "name", f"{where}: task {i}")
        if label in tasks:
            raise ModelError(f"{where}: two tasks are named '{label}'; names identify tasks")
        cost = number_of(task, "cost", f"{where}: task '{label}'")
        times = {
            _kind(speed): ns_of(cost / speed, NS_PER_MS, f"{where}: the time of task '{label}'")
            for speed in speeds.values()
        }
        reference = next(iter(speeds.values()), 1.0)
        times[""] = ns_of(cost / reference, NS_PER_MS, f"{where}: the time of task '{label}'")
        tasks[label] = graph.task(label, "task", times_ns=times)
    for i, (edge, size) in enumerate(zip(edges, sizes, strict=True)):
        ends = [name_of(edge, key, f"{where}: dependency {i}") for key in ("source", "target")]
        for end in ends:
            if end not in tasks:
                raise ModelError(f"{where}: dependency {i} names task '{end}', which is none")
        taken = bytes_of(size * scale, f"{where}: dependency {i}")
        graph.hand_over(tasks[ends[0]], tasks[ends[1]], taken, None)
    return graph.model(_system(document, speeds, scale, name) if speeds else None)


def _kind(speed: float) -> str:
    """Return the kind of device that all machines of one speed are."""
    return f"speed {speed:g}"


def _speeds(document: dict[str, Any], where: str) -> dict[str, float]:
    """Return machine -> speed."""
    if "network" not in document:
        return {}
    network = object_of(document["network"], f"{where}: 'network'")
    machines = rows_of(network, "nodes", f"{where}: 'network'")
    if not 1 <= len(machines) <= MOST_DEVICES:
        raise ModelError(
            f"{where}: its network has {len(machines)} machines, expected 1 to {MOST_DEVICES}"
        )
    speeds: dict[str, float] = {}
    for i, row in enumerate(machines):
        machine = object_of(row, f"{where}: machine {i}")
        label = name_of(machine, "name", f"{where}: machine {i}")
        if label in speeds:
            raise ModelError(f"{where}: two machines are named '{label}'; names identify them")
        speeds[label] = _speed(machine, f"{where}: machine '{label}'")
    return speeds


def _speed(fields: dict[str, Any], where: str) -> float:
    speed = number_of(fields, "speed", where)
    if speed < 1e-9:
        raise ModelError(f"{where}: 'speed' is {speed:g}, expected more than 0")
    return speed


def _system(document: dict[str, Any], speeds: dict[str, float], scale: int, name: str) -> System:
    """Return the machines; a link that the file gives one way works both ways."""
    names = list(speeds)
    links: dict[tuple[int, int], Link] = {}
    rows = rows_of(document["network"], "edges", f"'{name}': 'network'")
    for i, row in enumerate(rows):
        edge = object_of(row, f"'{name}': link {i}")
        ends = [name_of(edge, key, f"'{name}': link {i}") for key in ("source", "target")]
        for end in ends:
            if end not in speeds:
                raise ModelError(f"'{name}': link {i} names machine '{end}', which is none")
        a, b = names.index(ends[0]), names.index(ends[1])
        speed = _speed(edge, f"'{name}': link {i}") * scale * UNITS_PER_S
        if a != b:
            links[a, b] = Link(latency_ns=0, bytes_per_s=speed)
            links.setdefault((b, a), links[a, b])
    devices: list[Device] = [device(label, _kind(speed)) for label, speed in speeds.items()]
    pairs = [(a, b) for a in range(len(names)) for b in range(len(names)) if a != b]
    missing = next((pair for pair in pairs if pair not in links), None)
    if missing is not None:
        first, second = names[missing[0]], names[missing[1]]
        raise ModelError(f"'{name}': its network has no link from '{first}' to '{second}'")
    return System(
        name=f"network of {name.removesuffix('.json')}",
        devices=tuple(devices),
        links=links,
        has_contention=False,
    )
