"""What TensorFlow's trace of a run (StepStats) says: placement, order, memory per device."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_DEVICE = re.compile(r"/task:(\d+)/device:CPU:(\d+)$")


@dataclass(frozen=True, slots=True)
class NodeRun:
    """When a node ran, from its first start to its last end, in ns of one clock."""

    device: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Observed:
    """A trace: node -> its run, peak bytes per device, and tensors that were received."""

    runs: Mapping[str, NodeRun]
    peaks: tuple[int, ...]
    devices: tuple[str, ...]
    transfers: int


def read_stats(stats: Any, n_devices: int, *, workers: bool) -> Observed:
    """Return what a StepStats message tells.

    Args:
        stats: of a run with RunOptions.FULL_TRACE.
        n_devices: logical devices, or workers with one device each.
        workers: devices are tasks of a cluster.
    """
    runs: dict[str, NodeRun] = {}
    names = [""] * n_devices
    events: list[list[tuple[int, int, int]]] = [[] for _ in range(n_devices)]
    transfers = 0
    for row in stats.dev_stats:
        found = _DEVICE.search(row.device)
        if found is None:
            continue
        device = int(found[1] if workers else found[2])
        names[device] = row.device
        for node in row.node_stats:
            start = node.all_start_nanos or node.all_start_micros * 1000
            end = start + (node.op_end_rel_nanos or node.op_end_rel_micros * 1000)
            before = runs.get(node.node_name)
            if before is not None and before.device == device:
                start, end = min(before.start, start), max(before.end, end)
            runs[node.node_name] = NodeRun(device, start, end)
            transfers += " = _Recv(" in node.timeline_label or "_HostRecv(" in node.timeline_label
            for memory in node.memory:
                events[device] += _events_of(memory)
    return Observed(runs, tuple(_peak(rows) for rows in events), tuple(names), transfers)


def _events_of(memory: Any) -> list[tuple[int, int, int]]:
    """Return (microsecond, 0 for an allocation and 1 for a release, bytes) rows."""
    return [
        (record.alloc_micros, int(record.alloc_bytes < 0), record.alloc_bytes)
        for record in memory.allocation_records
    ]


def _peak(events: list[tuple[int, int, int]]) -> int:
    """Return the most bytes that were allocated at once; equal times: allocations first."""
    live = peak = 0
    for _, _, change in sorted(events):
        live += change
        peak = max(peak, live)
    return peak


def misplaced(observed: Observed, units: Sequence[Sequence[Sequence[str]]]) -> str:
    """Return the first node that ran on another device than planned, in words; "" if none."""
    for device, rows in enumerate(units):
        for name in (name for row in rows for name in row):
            run = observed.runs.get(name)
            if run is not None and run.device != device:
                return f"'{name}' ran on device {run.device}, planned on {device}"
    return ""


def disordered(
    observed: Observed, units: Sequence[Sequence[Sequence[str]]], inner: frozenset[str]
) -> str:
    """Return the first op that began before the one in front of it ended; "" if none.

    Nodes in `inner` are inside loops: a loop has ended when what leaves it is there, although
    its last round may still be winding down.
    """
    for device, rows in enumerate(units):
        last_name, last_end = "", 0
        for row in rows:
            seen = [name for name in row if name in observed.runs and name not in inner]
            runs = [(observed.runs[name], name) for name in seen]
            if not runs:
                continue
            first, name = min(runs, key=lambda pair: pair[0].start)
            if first.start < last_end:
                late = last_end - first.start
                return (
                    f"'{name}' began on device {device} {late} ns before '{last_name}' ended,"
                    " which is planned before it"
                )
            end, last = max((run.end, name) for run, name in runs)
            if end > last_end:
                last_name, last_end = last, end
    return ""


def observed_count(observed: Observed, units: Sequence[Sequence[Sequence[str]]]) -> int:
    """Return how many ops of the plan the trace shows."""
    return sum(any(name in observed.runs for name in row) for rows in units for row in rows)
