"""Stories show what plans do: every curve reaches the peak that the checker has found."""

import dataclasses

import pytest

from regal.errors import PlanError
from regal.graph.builder import GraphBuilder
from regal.report.build import story_of_plans, story_of_schedules
from regal.report.story import Clock, Curve, Held, curve_of
from regal.search.meter import Meter
from regal.search.methods import method_named
from regal.search.packing import before_plan
from regal.search.planner import Search, plan_model
from tests.graphs import random_graph
from tests.report.schedules import schedule_plan, system_of
from tests.report.stories import diamond, random_story, two_device_story


def held(start: int, end: int, size: int) -> Held:
    return Held(storage=0, op=0, device=0, bytes=size, start=start, end=end, offset=0, room=size)


def test_a_curve_changes_only_where_something_begins_or_ends() -> None:
    curve = curve_of([held(2, 5, 3), held(4, 6, 2), held(5, 9, 3)])
    assert curve == Curve((0, 2, 4, 6, 9), (0, 3, 5, 3, 0))
    assert (curve.peak, curve.peak_time) == (5, 4)
    assert [curve.at(time) for time in (0, 1, 2, 5, 6, 100)] == [0, 0, 3, 5, 3, 0]


def test_a_device_that_holds_nothing_has_a_flat_curve() -> None:
    assert curve_of([]) == Curve((0,), (0,))


def test_memory_of_two_devices_is_the_one_written_out_by_hand() -> None:
    # An op takes 1 + bytes it makes, a transfer 2 + bytes: a 0-7, c 7-11 (with 5 of workspace),
    # a sent 7-15, b on the other device 15-22, sent back 22-30, d 30-33.
    story = two_device_story()
    assert [(run.start, run.end) for run in story.after.runs] == [
        (0, 7),
        (15, 22),
        (7, 11),
        (30, 33),
    ]
    first, second = story.after.curves
    assert first == Curve((0, 7, 11, 15, 22, 30, 33), (10, 14, 9, 3, 9, 11, 0))
    assert second == Curve((0, 7, 15, 22, 30), (0, 6, 12, 6, 0))


def test_every_curve_of_a_random_schedule_reaches_its_checked_peak() -> None:
    for seed in range(60):
        story = random_story(seed, n_ops=7, n_devices=3)  # raises where it does not
        assert story.end == max(side.end for _, side in story.sides)


def test_in_place_bytes_count_once_and_pass_from_one_tensor_to_the_next() -> None:
    g = GraphBuilder()
    x = g.input("x", 4)
    (a,) = g.op("A", [x], [8])
    (b,) = g.op("B", [a], [8], in_place=[(0, 0)])
    (c,) = g.op("C", [b], [8], in_place=[(0, 0)])
    graph = g.build(outputs=[c])
    system = system_of(1)
    apart = schedule_plan(graph, system, [0, 0, 0])
    joined = schedule_plan(graph, system, [0, 0, 0], in_place=True)
    story = story_of_schedules(graph, system, apart, joined)
    assert story.before.peak_bytes == (16,)
    assert story.after.peak_bytes == (12,)  # x and a; then one buffer of 8 to the end
    lives = {h.storage: (h.start, h.end) for h in story.after.held}
    assert lives == {x: (0, 9), a: (0, 9), b: (9, 18), c: (18, 27)}


def test_every_curve_of_a_plan_on_one_device_reaches_its_checked_peak() -> None:
    for seed in range(40):
        graph = random_graph(seed, 9, concats=True)
        before = before_plan(graph, None)
        (after,) = plan_model(
            [graph],
            Search(
                method=method_named("regal"),
                meter=Meter(evaluations=50, seconds=None),
                seed=0,
                threads=1,
                decides_all=True,
            ),
            None,
        )
        steps = story_of_plans(graph, before, after)
        times = [3 + op % 4 for op in range(9)]
        timed = story_of_plans(graph, before, after, op_ns=times)
        assert (steps.clock, timed.clock) == (Clock.STEP, Clock.NS)
        assert steps.after.peak_bytes == timed.after.peak_bytes == (after.peak_bytes,)
        assert steps.after.curves[0].levels == timed.after.curves[0].levels
        assert timed.after.end == sum(times)


def test_what_is_held_at_the_peak_adds_up_to_it() -> None:
    for seed in range(20):
        for _, side in random_story(seed, n_ops=8, n_devices=2).sides:
            for device, curve in enumerate(side.curves):
                live = side.held_at(device, curve.peak_time)
                assert sum(h.bytes for h in live) == curve.peak
                assert [h.bytes for h in live] == sorted((h.bytes for h in live), reverse=True)


def test_a_plan_whose_buffers_do_not_reach_its_peak_is_refused() -> None:
    graph, system = diamond(), system_of(2)
    good = schedule_plan(graph, system, [0, 0, 0, 0])
    wrong = dataclasses.replace(good, copies=good.copies[:1])
    with pytest.raises(PlanError) as caught:
        story_of_schedules(graph, system, good, wrong)
    assert str(caught.value) == (
        "plan of 'diamond' has a peak of 20 bytes on 'gpu0'; the lifetimes of its buffers reach 5"
    )


def test_a_buffer_on_a_device_that_does_not_exist_is_refused() -> None:
    graph, system = diamond(), system_of(2)
    plan = schedule_plan(graph, system, [0, 1, 0, 0])
    with pytest.raises(PlanError, match="puts a buffer on device 1 of 1"):
        story_of_schedules(graph, system_of(1), dataclasses.replace(plan, arena_bytes=(20,)), plan)


def test_a_graph_without_ops_has_a_story_without_an_end() -> None:
    g = GraphBuilder()
    x = g.input("x", 4)
    graph = g.build(outputs=[x])
    plan = before_plan(graph, None)
    story = story_of_plans(graph, plan, plan)
    assert (story.end, story.after.peak_bytes) == (0, (0,))
