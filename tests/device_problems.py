"""Random problems on several devices, small enough for slow oracles."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from regal import _native

if TYPE_CHECKING:
    from collections.abc import Sequence

NEVER = -1  # the device cannot run the op
UNLIMITED = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TinyDevices:
    """A problem as plain rows; `native` builds its kernel form."""

    n_devices: int
    durations: tuple[tuple[int, ...], ...]  # op, device
    workspace: tuple[int, ...]
    groups: tuple[int, ...]
    reads: tuple[tuple[int, int], ...]  # op, tensor
    producers: tuple[int, ...]
    storages: tuple[int, ...]  # tensor -> storage or -1
    outputs: frozenset[int]
    controls: tuple[tuple[int, int], ...]
    bytes: tuple[int, ...]
    in_place: tuple[tuple[int, int, int], ...]
    resident_bytes: tuple[int, ...]
    resident_users: tuple[tuple[int, int], ...]
    capacity: tuple[int, ...]
    links: tuple[tuple[int, ...], ...]  # class, -1 on the diagonal
    transfers: tuple[tuple[int, ...], ...]  # class, tensor
    latency: tuple[tuple[int, ...], ...]
    has_contention: bool = True
    capacity_counts_live: bool = True

    @property
    def n_ops(self) -> int:
        return len(self.durations)

    @property
    def n_tensors(self) -> int:
        return len(self.producers)

    def transfer(self, tensor: int, source: int, target: int) -> int:
        return self.transfers[self.links[source][target]][tensor]

    def readers(self, tensor: int) -> list[int]:
        return [op for op, t in self.reads if t == tensor]

    def predecessors(self, op: int) -> set[int]:
        data = {self.producers[t] for v, t in self.reads if v == op} - {-1}
        return data | {a for a, b in self.controls if b == op}

    def native(self) -> _native.DeviceProblem:
        verdict, problem = self.verdict_and_native()
        assert verdict.fault is _native.DeviceFault.NONE, (verdict.fault, verdict.guilty)
        return problem

    def verdict_and_native(self) -> tuple[_native.DeviceVerdict, _native.DeviceProblem]:
        return _native.build_device_problem(
            table(self.durations, self.n_devices),
            ints(self.workspace),
            ints(self.groups),
            table(self.reads, 2),
            ints(self.producers),
            ints(self.storages),
            ints(sorted(self.outputs)),
            table(self.controls, 2),
            ints(self.bytes),
            table(self.in_place, 3),
            ints(self.resident_bytes),
            table(self.resident_users, 2),
            ints(self.capacity),
            table(self.links, self.n_devices),
            np.array(self.transfers, dtype=np.int64).reshape(len(self.transfers), self.n_tensors),
            table(self.latency, self.n_devices),
            self.has_contention,
            self.capacity_counts_live,
        )


def ints(values: Sequence[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def table(rows: Sequence[Sequence[int]], columns: int) -> np.ndarray:
    return np.array(rows, dtype=np.int64).reshape(-1, columns)


def random_devices(seed: int, *, most_ops: int = 7, most_devices: int = 3) -> TinyDevices:
    """Return a problem with tiny numbers: ties, aliases, in-place, colocation, all corners."""
    rng = random.Random(seed)
    n = rng.randint(0, most_ops)
    devices = rng.randint(1, most_devices)
    producers = [v for v in range(n) for _ in range(rng.choice([0, 1, 1, 1, 2]))]
    producers += [-1] * rng.randint(0, 2)
    rng.shuffle(producers)
    tensors = range(len(producers))
    storages, sizes = _random_storages(rng, len(producers))
    outputs = frozenset(t for t in tensors if rng.random() < 0.2)
    reads = [
        (v, t) for v in range(n) for t in tensors if producers[t] < v and rng.random() < 2.5 / n
    ]
    kept = {storages[t] for t in outputs}
    given = {storages[t] for t in tensors if producers[t] < 0}
    in_place = [
        (v, storages[a], storages[b])
        for v in range(n)
        for a in tensors
        for b in tensors
        if (v, a) in reads
        and producers[b] == v
        and -1 not in (storages[a], storages[b])
        and storages[a] != storages[b]
        and sizes[storages[a]] == sizes[storages[b]]
        and storages[a] not in kept
        and storages[b] not in given
        and rng.random() < 0.7
    ]
    durations = [[rng.randint(1, 3) for _ in range(devices)] for _ in range(n)]
    groups = [rng.choice([-1, -1, -1, 0, 1]) for _ in range(n)]
    free = [rng.randrange(devices) for _ in range(2)]  # where a group may run at least
    for v in range(n):
        for d in range(devices):
            if rng.random() < 0.1 and d != free[max(groups[v], 0)]:
                durations[v][d] = NEVER
    off_diagonal = [[a != b for b in range(devices)] for a in range(devices)]
    residents = rng.randint(0, 2)
    rng.shuffle(in_place)
    return TinyDevices(
        n_devices=devices,
        durations=tuple(tuple(row) for row in durations),
        workspace=tuple(rng.choice([0, 0, 1, 3]) for _ in range(n)),
        groups=tuple(groups),
        reads=tuple(reads),
        producers=tuple(producers),
        storages=tuple(storages),
        outputs=outputs,
        controls=tuple(
            (a, b) for b in range(n) for a in range(b) if rng.random() < 0.3 / max(b, 1)
        ),
        bytes=tuple(sizes),
        in_place=tuple(in_place),
        resident_bytes=tuple(rng.randint(0, 3) for _ in range(residents)),
        resident_users=tuple(
            (v, r) for v in range(n) for r in range(residents) if rng.random() < 0.3
        ),
        capacity=tuple(rng.choice([0, 2, 5, UNLIMITED]) for _ in range(devices)),
        links=tuple(tuple(rng.randint(0, 1) if far else -1 for far in row) for row in off_diagonal),
        transfers=tuple(tuple(rng.randint(1, 3) for _ in tensors) for _ in range(2)),
        latency=tuple(
            tuple(rng.randint(0, 2) if far else 0 for far in row) for row in off_diagonal
        ),
        has_contention=rng.random() < 0.7,
        capacity_counts_live=rng.random() < 0.8,
    )


def _random_storages(rng: random.Random, n_tensors: int) -> tuple[list[int], list[int]]:
    """Return tensor -> storage and the bytes of each; some tensors share one, some have none."""
    storages: list[int] = []
    for _ in range(n_tensors):
        used = max(storages, default=-1) + 1
        choice = rng.random()
        storages.append(
            -1 if choice < 0.1 else rng.randrange(used) if choice < 0.3 and used else used
        )
    return storages, [rng.randint(1, 3) for _ in range(max(storages, default=-1) + 1)]


def random_placement(problem: TinyDevices, rng: random.Random) -> list[int]:
    """Return a device for every op, legal ones and colocated."""
    placement = [-1] * problem.n_ops
    for v, group in enumerate(problem.groups):
        members = [
            w for w in range(problem.n_ops) if w == v or (group >= 0 and problem.groups[w] == group)
        ]
        choices = [
            d for d in range(problem.n_devices) if all(problem.durations[w][d] > 0 for w in members)
        ]
        if placement[v] < 0:
            device = rng.choice(choices)
            for w in members:
                placement[w] = device
    return placement


def random_order(problem: TinyDevices, rng: random.Random) -> list[int]:
    """Return a topological order."""
    order: list[int] = []
    while len(order) < problem.n_ops:
        ready = [
            v
            for v in range(problem.n_ops)
            if v not in order and problem.predecessors(v) <= set(order)
        ]
        order.append(rng.choice(ready))
    return order


def pair_of_devices(**changes: Any) -> TinyDevices:
    """Return x -> a -> t -> b, with a on device 0 and b on device 1 by choice of the tests."""
    base = TinyDevices(
        n_devices=2,
        durations=((3, 3), (2, 2)),
        workspace=(0, 0),
        groups=(-1, -1),
        reads=((0, 0), (1, 1)),
        producers=(-1, 0, 1),
        storages=(0, 1, 2),
        outputs=frozenset({2}),
        controls=(),
        bytes=(5, 7, 4),
        in_place=(),
        resident_bytes=(),
        resident_users=(),
        capacity=(10, 10),
        links=((-1, 0), (0, -1)),
        transfers=((1, 4, 1),),
        latency=((0, 9), (9, 0)),
    )
    return replace(base, **changes)
