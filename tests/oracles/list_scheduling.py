"""Slow and obvious: list schedulers on several devices, with links and memory.

Everything that is booked is kept as plain (start, end) pairs, and searched from the beginning.
Means are rounded down, ties go to the lower op and device.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.device_problems import NEVER, UNLIMITED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.device_problems import TinyDevices

    Span = tuple[int, int]

FREE = -1  # placed nowhere yet


def mean(values: Iterable[int]) -> int:
    rows = list(values)
    return sum(rows) // len(rows) if rows else 0


def may_run(problem: TinyDevices, op: int) -> list[int]:
    """Return the devices that can run the whole group of `op`."""
    group = problem.groups[op]
    members = [
        v for v in range(problem.n_ops) if v == op or (group >= 0 and problem.groups[v] == group)
    ]
    return [
        d
        for d in range(problem.n_devices)
        if all(problem.durations[v][d] != NEVER for v in members)
    ]


def mean_duration(problem: TinyDevices, op: int) -> int:
    return mean(problem.durations[op][d] for d in may_run(problem, op))


def pairs(problem: TinyDevices) -> list[tuple[int, int]]:
    devices = range(problem.n_devices)
    return [(a, b) for a in devices for b in devices if a != b]


def edges_below(problem: TinyDevices, op: int) -> list[tuple[int, int]]:
    """Return (later op, mean cost) for every tensor and control edge that leaves `op`."""
    links = pairs(problem)
    data = [
        (v, mean(problem.transfer(t, a, b) for a, b in links))
        for v, t in problem.reads
        if problem.producers[t] == op
    ]
    latency = mean(problem.latency[a][b] for a, b in links)
    return data + [(b, latency) for a, b in problem.controls if a == op]


def upward_rank(problem: TinyDevices, op: int, *, has_transfers: bool = True) -> int:
    below = [
        (cost if has_transfers else 0) + upward_rank(problem, v, has_transfers=has_transfers)
        for v, cost in edges_below(problem, op)
    ]
    return mean_duration(problem, op) + max(below, default=0)


def optimistic_cost(problem: TinyDevices, op: int, device: int) -> int:
    costs = [
        min(
            optimistic_cost(problem, v, d) + problem.durations[v][d] + (cost if d != device else 0)
            for d in may_run(problem, v)
        )
        for v, cost in edges_below(problem, op)
    ]
    return max(costs, default=0)


@dataclass(slots=True)
class SlowList:
    """A schedule under construction."""

    problem: TinyDevices
    placement: list[int] = field(default_factory=list)
    sequence: list[int] = field(default_factory=list)
    start: dict[int, int] = field(default_factory=dict)
    end: dict[int, int] = field(default_factory=dict)
    links: dict[Span, list[Span]] = field(default_factory=dict)
    there: dict[Span, int] = field(default_factory=dict)  # tensor, device -> since when
    home: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.placement = [FREE] * self.problem.n_ops

    def choices(self, op: int) -> list[int]:
        group = self.problem.groups[op]
        for v in self.sequence:
            if group >= 0 and self.problem.groups[v] == group:
                return [self.placement[v]]
        return may_run(self.problem, op)

    def arrival(self, op: int, device: int, *, books: bool) -> int:
        """Return when all that `op` waits for is on `device`."""
        problem = self.problem
        times = [0]
        for a, b in problem.controls:
            if b == op:
                times.append(self.end[a] + problem.latency[self.placement[a]][device])
        missing = []
        for tensor in sorted({t for v, t in problem.reads if v == op}):
            producer = problem.producers[tensor]
            source = self.home.get(tensor, FREE) if producer < 0 else self.placement[producer]
            made = 0 if producer < 0 else self.end[producer]
            if (tensor, device) in self.there:
                times.append(self.there[tensor, device])
            elif source in (FREE, device):
                times.append(made)
                if books and source == FREE:
                    self.home[tensor] = device
            else:
                missing.append((made, tensor, source))
        last: dict[int, int] = {}  # source -> end of what this op sent from there
        for made, tensor, source in sorted(missing):
            length = problem.transfer(tensor, source, device)
            sent = made
            if problem.has_contention:
                link = self.links.setdefault((source, device), [])
                sent = first_gap(link, max(made, last.get(source, 0)), length)
                last[source] = sent + length
                if books:
                    link.append((sent, sent + length))
            if books:
                self.there[tensor, device] = sent + length
            times.append(sent + length)
        return max(times)

    def busy(self, device: int) -> list[Span]:
        return [(self.start[v], self.end[v]) for v in self.sequence if self.placement[v] == device]

    def start_on(self, op: int, device: int, *, appends: bool, books: bool = False) -> int:
        ready = self.arrival(op, device, books=books)
        busy = self.busy(device)
        if appends:
            return max([ready, *(end for _, end in busy)])
        return first_gap(busy, ready, self.problem.durations[op][device])

    def place(self, op: int, device: int, *, appends: bool) -> None:
        start = self.start_on(op, device, appends=appends, books=True)
        self.placement[op] = device
        self.sequence.append(op)
        self.start[op] = start
        self.end[op] = start + self.problem.durations[op][device]

    def order(self) -> list[int]:
        return sorted(self.sequence, key=lambda v: (self.start[v], self.sequence.index(v)))

    def overflow(self, op: int, device: int) -> int:
        """Return by how much `device` would exceed its capacity if `op` were placed there."""
        problem = self.problem
        if problem.capacity[device] == UNLIMITED:
            return 0
        placed = {v: self.placement[v] for v in self.sequence} | {op: device}
        here = {
            w
            for v, d in placed.items()
            if d == device
            for w in range(problem.n_ops)
            if w == v or (problem.groups[v] >= 0 and problem.groups[w] == problem.groups[v])
        }
        residents = {r for v, r in problem.resident_users if v in here}
        used = sum(problem.resident_bytes[r] for r in residents)
        if problem.capacity_counts_live:
            used += peak_of(problem, [(v, placed[v]) for v in [*self.sequence, op]], device)
        return max(0, used - problem.capacity[device])


def first_gap(busy: Sequence[Span], ready: int, length: int) -> int:
    """Return the first start >= ready at which nothing overlaps."""
    starts = [ready, *(end for _, end in busy if end > ready)]
    return next(at for at in sorted(starts) if all(at + length <= a or at >= b for a, b in busy))


def peak_of(problem: TinyDevices, steps: Sequence[Span], device: int) -> int:
    """Return the peak of `device` if ops run one after another, each on its device.

    An instance of a storage stays until all ops that touch the storage have run; outputs stay
    where they were made. A graph input lies from the start where its first reader runs.
    """
    touches = {
        v: {problem.storages[t] for w, t in problem.reads if w == v}
        | {problem.storages[t] for t, p in enumerate(problem.producers) if p == v}
        for v in range(problem.n_ops)
    }
    given = {problem.storages[t] for t, p in enumerate(problem.producers) if p < 0}
    made = {
        v: {problem.storages[t] for t, p in enumerate(problem.producers) if p == v}
        for v in range(problem.n_ops)
    }
    kept = {problem.storages[t] for t in problem.outputs}
    homes: dict[int, int] = {}
    for v, d in steps:
        for s in touches[v] & given:
            homes.setdefault(s, d)
    here = {s for s, d in homes.items() if d == device and s >= 0}  # from the start
    made_here = set(here)
    peak = sum(problem.bytes[s] for s in here)
    for step, (v, d) in enumerate(steps):
        done = {w for w, _ in steps[:step]}
        if d == device:
            before = set(here)
            here |= touches[v] - {-1}
            made_here |= made[v]
            saved = 0
            for op, a, b in problem.in_place:
                others = {w for w in range(problem.n_ops) if a in touches[w]} - {v}
                if op == v and others <= done and a in before and b not in before:
                    saved = max(saved, problem.bytes[b])
            live = sum(problem.bytes[s] for s in here)
            peak = max(peak, live - saved + problem.workspace[v])
        for s in list(here):
            users = {w for w in range(problem.n_ops) if s in touches[w]}
            if users <= done | {v} and not (s in kept and s in made_here):
                here.discard(s)
    return peak


def slow_insertion(
    problem: TinyDevices,
    priority: Sequence[int],
    beyond: Sequence[Sequence[int]] | None = None,
) -> SlowList:
    """Return the schedule of HEFT, or PEFT with its optimistic costs (op, device)."""
    schedule = SlowList(problem)
    while len(schedule.sequence) < problem.n_ops:
        op = min(ready_ops(schedule), key=lambda v: (-priority[v], v))
        costs = []
        for d in schedule.choices(op):
            end = schedule.start_on(op, d, appends=False) + problem.durations[op][d]
            costs.append((schedule.overflow(op, d), end + (beyond[op][d] if beyond else 0), d))
        schedule.place(op, min(costs)[-1], appends=False)
    return schedule


def slow_earliest(problem: TinyDevices) -> SlowList:
    """Return the schedule of ETF; no device is ever full."""
    level = [upward_rank(problem, v, has_transfers=False) for v in range(problem.n_ops)]
    schedule = SlowList(problem)
    while len(schedule.sequence) < problem.n_ops:
        _, _, op, device = min(
            (schedule.start_on(v, d, appends=True), -level[v], v, d)
            for v in ready_ops(schedule)
            for d in schedule.choices(v)
        )
        schedule.place(op, device, appends=True)
    return schedule


def ready_ops(schedule: SlowList) -> list[int]:
    done = set(schedule.sequence)
    return [
        v
        for v in range(schedule.problem.n_ops)
        if v not in done and schedule.problem.predecessors(v) <= done
    ]


def canonical(problem: TinyDevices, classes: Sequence[int], schedule: SlowList) -> list[int]:
    """Return the placement with equal devices numbered by first use."""
    renamed: dict[int, int] = {}
    for v in schedule.order():
        device = schedule.placement[v]
        if device not in renamed:
            taken = set(renamed.values())
            alike = [d for d in range(problem.n_devices) if classes[d] == classes[device]]
            renamed[device] = next(d for d in alike if d not in taken)
    return [renamed[d] for d in schedule.placement]
