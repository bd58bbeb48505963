"""Graphs whose optimum is known because they are cut out of a schedule that wastes nothing.

"time": on each of D equal devices one op follows the other without a gap until T. An op reads
what was made before on its own device, or what a link could bring by then. All ops together take
D * T, so no schedule is faster than T.

"memory": on each device the outputs of the graph add up to P bytes, and what is live besides
never exceeds what is still missing. All outputs together take D * P and live to the end, so no
schedule has a lower peak than P.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from regal.graph.builder import GraphBuilder
from regal.plan.schedule import Schedule, Transfer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.graph.types import Graph

PLANTED: Final = ("time", "memory")
# Times and sizes are multiples of these: with any number there would be one way to add up to
# the optimum, which no search finds.
STEP_NS, STEP_BYTES = 1_000, 256
MEAN_NS, MEAN_BYTES = 10 * STEP_NS, 16 * STEP_BYTES  # of an op
TRANSFER_NS = 2 * STEP_NS
CHAIN_ENDS = 0.15  # chance that an op begins a new chain ("memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A graph, the number of equal devices that it was cut for, and its optimum there."""

    graph: Graph
    n_devices: int
    schedule: Schedule  # one that reaches the optimum
    time_ns: int | None = None  # the least, if that is planted
    peak_bytes: int | None = None  # the least, if that is planted


@dataclass(frozen=True, slots=True)
class _Task:
    """An op of the schedule that a graph is cut out of."""

    device: int
    start: int
    end: int


def planted_graph(kind: str, n_ops: int, n_devices: int, seed: int) -> Planted:
    """Return a graph of about `n_ops` ops with a known optimum on `n_devices` equal devices.

    Op times, and what a transfer takes, are given in the graph: they hold on any system. The
    seed decides everything; the order of the file tells nothing.

    Args:
        kind: one of `PLANTED`.
        n_ops: at least 2 per device.
        n_devices: D.
        seed: of every choice.

    Cost: O(n_ops).
    """
    rng = random.Random(f"planted {kind} {n_ops} {n_devices} {seed}")
    each = max(2, n_ops // n_devices)
    name = f"planted/{kind}/d{n_devices}-n{each * n_devices}-{seed}"
    if kind == "time":
        return _planted_time(rng, each, n_devices, name)
    return _planted_memory(rng, each, n_devices, name)


def _planted_time(rng: random.Random, each: int, n_devices: int, name: str) -> Planted:
    """Return ops without gaps, and edges that were on time."""
    tasks = []
    for device in range(n_devices):
        at = 0
        for length in _parts(rng, each, each * MEAN_NS, STEP_NS):
            tasks.append(_Task(device, at, at + length))
            at += length
    tasks.sort(key=lambda task: (task.start, task.device))
    reads: list[list[int]] = [[] for _ in tasks]
    arrivals: dict[tuple[int, int], int] = {}  # (task, target device) -> when its tensor is there
    sends: list[tuple[int, int, int]] = []  # (when, task, target device)
    free: dict[tuple[int, int], int] = {}  # link -> when it is free
    by_device: list[list[int]] = [[] for _ in range(n_devices)]
    for i, task in enumerate(tasks):
        for _ in range(rng.choice((1, 1, 2, 3))):
            device = rng.randrange(n_devices)
            near = by_device[device][-6:]
            if not near:
                continue
            source = rng.choice(near)
            if device == task.device:
                reads[i].append(source)
                continue
            if (source, task.device) not in arrivals:
                begin = max(tasks[source].end, free.get((device, task.device), 0))
                if begin + TRANSFER_NS > task.start:
                    continue
                free[device, task.device] = begin + TRANSFER_NS
                arrivals[source, task.device] = begin + TRANSFER_NS
                sends.append((begin, source, task.device))
            if arrivals[source, task.device] <= task.start:
                reads[i].append(source)
        by_device[task.device].append(i)
    reads = [sorted(set(row)) for row in reads]
    op_of = _shuffled(rng, reads)
    g = GraphBuilder(name)
    made = [0] * len(tasks)
    for i in sorted(range(len(tasks)), key=lambda i: op_of[i]):
        (made[i],) = g.op("Task", [made[j] for j in reads[i]], [rng.randint(1, 2 * MEAN_BYTES)])
    read = {j for row in reads for j in row}
    graph = g.build(outputs=[made[i] for i in range(len(tasks)) if i not in read])
    times = {op_of[i]: task.end - task.start for i, task in enumerate(tasks)}
    schedule = Schedule(
        placement=_by_op([task.device for task in tasks], op_of),
        order=tuple(op_of),
        transfers=tuple(
            Transfer(tensor=made[i], source=tasks[i].device, target=target)
            for _, i, target in sorted(sends)
        ),
        homes={},
    )
    return Planted(
        graph=_timed(graph, times),
        n_devices=n_devices,
        schedule=schedule,
        time_ns=each * MEAN_NS,
    )


def _planted_memory(rng: random.Random, each: int, n_devices: int, name: str) -> Planted:
    """Return chains whose outputs fill the devices; what they hand on fits beside them."""
    total = each * MEAN_BYTES
    kept: list[int] = []
    handed: list[int] = []
    device_of: list[int] = []
    reads: list[list[int]] = []
    for device in range(n_devices):
        sizes = _parts(rng, each, total, STEP_BYTES)
        left = total
        for j, size in enumerate(sizes):
            left -= size
            # Beside what came before, half of what the next op will still leave free.
            room = (left - sizes[j + 1]) // 2 if j + 1 < each else 0
            has_reader = room > 0 and rng.random() >= CHAIN_ENDS
            handed.append(rng.randint(1, room) if has_reader else 0)
            is_linked = j > 0 and handed[-2] > 0
            reads.append([len(kept) - 1] if is_linked else [])
            kept.append(size)
            device_of.append(device)
    op_of = _shuffled(rng, reads)
    g = GraphBuilder(name)
    outputs, links = [], [0] * len(kept)
    for i in sorted(range(len(kept)), key=lambda i: op_of[i]):
        sizes = [kept[i], handed[i]] if handed[i] else [kept[i]]
        made = g.op("Task", [links[j] for j in reads[i]], sizes)
        outputs.append(made[0])
        links[i] = made[-1]
    times = {op: rng.randint(STEP_NS, 2 * MEAN_NS) for op in range(len(kept))}
    schedule = Schedule(
        placement=_by_op(device_of, op_of), order=tuple(op_of), transfers=(), homes={}
    )
    return Planted(
        graph=_timed(g.build(outputs=outputs), times),
        n_devices=n_devices,
        schedule=schedule,
        peak_bytes=total,
    )


def _parts(rng: random.Random, n: int, total: int, step: int) -> list[int]:
    """Return n multiples of `step`, of at least one, that add up to `total`."""
    spare = total // step - n
    cuts = sorted(rng.randint(0, spare) for _ in range(n - 1))
    return [step * (1 + end - begin) for begin, end in zip([0, *cuts], [*cuts, spare], strict=True)]


def _shuffled(rng: random.Random, reads: Sequence[Sequence[int]]) -> list[int]:
    """Return task -> op: a random order in which every op comes after those that it reads."""
    readers: list[list[int]] = [[] for _ in reads]
    waits = [len(row) for row in reads]
    for i, row in enumerate(reads):
        for j in row:
            readers[j].append(i)
    ready = [i for i, count in enumerate(waits) if count == 0]
    op_of = [0] * len(reads)
    for op in range(len(reads)):
        i = ready.pop(rng.randrange(len(ready)))
        op_of[i] = op
        for reader in readers[i]:
            waits[reader] -= 1
            if waits[reader] == 0:
                ready.append(reader)
    return op_of


def _by_op(values: Sequence[int], op_of: Sequence[int]) -> tuple[int, ...]:
    found = [0] * len(values)
    for value, op in zip(values, op_of, strict=True):
        found[op] = value
    return tuple(found)


def _timed(graph: Graph, times: dict[int, int]) -> Graph:
    """Return the graph with its op times and what sending a tensor takes."""
    return replace(
        graph,
        ops=tuple(replace(op, times_ns={"": times[i]}) for i, op in enumerate(graph.ops)),
        tensors=tuple(replace(tensor, transfer_ns=TRANSFER_NS) for tensor in graph.tensors),
    )
