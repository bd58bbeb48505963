"""Problems for searches, and all schedules of tiny ones: every placement, order, transfer order."""

from __future__ import annotations

import itertools
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from tests.baselines.devices.problems import task_graph
from tests.device_problems import TinyDevices, random_devices

if TYPE_CHECKING:
    from collections.abc import Iterator


def all_schedules(tiny: TinyDevices) -> Iterator[_native.DeviceFigures]:
    """Yield the figures of every placement, order and sequence of transfers."""
    problem = tiny.native()
    for placement in itertools.product(range(tiny.n_devices), repeat=tiny.n_ops):
        if not is_allowed(tiny, placement):
            continue
        for order in topological_orders(tiny):
            for homes in all_homes(tiny, placement):
                sends = needed_sends(tiny, placement, homes)
                for sequence in itertools.permutations(sends):
                    schedule = _native.DeviceSchedule(
                        np.array(placement, dtype=np.int64),
                        np.array(order, dtype=np.int64),
                        np.array(sequence, dtype=np.int64).reshape(-1, 3),
                        np.array(homes, dtype=np.int64),
                    )
                    figures = _native.simulate_devices(problem, schedule)
                    if figures is not None:
                        yield figures


def is_allowed(tiny: TinyDevices, placement: tuple[int, ...]) -> bool:
    together = all(
        placement[a] == placement[b]
        for a in range(tiny.n_ops)
        for b in range(tiny.n_ops)
        if tiny.groups[a] == tiny.groups[b] >= 0
    )
    return together and all(tiny.durations[v][d] > 0 for v, d in enumerate(placement))


def topological_orders(tiny: TinyDevices) -> Iterator[list[int]]:
    for order in itertools.permutations(range(tiny.n_ops)):
        place = {op: step for step, op in enumerate(order)}
        if all(place[u] < place[v] for v in range(tiny.n_ops) for u in tiny.predecessors(v)):
            yield list(order)


def all_homes(tiny: TinyDevices, placement: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    choices = [
        [-1] if tiny.producers[t] >= 0 else sorted({placement[v] for v in tiny.readers(t)}) or [0]
        for t in range(tiny.n_tensors)
    ]
    return itertools.product(*choices)


def needed_sends(
    tiny: TinyDevices, placement: tuple[int, ...], homes: tuple[int, ...]
) -> list[tuple[int, int, int]]:
    sources = [homes[t] if p < 0 else placement[p] for t, p in enumerate(tiny.producers)]
    return sorted(
        {(t, sources[t], placement[v]) for v, t in tiny.reads if placement[v] != sources[t]}
    )


def small_problems(count: int) -> Iterator[tuple[int, TinyDevices]]:
    """Yield (seed, problem) of random problems whose schedules can all be tried."""
    problems = ((s, random_devices(s, most_ops=4, most_devices=2)) for s in itertools.count())
    small = (pair for pair in problems if pair[1].n_ops >= 2 and len(pair[1].reads) <= 4)
    return itertools.islice(small, count)


@cache
def tried_problems() -> list[tuple[TinyDevices, set[tuple[int, int, int]]]]:
    """Return random problems with the (overflow, time, peak) of all their schedules."""
    return [
        (tiny, {(f.overflow, f.time, f.most) for f in all_schedules(tiny)})
        for _, tiny in small_problems(25)
    ]


def layered(seed: int, n_ops: int, n_devices: int = 2) -> TinyDevices:
    """Return a graph of layers of 8 with costs of many sizes and dear transfers."""
    rng = np.random.default_rng(seed)
    durations = [[int(rng.integers(5, 100))] * n_devices for _ in range(n_ops)]
    edges = [
        (int(rng.integers(max(0, v - v % 8 - 8), v - v % 8)), v, int(rng.integers(1, 60)))
        for v in range(8, n_ops)
        for _ in range(2)
    ]
    sizes = rng.integers(1, 1000, len(edges)).tolist()
    return task_graph(durations, edges, bytes_of=sizes, has_contention=True)
