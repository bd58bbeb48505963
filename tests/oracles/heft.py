"""HEFT with links, from its definition: slow and obvious."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.device_problems import TinyDevices


def slow_heft(tiny: TinyDevices) -> int:
    """Return when HEFT ends: falling upward rank, earliest finish, gaps filled.

    A link carries one tensor at a time, in a gap if one holds it. Of several tensors for one op,
    those that are there first are sent first. A device that a group chose is kept. The finish is
    estimated with every tensor over a link after the one before it in number.
    """
    ranks = _upward_ranks(tiny)
    busy: dict[tuple[int, ...], list[tuple[int, int]]] = {}  # device or link -> intervals
    placed: dict[int, tuple[int, int]] = {}  # op -> device, end
    there: dict[tuple[int, int], int] = {}  # tensor, device -> time
    home: dict[int, int] = {}
    group_device: dict[int, int] = {}

    def first_gap(lane: tuple[int, ...], ready: int, length: int) -> int:
        at = ready
        for begin, end in sorted(busy.get(lane, [])):
            if at + length <= begin:
                return at
            at = max(at, end)
        return at

    def by_link(tensor: int, target: int, after: int) -> tuple[tuple[int, ...], int, int]:
        source = home[tensor]
        length = tiny.transfer(tensor, source, target)
        ready = max(there[tensor, source], after)
        start = first_gap((source, target), ready, length) if tiny.has_contention else ready
        return (source, target), start, start + length

    def controls_arrive(op: int, device: int) -> int:
        times = [
            placed[a][1] + tiny.latency[placed[a][0]][device] for a, b in tiny.controls if b == op
        ]
        return max(times, default=0)

    def finish(op: int, device: int) -> int:
        ready, last_source, last_end = controls_arrive(op, device), -1, 0
        for tensor in sorted(t for v, t in tiny.reads if v == op):
            if tensor not in home:
                continue
            if (tensor, device) in there:
                ready = max(ready, there[tensor, device])
                continue
            lane, _, end = by_link(tensor, device, last_end if home[tensor] == last_source else 0)
            if tiny.has_contention:
                last_source, last_end = lane[0], end
            ready = max(ready, end)
        length = tiny.durations[op][device]
        return first_gap((device,), ready, length) + length

    left = set(range(tiny.n_ops))
    while left:
        free = [v for v in left if not tiny.predecessors(v) & left]
        op = min(free, key=lambda v: (-ranks[v], v))
        left.remove(op)
        members = [
            w
            for w in range(tiny.n_ops)
            if w == op or (tiny.groups[op] >= 0 and tiny.groups[w] == tiny.groups[op])
        ]
        devices = [
            d for d in range(tiny.n_devices) if all(tiny.durations[w][d] > 0 for w in members)
        ]
        device = min(devices, key=lambda d: (finish(op, d), d))
        if tiny.groups[op] >= 0:
            device = group_device.setdefault(tiny.groups[op], device)
        reads = sorted(t for v, t in tiny.reads if v == op)
        for tensor in reads:
            if tensor not in home:
                home[tensor] = device
                there[tensor, device] = 0
        missing = [t for t in reads if (t, device) not in there]
        for tensor in sorted(missing, key=lambda t: (there[t, home[t]], t)):
            lane, start, end = by_link(tensor, device, 0)
            busy.setdefault(lane, []).append((start, end))
            there[tensor, device] = end
        ready = max([controls_arrive(op, device), *(there[t, device] for t in reads)])
        length = tiny.durations[op][device]
        start = first_gap((device,), ready, length)
        busy.setdefault((device,), []).append((start, start + length))
        placed[op] = device, start + length
        for tensor, producer in enumerate(tiny.producers):
            if producer == op:
                home[tensor] = device
                there[tensor, device] = start + length
    return max((end for _, end in placed.values()), default=0)


def _upward_ranks(tiny: TinyDevices) -> dict[int, Fraction]:
    """Return the longest way to the end per op; means are rounded down as the kernel does."""
    pairs = [(a, b) for a in range(tiny.n_devices) for b in range(tiny.n_devices) if a != b]
    ranks: dict[int, Fraction] = {}

    def mean_transfer(tensor: int) -> int:
        by_class: dict[int, int] = {}
        for a, b in pairs:
            by_class[tiny.links[a][b]] = by_class.get(tiny.links[a][b], 0) + 1
        total = 0
        for link, count in by_class.items():
            time = tiny.transfers[link][tensor]
            total += time // len(pairs) * count + time % len(pairs) * count // len(pairs)
        return total

    def mean_duration(op: int) -> int:
        members = [
            w
            for w in range(tiny.n_ops)
            if w == op or (tiny.groups[op] >= 0 and tiny.groups[w] == tiny.groups[op])
        ]
        times = [
            tiny.durations[op][d]
            for d in range(tiny.n_devices)
            if all(tiny.durations[w][d] > 0 for w in members)
        ]
        return sum(times) // len(times)

    def rank(op: int) -> Fraction:
        if op not in ranks:
            longest = Fraction(0)
            for v, t in tiny.reads:
                if tiny.producers[t] == op:
                    sent = mean_transfer(t) if pairs else 0
                    longest = max(longest, sent + rank(v))
            for a, b in tiny.controls:
                if a == op:
                    longest = max(longest, rank(b))
            ranks[op] = mean_duration(op) + longest
        return ranks[op]

    return {op: rank(op) for op in range(tiny.n_ops)}
