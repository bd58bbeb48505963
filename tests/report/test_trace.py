"""Traces obey the format that Perfetto and Chrome read, and say exactly what the plan says."""

import itertools
import json
from collections import defaultdict
from fractions import Fraction
from typing import Any

import pytest

from regal.report.story import Story
from regal.report.trace import trace_json
from tests.report.stories import HOSTILE, random_story, result_of, step_story, two_device_story

Event = dict[str, Any]
PHASES = {"X", "C", "M", "s", "t", "f"}


def events_of(*stories: Story) -> list[Event]:
    trace = json.loads(trace_json(stories, result_of(stories[0])))
    return list(trace["traceEvents"])


def ns(us: float) -> Fraction:
    """Return the nanoseconds that the decimal digits of a time say."""
    return Fraction(str(us)) * 1000


def names(events: list[Event], kind: str) -> dict[Any, str]:
    return {
        (e["pid"] if kind == "process_name" else (e["pid"], e["tid"])): e["args"]["name"]
        for e in events
        if e["ph"] == "M" and e["name"] == kind
    }


def stories() -> list[Story]:
    return [
        two_device_story(),
        step_story(),
        *(random_story(seed, n_ops=9, n_devices=3) for seed in range(12)),
        *(random_story(seed, n_ops=9, n_devices=2, contention=False) for seed in range(12)),
    ]


@pytest.mark.parametrize("story", stories())
def test_every_event_has_what_its_phase_needs(story: Story) -> None:
    events = events_of(story)
    processes, threads = names(events, "process_name"), names(events, "thread_name")
    for event in events:
        assert event["ph"] in PHASES
        assert event["pid"] in processes
        if event["ph"] in ("X", "s", "t", "f"):
            assert (event["pid"], event["tid"]) in threads
        if event["ph"] != "M":
            assert event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] > 0
            assert event["cat"]
        if event["ph"] == "f":
            assert event["bp"] == "e"
        if event["ph"] == "C":
            assert set(event["args"]) == {"bytes"}


@pytest.mark.parametrize("story", stories())
def test_slices_of_one_track_do_not_overlap(story: Story) -> None:
    tracks = defaultdict(list)
    for event in events_of(story):
        if event["ph"] == "X":
            end = ns(event["ts"]) + ns(event["dur"])
            tracks[event["pid"], event["tid"]].append((ns(event["ts"]), end))
    for track in tracks.values():
        for (_, end), (start, _) in itertools.pairwise(sorted(track)):
            assert end <= start


@pytest.mark.parametrize("story", stories())
def test_every_flow_leads_through_open_slices_from_its_producer_to_a_reader(story: Story) -> None:
    events = events_of(story)
    slices = [event for event in events if event["ph"] == "X"]
    flows = defaultdict(list)
    for event in events:
        if event["ph"] in ("s", "t", "f"):
            flows[event["id"]].append(event)
    reached = set()
    for number, flow in flows.items():
        assert [e["ph"] for e in flow] in (["s", "f"], ["s", "t", "f"])
        assert ns(flow[0]["ts"]) <= ns(flow[-1]["ts"])
        bound = []
        for event in flow:
            around = [
                s
                for s in slices
                if (s["pid"], s["tid"]) == (event["pid"], event["tid"])
                and ns(s["ts"]) <= ns(event["ts"]) < ns(s["ts"]) + ns(s["dur"])
            ]
            assert len(around) == 1, number
            bound += around
        sent, reader = bound[-2:]
        assert any(text.startswith(f"{sent['name']}: ") for text in reader["args"]["inputs"])
        if len(bound) == 3:
            made = bound[0]["args"]["outputs"]
            assert any(text.startswith(f"{sent['name']}: ") for text in made)
        reached.add((sent["pid"], sent["tid"], sent["ts"]))
    transfers = {(s["pid"], s["tid"], s["ts"]) for s in slices if s["cat"] == "transfer"}
    assert reached == transfers


@pytest.mark.parametrize("story", stories())
def test_the_counters_reach_the_peaks_and_end_at_zero(story: Story) -> None:
    levels = defaultdict(list)
    events = events_of(story)
    for event in events:
        if event["ph"] == "C":
            levels[event["pid"]].append((ns(event["ts"]), event["args"]["bytes"]))
    expected = {}
    process = 0
    for label, side in story.sides:
        for place, peak in zip(story.places, side.peak_bytes, strict=True):
            process += 1
            expected[process] = (f"{label}: {place.name}", peak)
        process += 1  # its links
    processes = names(events, "process_name")
    found = {
        pid: (processes[pid], max(level for _, level in points)) for pid, points in levels.items()
    }
    assert found == expected
    for points in levels.values():
        assert points == sorted(points)
        assert points[-1][1] == 0


def test_times_are_those_of_the_plan_to_the_nanosecond() -> None:
    story = two_device_story()
    for label, side in story.sides:
        pids = {
            pid: name
            for pid, name in names(events_of(story), "process_name").items()
            if name.startswith(f"{label}:")
        }
        found = {
            e["name"]: (ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]), pids[e["pid"]])
            for e in events_of(story)
            if e["ph"] == "X" and e["pid"] in pids and e["cat"] != "transfer"
        }
        assert found == {
            op.name: (Fraction(run.start), Fraction(run.end), f"{label}: gpu{run.device}")
            for op, run in zip(story.graph.ops, side.runs, strict=True)
        }


def test_an_op_says_its_kind_its_tensors_with_bytes_and_its_step() -> None:
    events = events_of(two_device_story())
    (event,) = [e for e in events if e["ph"] == "X" and e["name"] == "d" and e["pid"] == 4]
    assert event["args"] == {
        "op": 3,
        "kind": "Add",
        "step": 2,
        "inputs": ["b.0: 6 B", "c.0: 3 B"],
        "outputs": ["d.0: 2 B"],
        "time from": "the plan",
    }


def test_a_trace_without_times_says_that_an_op_is_drawn_as_a_microsecond() -> None:
    story = step_story()
    trace = json.loads(trace_json([story], result_of(story)))
    assert trace["otherData"]["clock"].startswith("steps: no op times are known")
    starts = [e["ts"] for e in trace["traceEvents"] if e["ph"] == "X" and e["pid"] == 1]
    assert starts == list(range(len(story.graph.ops)))


def test_a_trace_of_several_entries_keeps_their_processes_apart() -> None:
    one, two = two_device_story("one_"), two_device_story("two_")
    found = names(events_of(one, two), "process_name")
    assert len(set(found.values())) == len(found) == 10
    assert found[1] == "before [one_diamond]: gpu0"


def test_names_of_any_kind_survive_in_a_trace() -> None:
    events = events_of(two_device_story(HOSTILE))
    assert any(e["name"] == f"{HOSTILE}a" for e in events if e["ph"] == "X")


def test_a_trace_is_the_same_text_every_time() -> None:
    story = random_story(3, n_ops=9, n_devices=3)
    assert trace_json([story], result_of(story)) == trace_json([story], result_of(story))
