"""Keys to schedules: exact figures, what each head of keys can express, the plain heuristics."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from regal import _native
from regal._native import CompactDevices, DeviceDecoder, GeneLayout, ScheduleFault
from tests.baselines.devices.problems import task_graph, topcuoglu
from tests.device_problems import UNLIMITED, random_devices, random_order, random_placement
from tests.oracles.heft import slow_heft

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from regal._native import DeviceProblem, DeviceSchedule, DeviceScore
    from tests.device_problems import TinyDevices

ALL = [DeviceDecoder.RAW, DeviceDecoder.RAW_LIST, DeviceDecoder.EFT, DeviceDecoder.INHERIT]
HIGHEST = 2**32 - 1
COLOCATION, WAIT = 2, 3  # weight genes


def neutral(problem: DeviceProblem, decoder: DeviceDecoder) -> NDArray[np.uint32]:
    return np.full(GeneLayout(problem, decoder).size, 2**31, dtype=np.uint32)


def random_genes(problem: DeviceProblem, decoder: DeviceDecoder, seed: int) -> NDArray[np.uint32]:
    size = GeneLayout(problem, decoder).size
    return np.random.default_rng(seed).integers(0, 2**32, size, dtype=np.uint32)


def decoded(
    problem: DeviceProblem, decoder: DeviceDecoder, genes: NDArray[np.uint32]
) -> tuple[DeviceSchedule, DeviceScore]:
    return _native.decode_schedule(CompactDevices(problem), decoder, 1.0, 1.0, genes)


def time_of(tiny: TinyDevices, decoder: DeviceDecoder, genes: NDArray[np.uint32]) -> int:
    schedule, _ = decoded(tiny.native(), decoder, genes)
    figures = _native.simulate_devices(tiny.native(), schedule)
    assert figures is not None
    return figures.time


@pytest.mark.parametrize("decoder", ALL)
def test_decoded_schedules_are_legal_and_their_figures_are_those_of_the_simulation(
    decoder: DeviceDecoder,
) -> None:
    for seed in range(1500):
        problem = random_devices(seed, most_ops=9, most_devices=4).native()
        schedule, score = decoded(problem, decoder, random_genes(problem, decoder, seed))
        figures = _native.simulate_devices(problem, schedule)
        assert figures is not None, seed
        expected = (figures.overflow, figures.time, figures.most)
        assert (score.overflow, score.time, score.peak) == expected, seed
        assert score.value == figures.time + figures.most, seed
        verdict, _ = _native.check_schedule(problem, schedule, figures.in_place.reshape(-1, 3))
        assert verdict.fault is ScheduleFault.NONE, seed


def test_memory_is_measured_for_time_alone_where_a_capacity_could_bind() -> None:
    for seed in range(200):
        tiny = random_devices(seed)
        problem = tiny.native()
        genes = random_genes(problem, DeviceDecoder.EFT, seed)
        schedule, score = _native.decode_schedule(
            CompactDevices(problem), DeviceDecoder.EFT, 1.0, 0.0, genes
        )
        figures = _native.simulate_devices(problem, schedule)
        assert figures is not None
        assert (score.overflow, score.time) == (figures.overflow, figures.time), seed


def test_neutral_keys_give_heft() -> None:
    for seed in range(400):
        tiny = replace(random_devices(seed, most_ops=9, most_devices=4), capacity=(UNLIMITED,) * 4)
        tiny = replace(tiny, capacity=tiny.capacity[: tiny.n_devices])
        genes = neutral(tiny.native(), DeviceDecoder.EFT)
        assert time_of(tiny, DeviceDecoder.EFT, genes) == slow_heft(tiny), seed


def test_neutral_keys_reach_the_published_schedule_of_heft() -> None:
    tiny = topcuoglu()
    genes = neutral(tiny.native(), DeviceDecoder.EFT)
    assert time_of(tiny, DeviceDecoder.EFT, genes) == 80_000


# Task 0 (device 0) hands over to task 1 (device 1) within 3; task 2 (device 1) depends on nothing.
# By rank, task 1 is put first, at 4 to 14, and leaves a gap of 4 that task 2 (5) does not fit: 19.
# If task 1 waits until its input is made, task 2 runs first: 0 to 5, then task 1 to 15.
def test_an_op_that_waits_lets_another_go_first() -> None:
    tiny = task_graph([[1, -1], [-1, 10], [-1, 5]], [(0, 1, 3)])
    layout = GeneLayout(tiny.native(), DeviceDecoder.EFT)
    genes = neutral(tiny.native(), DeviceDecoder.EFT)
    assert time_of(tiny, DeviceDecoder.EFT, genes) == 19
    genes[layout.weight + WAIT] = HIGHEST
    genes[layout.wait + 1] = 0
    assert time_of(tiny, DeviceDecoder.EFT, genes) == 15


# Both halves of a sum end first on devices of their own, then one must be sent: 5 + 10 + 5.
# On one device: 5 + 5 + 5.
def test_an_op_beside_its_sibling_saves_the_transfer_that_greed_causes() -> None:
    tiny = task_graph([[5, 5]] * 3, [(0, 2, 10), (1, 2, 10)])
    layout = GeneLayout(tiny.native(), DeviceDecoder.EFT)
    genes = neutral(tiny.native(), DeviceDecoder.EFT)
    assert time_of(tiny, DeviceDecoder.EFT, genes) == 20
    genes[layout.weight + COLOCATION] = HIGHEST
    genes[layout.colocation + 1] = 0
    assert time_of(tiny, DeviceDecoder.EFT, genes) == 15


# Task 1 ends at 1 + 1 + 8 = 10 on device 1, at 11 on device 0; but task 2 runs on device 0 alone,
# 5 away: 16 instead of 12.
def test_an_op_that_follows_its_producer_stays_where_the_next_one_runs() -> None:
    tiny = task_graph([[1, -1], [10, 8], [1, -1]], [(0, 1, 1), (1, 2, 5)])
    layout = GeneLayout(tiny.native(), DeviceDecoder.EFT)
    genes = neutral(tiny.native(), DeviceDecoder.EFT)
    assert time_of(tiny, DeviceDecoder.EFT, genes) == 16
    genes[layout.weight + COLOCATION] = HIGHEST
    genes[layout.colocation + 1] = HIGHEST
    assert time_of(tiny, DeviceDecoder.EFT, genes) == 12


def test_the_highest_affinity_forces_any_placement() -> None:
    for decoder in ALL:
        for seed in range(200):
            tiny = random_devices(seed, most_ops=8, most_devices=4)
            tiny = replace(tiny, capacity=(UNLIMITED,) * tiny.n_devices)
            problem = tiny.native()
            placement = random_placement(tiny, random.Random(seed))
            layout = GeneLayout(problem, decoder)
            genes = random_genes(problem, decoder, seed)
            genes[layout.affinity : layout.colocation] = 0
            genes[layout.colocation : layout.transfer] = 2**31
            for op, device in enumerate(placement):
                genes[layout.affinity + problem.group[op] * tiny.n_devices + device] = HIGHEST
            schedule, _ = decoded(problem, decoder, genes)
            assert schedule.placement.tolist() == placement, (decoder, seed)


@pytest.mark.parametrize("decoder", [DeviceDecoder.RAW_LIST, DeviceDecoder.INHERIT])
def test_a_schedule_survives_being_written_as_keys(decoder: DeviceDecoder) -> None:
    for seed in range(300):
        tiny = random_devices(seed, most_ops=9, most_devices=4)
        tiny = replace(tiny, capacity=(UNLIMITED,) * tiny.n_devices)
        problem, rng = tiny.native(), random.Random(seed)
        placement, order = random_placement(tiny, rng), random_order(tiny, rng)
        schedule = _native.complete_schedule(
            problem, np.array(placement, dtype=np.int64), np.array(order, dtype=np.int64)
        )
        (genes,) = _native.encode_schedule(CompactDevices(problem), decoder, schedule)
        found, _ = decoded(problem, decoder, genes)
        assert found.placement.tolist() == placement, seed
        for device in range(tiny.n_devices):
            ops = [v for v in order if placement[v] == device]
            assert [v for v in found.order.tolist() if placement[v] == device] == ops, seed


def test_eft_never_ends_later_than_the_schedule_that_it_was_given_as_keys() -> None:
    later = 0
    for seed in range(300):
        tiny = replace(random_devices(seed, most_ops=9, most_devices=3), has_contention=False)
        tiny = replace(tiny, capacity=(UNLIMITED,) * tiny.n_devices)
        problem, rng = tiny.native(), random.Random(seed)
        schedule = _native.complete_schedule(
            problem,
            np.array(random_placement(tiny, rng), dtype=np.int64),
            np.array(random_order(tiny, rng), dtype=np.int64),
        )
        figures = _native.simulate_devices(problem, schedule)
        (genes,) = _native.encode_schedule(CompactDevices(problem), DeviceDecoder.EFT, schedule)
        assert figures is not None
        later += time_of(tiny, DeviceDecoder.EFT, genes) > figures.time
    assert later == 0


@pytest.mark.parametrize("decoder", [DeviceDecoder.EFT, DeviceDecoder.INHERIT])
def test_a_device_that_is_full_is_avoided_while_another_is_not(decoder: DeviceDecoder) -> None:
    # Three tasks in a chain with parameters of 4 bytes each, dear to send; each device holds two.
    chain = task_graph(
        [[1, 1]] * 4,
        [(0, 1, 100), (1, 2, 100), (2, 3, 100)],
        resident_bytes=[4] * 4,
        capacity=[8, 8],
    )
    schedule, score = decoded(chain.native(), decoder, neutral(chain.native(), decoder))
    assert score.overflow == 0
    assert schedule.placement.tolist() == [0, 0, 1, 1]


def test_inherit_leaves_a_device_at_its_level() -> None:
    # A chain of tensors of 4 bytes that all stay to the end: half of them on each device.
    tiny = task_graph([[1, 1]] * 8, [(i, i + 1, 1) for i in range(7)], bytes_of=[4] * 7)
    tiny = replace(tiny, outputs=frozenset(range(7)))
    problem = tiny.native()
    layout = GeneLayout(problem, DeviceDecoder.INHERIT)
    peaks = []
    for level in (0, 2**31, HIGHEST):
        genes = neutral(problem, DeviceDecoder.INHERIT)
        genes[layout.weight + WAIT] = level
        _, score = decoded(problem, DeviceDecoder.INHERIT, genes)
        peaks.append(score.peak)
    assert peaks[1] < peaks[2] == 28
    assert peaks[1] == 16


def test_the_layout_covers_every_gene_once() -> None:
    problem = random_devices(5, most_ops=9, most_devices=4).native()
    layout = GeneLayout(problem, DeviceDecoder.EFT)
    heads = [
        (layout.priority, problem.n_ops),
        (layout.affinity, problem.n_groups * problem.n_devices),
        (layout.colocation, problem.n_ops),
        (layout.wait, problem.n_ops),
        (layout.transfer, problem.n_tensors),
        (layout.weight, _native.GENE_WEIGHTS),
    ]
    end = 0
    for begin, count in heads:
        assert begin == end
        end += count
    assert layout.size == end
