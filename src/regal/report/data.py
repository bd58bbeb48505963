"""The numbers of a story in columns, as the page reads them.

Strings are kept once and named by their position: names of ops and tensors are most of the page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regal.graph.types import ABSENT
from regal.report.format import clipped
from regal.report.story import NO_STORAGE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.graph.types import Graph
    from regal.report.story import Side, Story

SCHEMA = "regal.story/1"


def story_to_dict(story: Story) -> dict[str, Any]:
    """Return the JSON object of a story; docs/report.md says what the columns hold.

    Cost: O(N + buffers); about 150 bytes per op.
    """
    graph, strings = story.graph, _Strings()
    ops = {
        "name": [strings.index(op.name) for op in graph.ops],
        "kind": [strings.index(op.kind) for op in graph.ops],
        "reads": [_bytes(graph, op.inputs) for op in graph.ops],
        "writes": [_bytes(graph, op.outputs) for op in graph.ops],
        "source": [strings.index(source) for source in story.sources],
    }
    sides = {label: _side_to_dict(graph, side, strings) for label, side in story.sides}
    return {
        "schema": SCHEMA,
        "name": clipped(graph.name),
        "clock": story.clock.value,
        "places": [
            {"name": place.name, "kind": place.kind, "memory_bytes": place.memory_bytes}
            for place in story.places
        ],
        "peak_bound": story.peak_bound,
        "capacity_counts_live": story.capacity_counts_live,
        "ops": ops,
        "sides": sides,
        "strings": strings.all(),
    }


def storage_facts(graph: Graph) -> dict[int, tuple[str, str]]:
    """Return storage -> name and type of its largest tensor, the first one of several."""
    largest: dict[int, int] = {}
    for i, tensor in enumerate(graph.tensors):
        if tensor.bytes > graph.tensors[largest.setdefault(tensor.storage, i)].bytes:
            largest[tensor.storage] = i
    rows = {storage: graph.tensors[i] for storage, i in largest.items()}
    return {
        storage: (row.name, f"{row.dtype} [{', '.join(map(str, row.shape))}]")
        for storage, row in rows.items()
    }


def _side_to_dict(graph: Graph, side: Side, strings: _Strings) -> dict[str, Any]:
    writer = {tensor: i for i, op in enumerate(graph.ops) for tensor in op.outputs}
    readers = _readers_there(graph, side)
    names = storage_facts(graph)
    return {
        "end": side.end,
        "peak_bytes": list(side.peak_bytes),
        "peak_time": [curve.peak_time for curve in side.curves],
        "arena_bytes": list(side.arena_bytes),
        "resident_bytes": list(side.resident_bytes),
        "runs": {
            "device": [run.device for run in side.runs],
            "step": [run.step for run in side.runs],
            "start": [run.start for run in side.runs],
            "length": [run.end - run.start for run in side.runs],
        },
        "sent": {
            "name": [strings.index(graph.tensors[sent.tensor].name) for sent in side.sent],
            "bytes": [graph.tensors[sent.tensor].bytes for sent in side.sent],
            "source": [sent.source for sent in side.sent],
            "target": [sent.target for sent in side.sent],
            "start": [sent.start for sent in side.sent],
            "length": [sent.end - sent.start for sent in side.sent],
            "maker": [writer.get(sent.tensor, -1) for sent in side.sent],
            "readers": [readers.get((sent.tensor, sent.target), []) for sent in side.sent],
        },
        "held": {
            "name": [
                -1 if held.storage == NO_STORAGE else strings.index(names[held.storage][0])
                for held in side.held
            ],
            "type": [
                -1 if held.storage == NO_STORAGE else strings.index(names[held.storage][1])
                for held in side.held
            ],
            "maker": [held.op for held in side.held],
            "device": [held.device for held in side.held],
            "bytes": [held.bytes for held in side.held],
            "start": [held.start for held in side.held],
            "length": [held.end - held.start for held in side.held],
            "offset": [held.offset for held in side.held],
            "spare": [held.room - held.bytes for held in side.held],
        },
    }


class _Strings:
    """Collects strings, each once."""

    def __init__(self) -> None:
        self._index: dict[str, int] = {}

    def index(self, text: str) -> int:
        """Return the position of a string."""
        return self._index.setdefault(clipped(text), len(self._index))

    def all(self) -> list[str]:
        """Return the strings in the order of their positions."""
        return list(self._index)


def _readers_there(graph: Graph, side: Side) -> dict[tuple[int, int], list[int]]:
    """Return (sent tensor, device) -> the ops that read it there."""
    wanted = {(sent.tensor, sent.target): list[int]() for sent in side.sent}
    for i, op in enumerate(graph.ops):
        for tensor in dict.fromkeys(op.inputs):
            if (tensor, side.runs[i].device) in wanted:
                wanted[tensor, side.runs[i].device].append(i)
    return wanted


def _bytes(graph: Graph, tensors: Sequence[int]) -> int:
    return sum(graph.tensors[tensor].bytes for tensor in set(tensors) if tensor != ABSENT)
