"""Schedules without search: the examples of the papers, legality, capacities, links, cuts."""

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest

from regal._native import (
    DeviceProblem,
    DeviceRule,
    NamedSchedule,
    PlacementOrder,
    ScheduleFault,
    check_schedule,
    favorite_schedule,
    groups_put_together,
    heuristic_schedules,
    placed_schedules,
    random_schedule,
    score_devices,
    simulate_devices,
)
from tests.baselines.devices.problems import arabnejad, task_graph, topcuoglu
from tests.device_problems import UNLIMITED, TinyDevices, random_devices
from tests.oracles.list_scheduling import (
    canonical,
    optimistic_cost,
    slow_earliest,
    slow_insertion,
    upward_rank,
)

RULES = list(DeviceRule)
WEIGHTS = [(1.0, 0.0), (0.0, 1.0), (0.3, 0.4)]  # of time and memory


def best_of(problem: DeviceProblem, *rules: DeviceRule, per_byte: float = 0.0) -> NamedSchedule:
    found, _ = heuristic_schedules(problem, 1.0 - per_byte, per_byte, list(rules))
    return found[0]


def content(named: NamedSchedule) -> tuple[str, list[int], list[int]]:
    schedule = named.schedule
    return named.name, schedule.placement.tolist(), schedule.order.tolist()


def uses_equal_devices_in_turn(problem: DeviceProblem, named: NamedSchedule) -> bool:
    placement = named.schedule.placement
    used = list(dict.fromkeys(placement[named.schedule.order].tolist()))
    classes = problem.device_class.tolist()
    return all(
        [d for d in used if classes[d] == c] == [d for d in sorted(used) if classes[d] == c]
        for c in classes
    )


@pytest.mark.parametrize(
    ("tasks", "rule", "thousands"),
    [
        (topcuoglu(), DeviceRule.HEFT, 80),
        (topcuoglu(), DeviceRule.CPOP, 86),
        (topcuoglu(), DeviceRule.PEFT, 85),
        (arabnejad(), DeviceRule.HEFT, 133),
        (arabnejad(), DeviceRule.PEFT, 122),
    ],
)
def test_the_examples_of_the_papers_come_out_as_published(
    tasks: TinyDevices, rule: DeviceRule, thousands: int
) -> None:
    assert best_of(tasks.native(), rule).score.time == 1000 * thousands


def test_heft_places_and_times_the_ten_tasks_as_published() -> None:
    problem = topcuoglu().native()
    schedule = best_of(problem, DeviceRule.HEFT).schedule
    figures = simulate_devices(problem, schedule)
    assert figures is not None
    assert schedule.placement.tolist() == [2, 0, 2, 1, 2, 1, 2, 0, 1, 1]
    starts = [0, 27, 9, 18, 28, 26, 38, 57, 56, 73]
    assert figures.op_start.tolist() == [1000 * start for start in starts]


def test_all_schedules_of_random_problems_are_legal_and_judged_right() -> None:
    names = set()
    for seed in range(500):
        problem = random_devices(seed).native()
        for weights in WEIGHTS:
            found, evaluations = heuristic_schedules(problem, *weights)
            assert evaluations == len(found)
            assert len({str(content(named)[1:]) for named in found}) == len(found)
            for named, after in itertools.pairwise([*found, found[-1]]):
                figures = simulate_devices(problem, named.schedule)
                assert figures is not None
                rows = figures.in_place.reshape(-1, 3)
                verdict, _ = check_schedule(problem, named.schedule, rows)
                assert verdict.fault is ScheduleFault.NONE, (seed, named.name)
                score = score_devices(figures, *weights)
                assert (score.overflow, score.value) == (named.score.overflow, named.score.value)
                assert not after.score.is_better_than(named.score)
                assert uses_equal_devices_in_turn(problem, named)
                names.add(named.name.split("/")[0].split()[0])
    assert len(names) == len(RULES)  # none of them is always a repeat


def as_found(tiny: TinyDevices, rule: DeviceRule) -> tuple[list[int], list[int]]:
    """Return placement and order of a rule that makes one schedule, and never reorders it."""
    found, _ = heuristic_schedules(tiny.native(), 1.0, 0.0, [rule])
    (named,) = found
    return named.schedule.placement.tolist(), named.schedule.order.tolist()


def test_heft_and_peft_are_those_of_the_slow_reference() -> None:
    for seed in range(400):
        tiny = random_devices(seed)
        if tiny.n_ops == 0:
            continue
        classes = tiny.native().device_class.tolist()
        ops, devices = range(tiny.n_ops), range(tiny.n_devices)
        slow = slow_insertion(tiny, [upward_rank(tiny, v) for v in ops])
        expected = (canonical(tiny, classes, slow), slow.order())
        assert as_found(tiny, DeviceRule.HEFT) == expected, seed
        costs = [[optimistic_cost(tiny, v, d) for d in devices] for v in ops]
        slow = slow_insertion(tiny, [sum(row) // len(row) for row in costs], costs)
        expected = (canonical(tiny, classes, slow), slow.order())
        assert as_found(tiny, DeviceRule.PEFT) == expected, seed


def test_etf_is_that_of_the_slow_reference_where_no_device_is_full() -> None:
    """Without contention: several tensors on one link make arrivals move both ways."""
    for seed in range(400):
        tiny = random_devices(seed)
        tiny = replace(tiny, capacity=(UNLIMITED,) * tiny.n_devices, has_contention=False)
        if tiny.n_ops > 0:
            slow = slow_earliest(tiny)
            expected = (canonical(tiny, tiny.native().device_class.tolist(), slow), slow.order())
            assert as_found(tiny, DeviceRule.ETF) == expected, seed


def test_the_same_problem_gives_the_same_schedules_again() -> None:
    for seed in range(20):
        runs = [
            [content(named) for named in heuristic_schedules(problem, 1.0, 1.0)[0]]
            for problem in (random_devices(seed).native() for _ in range(2))
        ]
        assert runs[0] == runs[1]


def test_with_one_device_all_rules_take_the_same_time() -> None:
    for seed in range(50):
        problem = random_devices(seed, most_devices=1).native()
        found, _ = heuristic_schedules(problem, 1.0, 0.0)
        assert {named.score.time for named in found} == {found[0].score.time}
        assert all(set(named.schedule.placement.tolist()) <= {0} for named in found)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule is not DeviceRule.SINGLE_DEVICE])
def test_a_full_device_is_left_while_another_has_room(rule: DeviceRule) -> None:
    """A chain with dear transfers, whose ops need two bytes each; devices hold 4, 4 and 5."""
    for seed in range(20):
        rng = random.Random(seed)
        tasks = task_graph(
            [[rng.randint(1, 3)] * 3 for _ in range(6)],
            [(i, i + 1, 50) for i in range(5)],
            resident_bytes=[2] * 6,
            capacity=[4, 4, 5],
        )
        best = best_of(tasks.native(), rule)
        assert best.score.overflow == 0
        counts = np.bincount(best.schedule.placement, minlength=3).tolist()
        assert counts == [2, 2, 2]


def test_live_bytes_close_a_device_too() -> None:
    """Two ops that each keep 6 bytes for a third one: a device of 10 bytes holds one of them."""
    tasks = task_graph(
        [[5, 5], [5, 5], [5, 9], [5, 9]],
        [(0, 2, 1), (1, 3, 1)],
        bytes_of=[6, 6],
        capacity=[10, 10],
    )
    for rule in (DeviceRule.HEFT, DeviceRule.ETF, DeviceRule.FILE_ORDER, DeviceRule.ROUND_ROBIN):
        assert best_of(tasks.native(), rule).score.overflow == 0, rule


def test_single_device_reports_its_overflow() -> None:
    tasks = task_graph([[1, 1]] * 3, [], resident_bytes=[2] * 3, capacity=[4, 5])
    assert best_of(tasks.native(), DeviceRule.SINGLE_DEVICE).score.overflow == 1


@pytest.mark.parametrize(("has_contention", "time"), [(False, 20), (True, 21)])
def test_heft_sees_that_a_link_carries_one_tensor_at_a_time(
    has_contention: bool, time: int
) -> None:
    """Op 0 feeds five ops of 5; a tensor takes 9.

    Locally they end at 6, 11, 16, 21; abroad the first one at 15. Without contention the second
    tensor arrives at 10, so its op ends at 20. Else it arrives at 19, and the op stays at home.
    """
    tasks = task_graph(
        [[1, 1], *([5, 5] for _ in range(5))],
        [(0, i, 9) for i in range(1, 6)],
        has_contention=has_contention,
    )
    assert best_of(tasks.native(), DeviceRule.HEFT).score.time == time


def test_heft_fills_a_gap() -> None:
    """Device 0 waits from 1 to 11 for op 1, which only device 1 can run; op 3 fits in between."""
    tasks = task_graph([[1, -1], [-1, 8], [3, -1], [9, -1]], [(0, 1, 1), (1, 2, 1)])
    schedule = best_of(tasks.native(), DeviceRule.HEFT)
    assert schedule.schedule.order.tolist() == [0, 3, 1, 2]
    assert schedule.score.time == 14


def test_control_edges_between_devices_take_the_latency() -> None:
    tasks = task_graph([[2, -1], [-1, 3]], [], controls=[(0, 1)], latency=4)
    for rule in RULES:
        assert best_of(tasks.native(), rule).score.time == 9, rule


def test_cuts_by_traffic_are_the_best_cuts_of_a_chain() -> None:
    """On a chain only the transfers at the cuts count: all cuts that fit are tried by hand."""
    binding = 0
    for seed in range(150):
        rng = random.Random(seed)
        n, devices = rng.randint(2, 7), rng.randint(2, 3)
        costs = [rng.randint(1, 9) for _ in range(n - 1)]
        sizes = [rng.randint(0, 3) for _ in range(n)]
        capacity = rng.randint(3, 6)
        tasks = task_graph(
            [[2] * devices for _ in range(n)],
            [(i, i + 1, cost) for i, cost in enumerate(costs)],
            resident_bytes=sizes,
            capacity=[capacity] * devices,
        )
        best = None
        for inner in itertools.combinations_with_replacement(range(n + 1), devices - 1):
            cuts = [0, *inner, n]
            if all(sum(sizes[a:b]) <= capacity for a, b in itertools.pairwise(cuts)):
                time = 2 * n + sum(costs[cut - 1] for cut in {*inner} - {0, n})
                best = time if best is None else min(best, time)
        if best is not None:
            found = best_of(tasks.native(), DeviceRule.FILE_ORDER)
            assert (found.score.overflow, found.score.time) == (0, best), seed
            binding += best > 2 * n
    assert binding > 30  # capacities that force a cut are common


def test_cuts_by_live_bytes_are_the_best_cuts_of_what_must_stay() -> None:
    """Outputs of many sizes stay to the end: all cuts are tried by hand."""
    for seed in range(60):
        rng = random.Random(seed)
        n, devices = rng.randint(2, 8), rng.randint(2, 3)
        sizes = [rng.randint(1, 20) for _ in range(n)]
        tasks = task_graph([[1] * devices] * (n + 1), [(i, n, 1) for i in range(n)], bytes_of=sizes)
        kept = replace(tasks, outputs=frozenset(range(n)), reads=())
        best = min(
            max(sum(sizes[a:b]) for a, b in itertools.pairwise([0, *cuts, n]))
            for cuts in itertools.combinations_with_replacement(range(n + 1), devices - 1)
        )
        found, _ = heuristic_schedules(kept.native(), 0.0, 1.0, [DeviceRule.FILE_ORDER])
        live = [named for named in found if named.name.startswith("file-order/live")]
        peaks = [named.score.peak for named in live] or [found[0].score.peak]
        assert min(peaks) == best, seed


def test_greedy_memory_spreads_what_must_stay() -> None:
    tasks = task_graph([[1, 1, 1]] * 7, [(i, 6, 1) for i in range(6)], bytes_of=[1] * 6)
    kept = replace(tasks, outputs=frozenset(range(6)), reads=())
    assert best_of(kept.native(), DeviceRule.GREEDY_MEMORY, per_byte=1.0).score.peak == 2


def test_only_readers_pull_ops_into_their_group() -> None:
    """0 -> 1 -> 3 and 0 -> 2 -> 3: op 0 has two readers, the others one."""
    tasks = task_graph([[1, 1]] * 4, [(0, 1, 1), (0, 2, 1), (1, 3, 1), (2, 3, 1)])
    assert groups_put_together(tasks.native()).tolist() == [0, 1, 1, 1]
    forbidden = replace(tasks, durations=((1, 1), (1, -1), (-1, 1), (1, 1)))
    assert groups_put_together(forbidden.native()).tolist() == [0, 1, 2, 1]
    full = replace(tasks, resident_bytes=(3, 3), resident_users=((1, 0), (2, 1)), capacity=(5, 5))
    assert groups_put_together(full.native()).tolist() == [0, 1, 2, 1]


def test_without_favorites_sct_is_etf() -> None:
    for seed in range(100):
        problem = random_devices(seed).native()
        nobody = np.full(problem.n_ops, -1, dtype=np.int64)
        etf = best_of(problem, DeviceRule.ETF)
        sct = favorite_schedule(problem, nobody, False, 1.0, 0.0)
        assert content(sct)[1:] == content(etf)[1:]


def test_a_device_waits_for_the_favorite_child_of_its_last_op() -> None:
    """Ops 1 and 2 could follow op 0 at once; op 2 is dear to send, so op 1 should go abroad."""
    problem = task_graph([[1, 1], [4, 4], [4, 4]], [(0, 1, 1), (0, 2, 3)]).native()
    assert best_of(problem, DeviceRule.ETF).score.time == 8
    favorites = np.array([2, -1, -1], dtype=np.int64)
    sct = favorite_schedule(problem, favorites, False, 1.0, 0.0)
    assert sct.score.time == 6
    assert sct.schedule.placement.tolist() == [0, 1, 0]


def test_an_urgent_op_runs_while_a_device_waits() -> None:
    """Op 2 can start on the device of op 0 at 5; op 3 waits for nothing, so it runs there at 1."""
    tasks = task_graph([[1, 1], [3, 3], [4, 4], [2, 2]], [(0, 2, 30), (1, 2, 2)])
    favorites = np.array([2, -1, -1, -1], dtype=np.int64)
    schedule = favorite_schedule(tasks.native(), favorites, False, 1.0, 0.0).schedule
    assert schedule.placement[0] == schedule.placement[2] == schedule.placement[3]
    assert schedule.order.tolist() == [1, 0, 3, 2]


def test_equal_devices_are_numbered_by_first_use() -> None:
    tasks = task_graph([[1, 1, 1]] * 3, [])
    single, _ = heuristic_schedules(tasks.native(), 1.0, 0.0, [DeviceRule.SINGLE_DEVICE])
    assert [named.schedule.placement.tolist() for named in single] == [[0, 0, 0]]
    found, _ = heuristic_schedules(tasks.native(), 1.0, 0.0)
    assert all(uses_equal_devices_in_turn(tasks.native(), named) for named in found)


def test_the_favorite_child_is_the_one_that_is_dear_to_send() -> None:
    """As above, without being told the favorite."""
    problem = task_graph([[1, 1], [4, 4], [4, 4]], [(0, 1, 1), (0, 2, 3)]).native()
    assert best_of(problem, DeviceRule.SCT).score.time == 6


def test_a_random_schedule_depends_on_its_number_alone() -> None:
    for seed in range(20):
        problem = random_devices(seed).native()
        single = [random_schedule(problem, 1.0, 0.5, 7, k, 1, 1) for k in range(20)]
        for threads in (1, 3):
            best = random_schedule(problem, 1.0, 0.5, 7, 0, 20, threads)
            assert not any(other.score.is_better_than(best.score) for other in single)
            assert content(best) in [content(other) for other in single]
        for named in single:
            figures = simulate_devices(problem, named.schedule)
            assert figures is not None
            assert (figures.time, figures.overflow) == (named.score.time, named.score.overflow)


def test_a_placement_is_kept_unless_it_does_not_fit() -> None:
    tasks = task_graph([[1, 1]] * 4, [], resident_bytes=[2] * 4, capacity=[4, 4])
    problem = tasks.native()
    wished = np.array([[0, 1, 1, 0], [0, 0, 0, 1]], dtype=np.int64)
    kept = placed_schedules(problem, wished, PlacementOrder.FILE, True, 1.0, 0.0)
    assert [named.schedule.placement.tolist() for named in kept] == [[0, 1, 1, 0], [0, 0, 1, 1]]
    forced = placed_schedules(problem, wished, PlacementOrder.FILE, False, 1.0, 0.0, threads=2)
    assert [named.score.overflow for named in forced] == [0, 2]


def test_a_placement_that_is_illegal_is_refused() -> None:
    tasks = task_graph([[1, -1], [1, 1], [1, 1]], [], groups=[-1, 5, 5])
    problem = tasks.native()
    for wrong in ([1, 0, 0], [0, 0, 1], [0, 2, 2], [0, -1, -1]):
        with pytest.raises(ValueError, match="placements: "):
            placed_schedules(
                problem, np.array([wrong], dtype=np.int64), PlacementOrder.LIST, False, 1.0, 0.0
            )
    with pytest.raises(ValueError, match="favorites: "):
        favorite_schedule(problem, np.array([3, 0, 0], dtype=np.int64), False, 1.0, 0.0)
