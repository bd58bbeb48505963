"""Problems on several devices as the methods take them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from regal.plan.schedule_problem import ScheduleProblem
from tests.device_problems import UNLIMITED, TinyDevices, ints, table

if TYPE_CHECKING:
    from collections.abc import Sequence


def schedule_problem_of(tiny: TinyDevices) -> ScheduleProblem:
    data = [(tiny.producers[t], v, t) for v, t in tiny.reads if tiny.producers[t] >= 0]
    transfers = np.array(tiny.transfers, dtype=np.int64)
    return ScheduleProblem(
        native=tiny.native(),
        durations=table(tiny.durations, tiny.n_devices),
        data_edges=table(data, 3),
        control_edges=table(tiny.controls, 2),
        input_reads=table([(v, t) for v, t in tiny.reads if tiny.producers[t] < 0], 2),
        producers=ints(tiny.producers),
        tensor_storages=ints(tiny.storages),
        outputs=ints(sorted(tiny.outputs)),
        storage_bytes=ints(tiny.bytes),
        workspace=ints(tiny.workspace),
        groups=ints(tiny.groups),
        in_place=table(tiny.in_place, 3),
        resident_bytes=ints(tiny.resident_bytes),
        resident_users=table(tiny.resident_users, 2),
        capacity=ints(tiny.capacity),
        link_classes=table(tiny.links, tiny.n_devices),
        transfers=transfers.reshape(len(tiny.transfers), tiny.n_tensors),
        latency=table(tiny.latency, tiny.n_devices),
        tensors=tuple(range(tiny.n_tensors)),
        storages=tuple(range(len(tiny.bytes))),
        residents=tuple(range(len(tiny.resident_bytes))),
        tensors_of_pair={},
        has_contention=tiny.has_contention,
        capacity_counts_live=tiny.capacity_counts_live,
    )


def task_graph(
    durations: Sequence[Sequence[int]],
    edges: Sequence[tuple[int, int, int]],
    *,
    bytes_of: Sequence[int] = (),
    groups: Sequence[int] = (),
    resident_bytes: Sequence[int] = (),
    capacity: Sequence[int] = (),
    controls: Sequence[tuple[int, int]] = (),
    latency: int = 0,
    has_contention: bool = False,
) -> TinyDevices:
    """Return tasks with one tensor per edge (earlier op, later op, time of a transfer).

    `resident_bytes` are parameters of the op of that number. Tensors take no memory, unless
    `bytes_of` says so per edge.
    """
    n, devices = len(durations), len(durations[0])
    apart = [[a != b for b in range(devices)] for a in range(devices)]
    return TinyDevices(
        n_devices=devices,
        durations=tuple(tuple(row) for row in durations),
        workspace=(0,) * n,
        groups=tuple(groups) or (-1,) * n,
        reads=tuple((later, row) for row, (_, later, _) in enumerate(edges)),
        producers=tuple(earlier for earlier, _, _ in edges),
        storages=tuple(range(len(edges))) if bytes_of else (-1,) * len(edges),
        outputs=frozenset(),
        controls=tuple(controls),
        bytes=tuple(bytes_of),
        in_place=(),
        resident_bytes=tuple(resident_bytes),
        resident_users=tuple((row, row) for row in range(len(resident_bytes))),
        capacity=tuple(capacity) or (UNLIMITED,) * devices,
        links=tuple(tuple(0 if far else -1 for far in row) for row in apart),
        transfers=(tuple(time for _, _, time in edges),),
        latency=tuple(tuple(latency if far else 0 for far in row) for row in apart),
        has_contention=has_contention,
    )


# Times in thousandths, so that means over three devices keep their digits.
def thousandfold(
    durations: Sequence[Sequence[int]], edges: Sequence[tuple[int, int, int]]
) -> TinyDevices:
    """Return a task graph of the papers, whose tasks are numbered from 1."""
    return task_graph(
        [[1000 * time for time in row] for row in durations],
        [(a - 1, b - 1, 1000 * time) for a, b, time in edges],
    )


def topcuoglu() -> TinyDevices:
    """Return the ten tasks on three processors of Topcuoglu, Hariri & Wu 2002, figure 2."""
    return thousandfold(
        [
            [14, 16, 9],
            [13, 19, 18],
            [11, 13, 19],
            [13, 8, 17],
            [12, 13, 10],
            [13, 16, 9],
            [7, 15, 11],
            [5, 11, 14],
            [18, 12, 20],
            [21, 7, 16],
        ],
        [
            (1, 2, 18),
            (1, 3, 12),
            (1, 4, 9),
            (1, 5, 11),
            (1, 6, 14),
            (2, 8, 19),
            (2, 9, 16),
            (3, 7, 23),
            (4, 8, 27),
            (4, 9, 23),
            (5, 9, 13),
            (6, 8, 15),
            (7, 10, 17),
            (8, 10, 11),
            (9, 10, 13),
        ],
    )


def arabnejad() -> TinyDevices:
    """Return the ten tasks on three processors of Arabnejad & Barbosa 2014, figure 1."""
    return thousandfold(
        [
            [22, 21, 36],
            [22, 18, 18],
            [32, 27, 43],
            [7, 10, 4],
            [29, 27, 35],
            [26, 17, 24],
            [14, 25, 30],
            [29, 23, 36],
            [15, 21, 8],
            [13, 16, 33],
        ],
        [
            (1, 2, 17),
            (1, 3, 31),
            (1, 4, 29),
            (1, 5, 13),
            (1, 6, 7),
            (2, 8, 3),
            (2, 9, 30),
            (3, 7, 16),
            (4, 8, 11),
            (4, 9, 7),
            (5, 9, 57),
            (6, 8, 5),
            (7, 10, 9),
            (8, 10, 42),
            (9, 10, 7),
        ],
    )
