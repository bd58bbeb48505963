"""The kernel's simulation and checker of several devices, against the tick-by-tick oracle."""

import random
from dataclasses import replace

import numpy as np
import pytest

from regal._native import (
    DeviceFigures,
    DeviceProblem,
    DeviceSchedule,
    ScheduleFault,
    build_problem,
    check_schedule,
    complete_schedule,
    score_devices,
    simulate,
    simulate_devices,
)
from tests.device_problems import (
    TinyDevices,
    ints,
    pair_of_devices,
    random_devices,
    random_order,
    random_placement,
    table,
)
from tests.oracles.devices import SlowFigures, SlowSchedule, slow_figures, slow_home, slow_sends

CASES = 1500


def native_of(schedule: SlowSchedule) -> DeviceSchedule:
    return DeviceSchedule(
        ints(schedule.placement),
        ints(schedule.order),
        table(schedule.sends, 3),
        ints(schedule.home),
    )


def slow_of(schedule: DeviceSchedule) -> SlowSchedule:
    sends = [(int(t), int(a), int(b)) for t, a, b in schedule.sends.reshape(-1, 3)]
    return SlowSchedule(
        placement=schedule.placement.tolist(),
        order=schedule.order.tolist(),
        sends=sends,
        home=schedule.home.tolist(),
    )


def random_schedule(problem: TinyDevices, rng: random.Random) -> SlowSchedule:
    """Return a complete schedule whose links send in any sequence; it may wait in a circle."""
    placement = random_placement(problem, rng)
    order = random_order(problem, rng)
    home = slow_home(problem, placement, order)
    for tensor, readers in enumerate(map(problem.readers, range(problem.n_tensors))):
        if home[tensor] >= 0 and readers:
            home[tensor] = placement[rng.choice(readers)]
    schedule = SlowSchedule(placement=placement, order=order, sends=[], home=home)
    schedule.sends = slow_sends(problem, placement, order, home)
    if rng.random() < 0.5:
        schedule.sends = rng.sample(schedule.sends, len(schedule.sends))
    return schedule


def assert_equal(
    found: DeviceFigures, expected: SlowFigures, schedule: SlowSchedule, context: object
) -> None:
    assert found.time == expected.time, context
    assert found.peak.tolist() == expected.peak, context
    assert found.resident.tolist() == expected.resident, context
    assert found.overflow == expected.overflow, context
    spans = list(zip(found.op_start.tolist(), found.op_end.tolist(), strict=True))
    assert spans == [expected.op_span[v] for v in range(len(spans))], context
    spans = list(zip(found.send_start.tolist(), found.send_end.tolist(), strict=True))
    assert spans == [expected.send_span[send] for send in schedule.sends], context
    pairs = [tuple(row) for row in found.in_place.reshape(-1, 3).tolist()]
    assert sorted(pairs) == sorted(expected.in_place), context


def test_simulation_and_checker_equal_the_oracle() -> None:
    circles = 0
    for seed in range(CASES):
        problem = random_devices(seed)
        native = problem.native()
        schedule = random_schedule(problem, random.Random(seed))
        expected = slow_figures(problem, schedule)
        found = simulate_devices(native, native_of(schedule))
        rows = table(expected.in_place if expected else [], 3)
        verdict, figures = check_schedule(native, native_of(schedule), rows)
        if expected is None:
            circles += 1
            assert found is None, seed
            assert verdict.fault is ScheduleFault.CIRCLE, seed
            continue
        assert found is not None, seed
        assert verdict.fault is ScheduleFault.NONE, (seed, verdict.fault)
        assert_equal(found, expected, schedule, seed)
        assert_equal(figures, expected, schedule, seed)
    assert circles >= 3


def test_a_completed_schedule_is_what_greedy_links_do() -> None:
    for seed in range(CASES):
        problem = random_devices(seed)
        rng = random.Random(seed)
        placement, order = random_placement(problem, rng), random_order(problem, rng)
        found = slow_of(complete_schedule(problem.native(), ints(placement), ints(order)))
        assert found.home == slow_home(problem, placement, order), seed
        assert found.sends == slow_sends(problem, placement, order, found.home), seed


def test_one_device_has_the_peak_and_the_pairs_of_the_one_device_model() -> None:
    for seed in range(CASES):
        problem = random_devices(seed, most_devices=1)
        n, tensors = problem.n_ops, range(problem.n_tensors)
        data = [(problem.producers[t], v) for v, t in problem.reads if problem.producers[t] >= 0]
        touches = [(v, problem.storages[t]) for v, t in problem.reads]
        touches += [(problem.producers[t], problem.storages[t]) for t in tensors]
        given = {problem.storages[t] for t in tensors if problem.producers[t] < 0} - {-1}
        kept = {problem.storages[t] for t in problem.outputs} - {-1}
        _, one = build_problem(
            table([*data, *problem.controls], 2),
            table([row for row in touches if min(row) >= 0], 2),
            ints(problem.bytes),
            ints(problem.workspace),
            ints(sorted(given)),
            ints(sorted(kept)),
            table(problem.in_place, 3),
        )
        order = ints(random_order(problem, random.Random(seed)))
        native = problem.native()
        figures = simulate_devices(native, complete_schedule(native, ints([0] * n), order))
        expected = simulate(one, order)
        assert figures is not None
        assert figures.most == expected.peak_bytes, seed
        rows = expected.in_place.reshape(-1, 3).tolist()
        assert sorted(figures.in_place.reshape(-1, 3).tolist()) == sorted(rows), seed


def good_schedule(seed: int) -> tuple[TinyDevices, DeviceProblem, SlowSchedule, np.ndarray]:
    problem = random_devices(seed)
    native = problem.native()
    rng = random.Random(seed)
    placement, order = random_placement(problem, rng), random_order(problem, rng)
    schedule = complete_schedule(native, ints(placement), ints(order))
    figures = simulate_devices(native, schedule)
    assert figures is not None
    return problem, native, slow_of(schedule), figures.in_place.reshape(-1, 3)


def changed(schedule: SlowSchedule, problem: TinyDevices, rng: random.Random) -> SlowSchedule:
    """Return a schedule with one decision changed at random."""
    result = SlowSchedule(
        placement=list(schedule.placement),
        order=list(schedule.order),
        sends=list(schedule.sends),
        home=list(schedule.home),
    )
    match rng.randrange(8):
        case 0 if result.placement:
            result.placement[rng.randrange(len(result.placement))] = rng.randint(-1, 3)
        case 1 if len(result.order) > 1:
            rng.shuffle(result.order)
        case 2 if result.order:
            result.order[rng.randrange(len(result.order))] = rng.randint(-1, 8)
        case 3 if result.sends:
            del result.sends[rng.randrange(len(result.sends))]
        case 4 if result.sends:
            result.sends.append(rng.choice(result.sends))
        case 5:
            extra = (rng.randint(-1, problem.n_tensors), rng.randint(-1, 3), rng.randint(-1, 3))
            result.sends.insert(rng.randint(0, len(result.sends)), extra)
        case 6 if result.home:
            result.home[rng.randrange(len(result.home))] = rng.randint(-1, 3)
        case _:
            rng.shuffle(result.sends)
    return result


def is_legal(problem: TinyDevices, schedule: SlowSchedule) -> bool:
    """Return whether a schedule obeys every rule, from their words."""
    n, devices = problem.n_ops, range(problem.n_devices)
    if any(d not in devices for d in schedule.placement) or sorted(schedule.order) != list(
        range(n)
    ):
        return False
    if any(problem.durations[v][schedule.placement[v]] < 0 for v in range(n)):
        return False
    for v in range(n):
        for w in range(n):
            together = problem.groups[v] == problem.groups[w] >= 0
            if together and schedule.placement[v] != schedule.placement[w]:
                return False
    rank = {v: i for i, v in enumerate(schedule.order)}
    if any(rank[a] >= rank[v] for v in range(n) for a in problem.predecessors(v)):
        return False
    needed = set()
    for t, producer in enumerate(problem.producers):
        on = {schedule.placement[v] for v in problem.readers(t)}
        if schedule.home[t] not in ({-1} if producer >= 0 else on or {0}):
            return False
        source = schedule.placement[producer] if producer >= 0 else schedule.home[t]
        needed |= {(t, source, d) for d in on - {source}}
    if sorted(needed) != sorted(schedule.sends):
        return False
    return slow_figures(problem, schedule) is not None


def test_the_checker_finds_every_broken_schedule_and_no_good_one() -> None:
    seen = set()
    for seed in range(3 * CASES):
        problem, native, schedule, _ = good_schedule(seed)
        rng = random.Random(seed)
        for _ in range(2):
            mutant = changed(schedule, problem, rng)
            verdict, _ = check_schedule(native, native_of(mutant), table([], 3))
            is_good = verdict.fault is ScheduleFault.NONE
            assert is_good == is_legal(problem, mutant), (seed, verdict.fault, mutant)
            seen.add(verdict.fault)
    kinds = {f for f in ScheduleFault if not f.name.startswith("IN_PLACE")}
    assert seen == kinds


def test_the_checker_finds_every_wrong_in_place_row() -> None:
    seen = set()
    for seed in range(3 * CASES):
        problem, native, schedule, good = good_schedule(seed)
        expected = slow_figures(problem, schedule)
        if expected is None or not problem.in_place:
            continue
        for row in problem.in_place:
            verdict, _ = check_schedule(native, native_of(schedule), table([row], 3))
            alone = slow_figures(replace(problem, in_place=(row,)), schedule)
            assert alone is not None
            assert (verdict.fault is ScheduleFault.NONE) == (row in alone.in_place), seed
            seen.add(verdict.fault)
        twice = np.concatenate([good, good[:1]])
        verdict, _ = check_schedule(native, native_of(schedule), np.ascontiguousarray(twice))
        if len(good):
            assert verdict.fault is ScheduleFault.IN_PLACE_TWICE, seed
        wrong = (problem.n_ops, 0, 0) if seed % 2 else (0, len(problem.bytes), 0)
        verdict, _ = check_schedule(native, native_of(schedule), table([wrong], 3))
        assert verdict.fault is ScheduleFault.IN_PLACE_NOT_ALLOWED
    assert seen == {ScheduleFault.NONE, ScheduleFault.IN_PLACE_NOT_LAST}


def test_a_home_must_be_where_something_reads_the_input() -> None:
    found = 0
    for seed in range(CASES):
        problem, native, schedule, _ = good_schedule(seed)
        for tensor, home in enumerate(schedule.home):
            on = {schedule.placement[v] for v in problem.readers(tensor)}
            for device in set(range(problem.n_devices)) - (on or {0}):
                if home >= 0:
                    homes = [*schedule.home[:tensor], device, *schedule.home[tensor + 1 :]]
                    sends = slow_sends(problem, schedule.placement, schedule.order, homes)
                    moved = replace(schedule, home=homes, sends=sends)
                    verdict, _ = check_schedule(native, native_of(moved), table([], 3))
                    assert verdict.fault is ScheduleFault.BAD_HOME, seed
                    assert (verdict.first, verdict.second) == (tensor, device)
                    found += 1
    assert found > 100


def test_an_op_writes_only_one_output_over_an_input_and_over_an_output_only_one_input() -> None:
    # Both inputs of b and both outputs have 7 bytes.
    problem = pair_of_devices(
        reads=((1, 0), (1, 1)),
        producers=(-1, 0, 1, 1),
        storages=(0, 1, 2, 3),
        outputs=frozenset({2, 3}),
        bytes=(7, 7, 7, 7),
        in_place=((1, 0, 2), (1, 0, 3), (1, 1, 2), (1, 1, 3)),
        transfers=((1, 1, 1, 1),),
    )
    native = problem.native()
    schedule = complete_schedule(native, ints([0, 0]), ints([0, 1]))
    for rows, fault in (
        ([(1, 0, 2), (1, 1, 3)], ScheduleFault.NONE),
        ([(1, 0, 2), (1, 0, 3)], ScheduleFault.IN_PLACE_TWICE),
        ([(1, 0, 2), (1, 1, 2)], ScheduleFault.IN_PLACE_TWICE),
    ):
        verdict, _ = check_schedule(native, schedule, table(rows, 3))
        assert verdict.fault is fault, rows
    figures = simulate_devices(native, schedule)
    assert figures is not None
    assert figures.in_place.tolist() == [1, 0, 2, 1, 1, 3]


def test_schedules_that_do_not_fit_are_refused_before_they_are_run() -> None:
    native = pair_of_devices().native()
    placement, order, sends, home = [0, 1], [0, 1], [(1, 0, 1)], [0, -1, -1]
    schedule = SlowSchedule(placement=placement, order=order, sends=sends, home=home)
    assert simulate_devices(native, native_of(schedule)) is not None
    for wrong in (
        replace(schedule, placement=[0, 2]),
        replace(schedule, placement=[0]),
        replace(schedule, order=[0, 0]),
        replace(schedule, order=[0, -1]),
        replace(schedule, sends=[(3, 0, 1)]),
        replace(schedule, sends=[(1, 0, 0)]),
        replace(schedule, sends=[(1, -1, 1)]),
        replace(schedule, home=[-1, -1, -1]),
        replace(schedule, home=[0, 0, -1]),
        replace(schedule, home=[0]),
    ):
        with pytest.raises(ValueError, match="the schedule does not fit the problem"):
            simulate_devices(native, native_of(wrong))


def test_a_hand_checked_schedule_of_two_devices() -> None:
    # x lies on device 0 from 0; a runs [0, 3), t goes over in [3, 7), b runs [7, 9).
    #   device 0: x 5 + t 7 in [0, 3), t 7 in [3, 7)       = 12
    #   device 1: t 7 in [3, 7), t 7 + y 4 in [7, 9)       = 11
    native = pair_of_devices().native()
    schedule = complete_schedule(native, ints([0, 1]), ints([0, 1]))
    assert schedule.home.tolist() == [0, -1, -1]
    assert schedule.sends.tolist() == [1, 0, 1]
    figures = simulate_devices(native, schedule)
    assert figures is not None
    assert (figures.time, figures.most, figures.overflow) == (9, 12, 2 + 1)
    assert figures.peak.tolist() == [12, 11]
    assert figures.op_start.tolist() == [0, 7]
    assert (figures.send_start.tolist(), figures.send_end.tolist()) == ([3], [7])
    score = score_devices(figures, 1.0, 0.5)
    assert (score.overflow, score.value, score.time, score.peak) == (3, 15.0, 9, 12)


def test_a_missing_transfer_is_a_circle_to_the_simulation() -> None:
    native = pair_of_devices().native()
    schedule = DeviceSchedule(ints([0, 1]), ints([0, 1]), table([], 3), ints([0, -1, -1]))
    assert simulate_devices(native, schedule) is None


def test_an_index_beyond_32_bits_is_refused() -> None:
    with pytest.raises(ValueError, match="32 bits"):
        DeviceSchedule(ints([1 << 32]), ints([0]), table([], 3), ints([]))
