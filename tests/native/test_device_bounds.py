"""Lower bounds of schedules, against the best of all schedules of tiny problems."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np

from regal._native import (
    DeviceFigures,
    DeviceSchedule,
    complete_schedule,
    device_peak_bound,
    device_time_bound,
    one_device_relaxation,
    simulate_devices,
)
from regal.search.exact import solve_exact
from tests.device_problems import TinyDevices, ints, random_devices, table
from tests.oracles.devices import all_orders, all_placements, needed_sends


def all_figures(problem: TinyDevices) -> Iterator[DeviceFigures]:
    """Yield the figures of every legal schedule: placements, orders, homes, sequences of sends."""
    native = problem.native()
    for placement in all_placements(problem):
        homes = [
            [-1]
            if producer >= 0
            else sorted({placement[v] for v in problem.readers(tensor)}) or [0]
            for tensor, producer in enumerate(problem.producers)
        ]
        for order in all_orders(problem):
            for home in product(*homes):
                for sends in permutations(sorted(needed_sends(problem, placement, home))):
                    schedule = DeviceSchedule(
                        ints(placement), ints(order), table(sends, 3), ints(home)
                    )
                    figures = simulate_devices(native, schedule)
                    if figures is not None:
                        yield figures


def tiny(seed: int) -> TinyDevices | None:
    """Return a problem with few enough schedules to look at all of them."""
    problem = random_devices(seed, most_ops=4, most_devices=2)
    reads = [problem.readers(t) for t in range(problem.n_tensors)]
    return problem if problem.n_ops and sum(map(bool, reads)) <= 5 else None


def test_no_schedule_beats_the_bounds_and_many_reach_them() -> None:
    seen = times = peaks = 0
    for seed in range(300):
        problem = tiny(seed)
        if problem is None:
            continue
        figures = [(each.time, each.most) for each in all_figures(problem)]
        best_time, best_peak = min(t for t, _ in figures), min(p for _, p in figures)
        native = problem.native()
        time_bound, peak_bound = device_time_bound(native), device_peak_bound(native)
        shared = solve_exact(one_device_relaxation(native)).lower_bound
        assert time_bound <= best_time, seed
        assert peak_bound <= best_peak, seed
        assert -(-shared // problem.n_devices) <= best_peak, seed
        seen += 1
        times += time_bound == best_time
        peaks += peak_bound == best_peak
    assert seen > 200
    assert times > 0.7 * seen
    assert peaks > 0.7 * seen


def test_one_device_has_the_bounds_of_one_device() -> None:
    for seed in range(300):
        problem = random_devices(seed, most_devices=1)
        if not problem.n_ops:
            continue
        native = problem.native()
        work = sum(row[0] for row in problem.durations)
        assert device_time_bound(native) == work
        order = next(all_orders(problem))
        figures = simulate_devices(
            native, complete_schedule(native, ints([0] * problem.n_ops), ints(order))
        )
        assert figures is not None
        assert figures.time == work
        assert device_peak_bound(native) <= figures.most


def alone(durations: list[list[int]], **changes: Any) -> TinyDevices:
    """Return ops that have nothing to do with each other."""
    n, devices = len(durations), len(durations[0])
    base = TinyDevices(
        n_devices=devices,
        durations=tuple(map(tuple, durations)),
        workspace=(0,) * n,
        groups=(-1,) * n,
        reads=(),
        producers=(),
        storages=(),
        outputs=frozenset(),
        controls=(),
        bytes=(),
        in_place=(),
        resident_bytes=(),
        resident_users=(),
        capacity=(9,) * devices,
        links=tuple(tuple(-1 if a == b else 0 for b in range(devices)) for a in range(devices)),
        transfers=((),),
        latency=tuple((0,) * devices for _ in range(devices)),
    )
    return replace(base, **changes)


def test_work_is_shared_by_the_best_prices_of_unequal_devices() -> None:
    # Device 1 is three times as slow: 12 ops of 10 ns take at least 90 ns, not 60.
    assert device_time_bound(alone([[10, 30]] * 12).native()) == 90


def test_a_group_is_one_piece_of_work() -> None:
    assert device_time_bound(alone([[10, 10]] * 4, groups=(3, 3, 3, -1)).native()) == 30


def test_a_chain_counts_a_transfer_only_where_it_cannot_be_avoided() -> None:
    # a runs on device 0 alone and b on device 1 alone: 4 + 5 + 6 ns.
    chain = alone(
        [[4, -1], [-1, 6]],
        reads=((1, 0),),
        producers=(0,),
        storages=(-1,),
        transfers=((5,),),
    )
    assert device_time_bound(chain.native()) == 15
    free = replace(chain, durations=((4, 9), (9, 6)))
    assert device_time_bound(free.native()) == 13  # both on device 0


def test_devices_share_at_best_what_one_must_hold() -> None:
    # Two tensors of 8 bytes are made, then read together by c, and each by a later op.
    shared = alone(
        [[1, 1]] * 4,
        reads=((2, 0), (2, 1), (3, 0)),
        producers=(0, 1, 2),
        storages=(0, 1, 2),
        bytes=(8, 8, 1),
        transfers=((1, 1, 1),),
    )
    assert device_peak_bound(shared.native()) == 17  # c needs both and its own on its device
    apart = replace(shared, reads=((2, 0), (3, 1)))
    assert device_peak_bound(apart.native()) == 9
    assert np.all(one_device_relaxation(apart.native()).n_ops == 4)


def test_a_chain_keeps_neighbors_of_one_group_on_one_device() -> None:
    # a and b would each like another device, but share one: 1 + 10, then c takes 5.
    chain = alone(
        [[1, 10], [10, 1], [5, 5]],
        groups=(0, 0, -1),
        reads=((1, 0), (2, 1)),
        producers=(0, 1),
        storages=(-1, -1),
        transfers=((1, 1),),
    )
    assert device_time_bound(chain.native()) == 16
    assert device_time_bound(replace(chain, groups=(-1, -1, -1)).native()) == 1 + 1 + 1 + 5


def test_a_storage_that_is_dead_between_two_tensors_does_not_count_in_between() -> None:
    # Three storages of 8 bytes are made and read before m, and made and read again after it, on
    # another device. One device would hold all three during m, two need not hold any.
    a, b, m, c, d = [0, 1, 2], [3, 4, 5], 6, [7, 8, 9], [10, 11, 12]
    ops = [a[0], b[0], a[1], b[1], a[2], b[2], m, c[0], d[0], c[1], d[1], c[2], d[2]]
    problem = alone(
        [[1, 1]] * 13,
        reads=tuple((b[i], i) for i in range(3)) + tuple((d[i], 3 + i) for i in range(3)),
        producers=(*a, *c),
        storages=(0, 1, 2, 0, 1, 2),
        bytes=(8, 8, 8),
        controls=tuple(pairwise(ops)),
        transfers=((1,) * 6,),
    )
    native = problem.native()
    on_1 = {*c, *d}
    schedule = complete_schedule(native, ints([int(v in on_1) for v in range(13)]), ints(ops))
    figures = simulate_devices(native, schedule)
    assert figures is not None
    assert figures.peak.tolist() == [8, 8]
    assert device_peak_bound(native) == 8
