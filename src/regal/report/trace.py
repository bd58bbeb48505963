"""Chrome traces of plans: open them in ui.perfetto.dev, chrome://tracing, or a profiler.

Format: JSON object with complete (X), flow (s, t, f), counter (C) and metadata (M) events.
Source: "Trace Event Format", the Chromium project; Perfetto reads the same file.
"""

from __future__ import annotations

import heapq
import json
from typing import TYPE_CHECKING, Any

from regal.graph.types import ABSENT
from regal.report.story import Clock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from regal.report.story import Sent, Side, Story

NS_PER_US = 1000
NS_PER_STEP = 1000  # a trace has no steps, so that one is drawn as one microsecond
THREADS_PER_PROCESS = 100_000  # thread numbers differ between processes: some readers want that
COUNTER = "live memory"
FACTS = ("model", "framework", "objective", "method", "seed", "evaluations", "seconds")

Event = dict[str, Any]


def trace_json(stories: Sequence[Story], document: Mapping[str, Any]) -> str:
    """Return a trace of the plans before and after, as a JSON object with `traceEvents`.

    Each device is a process with its ops and its live memory, the links of a plan are one more
    process. A flow leads from the op that makes a tensor over its transfer to each reader.
    Times are in microseconds with the nanoseconds as fractions, exact below 2^53 ns.

    Args:
        stories: one per entry of the model.
        document: the result (`regal.result/1`); what it says of the search becomes metadata.

    Cost: O((N + transfers + buffers) log); about 400 bytes per op and plan.
    """
    facts: dict[str, Any] = {key: document[key] for key in FACTS if key in document}
    if any(story.clock is Clock.STEP for story in stories):
        facts["clock"] = "steps: no op times are known, so each op is drawn as 1 us"
    events: list[Event] = []
    number = 0
    for story in stories:
        entry = f" [{story.graph.name}]" if len(stories) > 1 else ""
        for label, side in story.sides:
            events += _side_events(story, side, f"{label}{entry}", first_process=number + 1)
            number += len(story.places) + 1
    trace = {"traceEvents": _numbered_flows(events), "displayTimeUnit": "ns", "otherData": facts}
    return json.dumps(trace, separators=(",", ":"))


def _side_events(story: Story, side: Side, label: str, first_process: int) -> Iterator[Event]:
    """Yield the events of one plan; the process after those of the devices has the links."""
    for device, place in enumerate(story.places):
        process = first_process + device
        yield from _process_names(process, f"{label}: {place.name}", place.kind)
        yield _thread_name(process, _ops_thread(process), "ops")
        scale = _scale(story.clock)
        curve = side.curves[device]
        for time, level in zip(curve.times, curve.levels, strict=True):
            yield {
                "ph": "C",
                "pid": process,
                "name": COUNTER,
                "ts": _us(time * scale),
                "args": {"bytes": level},
            }
    yield from _op_events(story, side, first_process)
    yield from _link_events(story, side, label, first_process)


def _op_events(story: Story, side: Side, first_process: int) -> Iterator[Event]:
    scale = _scale(story.clock)
    for i, (op, run) in enumerate(zip(story.graph.ops, side.runs, strict=True)):
        process = first_process + run.device
        yield {
            "ph": "X",
            "pid": process,
            "tid": _ops_thread(process),
            "name": op.name,
            "cat": op.kind,
            "ts": _us(run.start * scale),
            "dur": _us((run.end - run.start) * scale),
            "args": {
                "op": i,
                "kind": op.kind,
                "step": run.step,
                "inputs": _sizes(story, op.inputs),
                "outputs": _sizes(story, op.outputs),
                "time from": _source(story, i),
            },
        }


def _link_events(story: Story, side: Side, label: str, first_process: int) -> Iterator[Event]:
    """Yield the transfers, and the flows that they are part of."""
    process = first_process + len(story.places)
    links = sorted({(sent.source, sent.target) for sent in side.sent})
    if links:
        yield from _process_names(process, f"{label}: links", "link")
    thread = _ops_thread(process)
    readers = _readers(story)
    writer = {tensor: i for i, op in enumerate(story.graph.ops) for tensor in op.outputs}
    for source, target in links:
        sends = [sent for sent in side.sent if (sent.source, sent.target) == (source, target)]
        lanes = _lanes(sends)
        names = [story.places[source].name, story.places[target].name]
        for lane in range(max(lanes) + 1):
            yield _thread_name(process, thread + lane, " to ".join(names))
        for sent, lane in zip(sends, lanes, strict=True):
            tensor = story.graph.tensors[sent.tensor]
            yield {
                "ph": "X",
                "pid": process,
                "tid": thread + lane,
                "name": tensor.name,
                "cat": "transfer",
                "ts": _us(sent.start),
                "dur": _us(sent.end - sent.start),
                "args": {"bytes": tensor.bytes, "from": names[0], "to": names[1]},
            }
            for op in readers.get(sent.tensor, ()):
                if side.runs[op].device == target:
                    track = (process, thread + lane)
                    yield from _flow(side, first_process, writer.get(sent.tensor), sent, track, op)
        thread += max(lanes) + 1


def _flow(
    side: Side,
    first_process: int,
    made_by: int | None,
    sent: Sent,
    track: tuple[int, int],
    reader: int,
) -> Iterator[Event]:
    """Yield a flow without number: producer, transfer, reader; a graph input has no producer.

    A flow is bound to the slice that is open at its time, which the end of a slice is not.
    """
    steps = []
    if made_by is not None:
        source = first_process + sent.source
        steps.append((source, _ops_thread(source), side.runs[made_by].end - 1))
    steps.append((*track, sent.start if steps else sent.end - 1))
    target = first_process + sent.target
    steps.append((target, _ops_thread(target), side.runs[reader].start))
    for i, (process, thread, time) in enumerate(steps):
        phase = "s" if i == 0 else "f" if i == len(steps) - 1 else "t"
        event = {"ph": phase, "pid": process, "tid": thread, "name": "tensor", "cat": "flow"}
        yield {**event, "ts": _us(time), **({"bp": "e"} if phase == "f" else {})}


def _numbered_flows(events: Sequence[Event]) -> list[Event]:
    """Return the events, those of one flow with one number, slices before what binds to them."""
    number = 0
    slices: list[Event] = []
    flows: list[Event] = []
    for event in events:
        if event["ph"] not in ("s", "t", "f"):
            slices.append(event)
            continue
        number += event["ph"] == "s"
        flows.append({**event, "id": number})
    return slices + flows


def _lanes(sends: Sequence[Sent]) -> list[int]:
    """Return a lane per transfer so that those of one lane do not overlap.

    One lane is enough, unless the link carries several tensors at a time.
    """
    lanes = [0] * len(sends)
    busy: list[tuple[int, int]] = []  # (free from, lane)
    for i in sorted(range(len(sends)), key=lambda i: (sends[i].start, sends[i].end, i)):
        lane = heapq.heappop(busy)[1] if busy and busy[0][0] <= sends[i].start else len(busy)
        lanes[i] = lane
        heapq.heappush(busy, (sends[i].end, lane))
    return lanes


def _readers(story: Story) -> dict[int, list[int]]:
    """Return tensor -> the ops that read it, each once, in file order."""
    readers: dict[int, list[int]] = {}
    for i, op in enumerate(story.graph.ops):
        for tensor in dict.fromkeys(op.inputs):
            readers.setdefault(tensor, []).append(i)
    return readers


def _process_names(process: int, name: str, label: str) -> Iterator[Event]:
    for key, args in (
        ("process_name", {"name": name}),
        ("process_labels", {"labels": label}),
        ("process_sort_index", {"sort_index": process}),
    ):
        yield {"ph": "M", "pid": process, "name": key, "args": args}


def _thread_name(process: int, thread: int, name: str) -> Event:
    return {
        "ph": "M",
        "pid": process,
        "tid": thread,
        "name": "thread_name",
        "args": {"name": name},
    }


def _source(story: Story, op: int) -> str:
    if story.sources:
        return story.sources[op]
    return "the plan" if story.clock is Clock.NS else "nobody: one step"


def _sizes(story: Story, tensors: Sequence[int]) -> list[str]:
    rows = (story.graph.tensors[tensor] for tensor in tensors if tensor != ABSENT)
    return [f"{row.name}: {row.bytes} B" for row in rows]


def _ops_thread(process: int) -> int:
    """Return the first thread of a process; that of a device has its ops."""
    return process * THREADS_PER_PROCESS


def _scale(clock: Clock) -> int:
    return 1 if clock is Clock.NS else NS_PER_STEP


def _us(ns: int) -> int | float:
    """Return microseconds, whole ones as an integer."""
    return ns // NS_PER_US if ns % NS_PER_US == 0 else ns / NS_PER_US
