"""Placing buffers from Python: examples by hand, properties, messages."""

from __future__ import annotations

import random
import threading
import time

import numpy as np
import pytest

from regal._native import (
    Cancel,
    OffsetFault,
    OffsetGreedyRule,
    check_offsets,
    place_greedily,
)
from regal.errors import UsageError
from regal.search.offsets import AllocationStatus, allocate, greedy_by_size, native_problem
from regal.search.pools import place_in_pools


def random_buffers(
    rng: random.Random, n: int, steps: int
) -> tuple[list[int], list[int], list[int]]:
    first = [rng.randrange(steps) for _ in range(n)]
    last = [min(f + rng.choice([0, 1, 2, 5, steps // 3]), steps - 1) for f in first]
    return first, last, [rng.randint(1, 50) for _ in range(n)]


def test_two_buffers_share_bytes_when_their_lifetimes_do_not_meet() -> None:
    outcome = allocate([0, 2], [1, 3], [10, 20])
    assert outcome.offsets.tolist() == [0, 0]
    assert (outcome.arena_bytes, outcome.lower_bound) == (20, 20)
    assert outcome.status is AllocationStatus.OPTIMAL


def test_buffers_that_touch_in_one_step_are_apart() -> None:
    outcome = allocate([0, 1], [1, 2], [10, 20])
    assert outcome.arena_bytes == 30


def test_the_search_finds_the_five_bytes_that_largest_first_misses() -> None:
    # bytes@steps: 3@0, 2@0-1, 1@1-2, 4@2. Largest first puts 4 and 3 at 0, 2 at 3, 1 at 5.
    first, last, size = [0, 0, 1, 2], [0, 1, 2, 2], [3, 2, 1, 4]
    assert greedy_by_size(first, last, size).arena_bytes == 6
    assert allocate(first, last, size).arena_bytes == 5


def test_ties_of_the_greedy_baseline_go_to_the_later_buffer() -> None:
    outcome = greedy_by_size([0, 0], [0, 0], [16, 16], alignment=16)
    assert outcome.offsets.tolist() == [16, 0]


def test_one_alignment_rounds_sizes_in_the_arena_too() -> None:
    outcome = allocate([0, 0], [0, 0], [10, 10], alignment=16)
    assert sorted(outcome.offsets.tolist()) == [0, 16]
    assert (outcome.arena_bytes, outcome.lower_bound) == (32, 32)


def test_alignments_of_single_buffers_round_offsets_only() -> None:
    outcome = allocate([0, 0], [0, 0], [10, 10], alignment=[16, 16])
    assert (outcome.arena_bytes, outcome.lower_bound) == (26, 26)
    assert outcome.status is AllocationStatus.OPTIMAL


def test_nothing_to_place_is_an_empty_arena() -> None:
    outcome = allocate([], [], [])
    assert outcome.status is AllocationStatus.OPTIMAL
    assert (outcome.arena_bytes, outcome.offsets.tolist()) == (0, [])


def test_buffers_without_bytes_take_no_room() -> None:
    outcome = allocate([0, 0, 0], [5, 5, 5], [0, 8, 0], fixed=[-1, -1, 4])
    assert outcome.offsets.tolist() == [0, 0, 4]
    assert outcome.arena_bytes == 8


def test_a_gap_lends_the_bytes_to_another_buffer() -> None:
    assert allocate([0, 1], [2, 1], [8, 8]).arena_bytes == 16
    assert allocate([0, 1], [2, 1], [8, 8], gaps=[(0, 1, 1)]).arena_bytes == 8


def test_reserved_bytes_stay_free_and_do_not_count_when_they_lie_above() -> None:
    below = allocate([0], [0], [8], reserved=[(0, 4)])
    assert (below.offsets.tolist(), below.arena_bytes, below.lower_bound) == ([4], 12, 12)
    above = allocate([0], [0], [8], reserved=[(8, 100)])
    assert (above.offsets.tolist(), above.arena_bytes) == ([0], 8)


def test_a_capacity_below_the_live_bytes_is_refuted_with_the_step() -> None:
    outcome = allocate([0, 3, 3], [1, 4, 5], [5, 7, 5], capacity=10)
    assert outcome.status is AllocationStatus.INFEASIBLE
    assert not outcome.is_placed
    assert outcome.offsets.size == 0
    assert (outcome.fullest_step, outcome.fullest_bytes) == (3, 12)


def test_fixed_buffers_that_overlap_are_named() -> None:
    outcome = allocate([0, 0, 0], [0, 0, 0], [1, 4, 4], fixed=[-1, 0, 2])
    assert outcome.status is AllocationStatus.INFEASIBLE
    assert outcome.clashing == (1, 2)


@pytest.mark.parametrize("rule", list(OffsetGreedyRule))
@pytest.mark.parametrize("best_fit", [False, True])
def test_every_greedy_rule_places_legally(rule: OffsetGreedyRule, best_fit: bool) -> None:
    rng = random.Random(f"{rule} {best_fit}")
    for _ in range(20):
        first, last, size = random_buffers(rng, 40, 20)
        problem = native_problem(
            np.array(first), np.array(last), np.array(size) * 8, alignment=8, fixed=[-1] * 40
        )
        result = place_greedily(problem, rule, best_fit)
        rows = np.column_stack([first, last, np.array(size) * 8, result.offsets])
        assert check_offsets(rows, result.arena_bytes, 8).fault == OffsetFault.NONE
        assert result.lower_bound <= result.arena_bytes


def test_the_checker_agrees_and_greedy_is_never_better() -> None:
    rng = random.Random("never worse")
    for n in (10, 60, 200):
        first, last, size = random_buffers(rng, n, n)
        outcome = allocate(first, last, size, alignment=16, max_nodes=3000)
        aligned = -(-np.array(size) // 16) * 16
        rows = np.column_stack([first, last, aligned, outcome.offsets])
        assert check_offsets(rows, outcome.arena_bytes, 16).fault == OffsetFault.NONE
        baseline = greedy_by_size(first, last, size, alignment=16)
        assert outcome.lower_bound <= outcome.arena_bytes <= baseline.arena_bytes


def hard_buffers() -> tuple[list[int], list[int], list[int]]:
    """Return buffers that load every step equally: nearly no waste is allowed anywhere."""
    rng = random.Random(7)
    first = [rng.randrange(40) for _ in range(200)]
    last = [f + rng.randint(1, 4) for f in first]
    size = [rng.randint(1, 10**6) for _ in first]
    rows = list(zip(first, last, size, strict=True))
    live = [sum(s for f, e, s in rows if f <= step <= e) for step in range(40)]
    for step in range(40):
        if live[step] < max(live):
            first.append(step)
            last.append(step)
            size.append(max(live) - live[step])
    return first, last, size


def test_same_seed_and_nodes_give_the_same_offsets() -> None:
    runs = [allocate(*hard_buffers(), max_nodes=8000, seed=3) for _ in range(2)]
    assert runs[0].offsets.tolist() == runs[1].offsets.tolist()
    assert runs[0].nodes == runs[1].nodes


def test_more_nodes_never_give_a_larger_arena() -> None:
    arenas = [
        allocate(*hard_buffers(), max_nodes=nodes).arena_bytes for nodes in (1, 100, 4000, 30000)
    ]
    assert arenas == sorted(arenas, reverse=True)
    assert arenas[-1] < arenas[0]


def test_cancel_from_another_thread_ends_an_endless_search() -> None:
    cancel = Cancel()
    first, last, size = hard_buffers()
    bound = allocate(first, last, size, max_nodes=1).lower_bound
    timer = threading.Timer(0.2, cancel.cancel)
    timer.start()
    outcome = allocate(first, last, size, capacity=bound, max_nodes=0, cancel=cancel)
    timer.join()
    assert outcome.status is AllocationStatus.LIMIT


def test_seconds_end_the_search() -> None:
    first, last, size = hard_buffers()
    started = time.monotonic()
    outcome = allocate(first, last, size, max_nodes=0, seconds=0.2)
    assert time.monotonic() - started < 30
    assert outcome.status is AllocationStatus.LIMIT
    assert outcome.is_placed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0], [0], [-4]), "allocate: buffer 0 has -4 bytes; give 0 or more"),
        (([0, 3], [0, 2], [1, 1]), "allocate: buffer 1 has steps 3-2: it ends before it starts"),
        (
            ([0], [0], [2**62]),
            f"allocate: buffer 0 has {2**62} bytes in steps 0-0, aligned to 1:"
            " all sums must stay below 2^61",
        ),
        (
            ([0, 0], [0], [1, 1]),
            "allocate: first_step, last_step, sizes, alignment, fixed and hints have"
            " [2, 1, 2, 2, 2, 2] entries; give one per buffer",
        ),
    ],
)
def test_wrong_arguments_are_refused_with_the_buffer(
    arguments: tuple[list[int], list[int], list[int]], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        allocate(*arguments)
    assert str(caught.value) == message


def test_a_misaligned_fixed_offset_is_refused() -> None:
    with pytest.raises(UsageError, match="buffer 1 has the fixed offset 6, which is negative or"):
        allocate([0, 0], [0, 0], [4, 4], alignment=4, fixed=[-1, 6])


def test_pools_spill_what_does_not_fit_and_respect_pins() -> None:
    placed = place_in_pools([0, 0, 1, 2], [1, 3, 2, 3], [4, 4, 4, 4], capacities=[8, 100])
    assert placed.fits
    assert placed.pool.tolist() == [0, 0, 1, 0]
    pinned = place_in_pools(
        [0, 0, 1, 2], [1, 3, 2, 3], [4, 4, 4, 4], capacities=[8, 100], pinned=[1, -1, 0, 0]
    )
    assert pinned.fits
    assert pinned.pool.tolist()[:1] + pinned.pool.tolist()[2:] == [1, 0, 0]


def test_pools_stay_legal_within_their_capacities() -> None:
    rng = random.Random("pools")
    for _ in range(20):
        first, last, size = random_buffers(rng, 30, 12)
        placed = place_in_pools(first, last, size, capacities=[120, 200, 10**6])
        assert placed.fits
        for p, capacity in enumerate((120, 200, 10**6)):
            chosen = placed.pool == p
            rows = np.column_stack([first, last, size, placed.offsets])[chosen]
            assert check_offsets(np.ascontiguousarray(rows), capacity, 1).fault == OffsetFault.NONE


def test_a_pool_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match="buffer 0 is pinned to pool 2; there are 2"):
        place_in_pools([0], [0], [4], capacities=[8, 8], pinned=[2])
