"""Slow and obvious: several devices, tick by tick, from the words of the performance model.

Each device runs one op at a time, in its order; an op starts when its device is free and all its
inputs are there. A tensor goes once to each other device that needs it; a link carries one tensor
at a time, in its order (or any number, without contention). Memory on a device: an output from its
op's start, a copy from its transfer's start, until the last local reader and the last transfer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.device_problems import TinyDevices

    Span = tuple[int, int]  # start, end
    Send = tuple[int, int, int]  # tensor, source, target


@dataclass(slots=True)
class SlowSchedule:
    """A complete schedule, as plain lists."""

    placement: list[int]
    order: list[int]
    sends: list[Send]
    home: list[int]


@dataclass(slots=True)
class SlowFigures:
    """What a schedule takes."""

    op_span: dict[int, Span]
    send_span: dict[Send, Span]
    time: int = 0
    peak: list[int] = field(default_factory=list)
    resident: list[int] = field(default_factory=list)
    overflow: int = 0
    in_place: list[tuple[int, int, int]] = field(default_factory=list)


def slow_home(problem: TinyDevices, placement: Sequence[int], order: Sequence[int]) -> list[int]:
    """Return where each graph input begins: with its first reader in the order."""
    homes = []
    for tensor, producer in enumerate(problem.producers):
        readers = [op for op in order if op in problem.readers(tensor)]
        homes.append(-1 if producer >= 0 else placement[readers[0]] if readers else 0)
    return homes


def needed_sends(problem: TinyDevices, placement: Sequence[int], home: Sequence[int]) -> set[Send]:
    """Return every transfer that the placement needs."""
    sends = set()
    for tensor, producer in enumerate(problem.producers):
        source = placement[producer] if producer >= 0 else home[tensor]
        for op in problem.readers(tensor):
            if placement[op] != source:
                sends.add((tensor, source, placement[op]))
    return sends


def slow_sends(
    problem: TinyDevices, placement: Sequence[int], order: Sequence[int], home: Sequence[int]
) -> list[Send]:
    """Return the transfers in the sequence in which greedy links start them, tick by tick."""
    waiting = needed_sends(problem, placement, home)
    started: list[Send] = []
    send_span: dict[Send, Span] = {}
    op_span: dict[int, Span] = {}
    now = 0
    while len(op_span) < problem.n_ops:
        for device in range(problem.n_devices):
            _start_op(problem, placement, order, home, device, now, op_span, send_span)
        for source in range(problem.n_devices):
            for target in range(problem.n_devices):
                ready = [
                    (
                        min(
                            order.index(v) for v in problem.readers(s[0]) if placement[v] == target
                        ),
                        s,
                    )
                    for s in waiting
                    if s[1:] == (source, target) and _is_made(problem, s[0], now, op_span)
                ]
                for _, send in sorted(ready):
                    busy = any(s[1:] == send[1:] and end > now for s, (_, end) in send_span.items())
                    if not (busy and problem.has_contention):
                        send_span[send] = (now, now + problem.transfer(*send))
                        waiting.remove(send)
                        started.append(send)
        now += 1
    return sorted(started, key=lambda s: (send_span[s][0], s[1], s[2], s[0]))


def slow_figures(problem: TinyDevices, schedule: SlowSchedule) -> SlowFigures | None:
    """Return what `schedule` takes; None when everything waits for something else."""
    op_span: dict[int, Span] = {}
    send_span: dict[Send, Span] = {}
    now = 0
    while len(op_span) < problem.n_ops or len(send_span) < len(schedule.sends):
        before = len(op_span) + len(send_span)
        for device in range(problem.n_devices):
            _start_op(
                problem, schedule.placement, schedule.order, schedule.home, device, now, op_span,
                send_span,
            )  # fmt: skip
        for link in {send[1:] for send in schedule.sends}:
            for send in (s for s in schedule.sends if s[1:] == link):
                if send in send_span:
                    if problem.has_contention and send_span[send][1] > now:
                        break
                elif _is_made(problem, send[0], now, op_span):
                    send_span[send] = (now, now + problem.transfer(*send))
                    if problem.has_contention:
                        break
                elif problem.has_contention:
                    break
        running = [end for _, end in (*op_span.values(), *send_span.values()) if end > now]
        latest = max([end for _, end in op_span.values()], default=0)
        if len(op_span) + len(send_span) == before and not running and now > latest + 9:
            return None
        now += 1
    figures = SlowFigures(op_span=op_span, send_span=send_span)
    figures.time = max((end for _, end in op_span.values()), default=0)
    figures.in_place = _pairs(problem, schedule, figures)
    _weigh(problem, schedule, figures)
    return figures


def _is_made(problem: TinyDevices, tensor: int, now: int, op_span: dict[int, Span]) -> bool:
    producer = problem.producers[tensor]
    return producer < 0 or (producer in op_span and op_span[producer][1] <= now)


def _start_op(
    problem: TinyDevices,
    placement: Sequence[int],
    order: Sequence[int],
    home: Sequence[int],
    device: int,
    now: int,
    op_span: dict[int, Span],
    send_span: dict[Send, Span],
) -> None:
    mine = [v for v in order if placement[v] == device]
    if any(v in op_span and op_span[v][1] > now for v in mine):
        return
    left = [v for v in mine if v not in op_span]
    if not left:
        return
    op = left[0]
    for reader, tensor in problem.reads:
        if reader == op:
            producer = problem.producers[tensor]
            source = placement[producer] if producer >= 0 else home[tensor]
            if source == device and not _is_made(problem, tensor, now, op_span):
                return
            send = (tensor, source, device)
            if source != device and not (send in send_span and send_span[send][1] <= now):
                return
    for earlier, later in problem.controls:
        if later == op:
            wait = problem.latency[placement[earlier]][device]
            if not (earlier in op_span and op_span[earlier][1] + wait <= now):
                return
    op_span[op] = (now, now + problem.durations[op][device])


def _touches(
    problem: TinyDevices, schedule: SlowSchedule, figures: SlowFigures, storage: int, device: int
) -> list[tuple[int, Span, bool]]:
    """Return (op or -1, span, whether bytes appear) of all that needs an instance."""
    found: list[tuple[int, Span, bool]] = []
    for tensor in range(problem.n_tensors):
        if problem.storages[tensor] != storage:
            continue
        producer = problem.producers[tensor]
        for op, span in figures.op_span.items():
            if schedule.placement[op] == device:
                if op == producer:
                    found.append((op, span, True))
                if op in problem.readers(tensor):
                    found.append((op, span, False))
        for send, span in figures.send_span.items():
            if send[0] == tensor and device in send[1:]:
                found.append((-1, span, send[2] == device))
        source = schedule.placement[producer] if producer >= 0 else schedule.home[tensor]
        if source == device:
            if producer < 0:
                found.append((-1, (0, 0), True))
            if tensor in problem.outputs:
                found.append((-1, (figures.time, figures.time), False))
    return found


def _pairs(
    problem: TinyDevices, schedule: SlowSchedule, figures: SlowFigures
) -> list[tuple[int, int, int]]:
    happened: list[tuple[int, int, int]] = []
    for op in range(problem.n_ops):
        start, end = figures.op_span[op]
        device = schedule.placement[op]
        for pair in problem.in_place:
            if pair[0] != op:
                continue
            _, a, b = pair
            others_a = [t for t in _touches(problem, schedule, figures, a, device) if t[0] != op]
            others_b = [t for t in _touches(problem, schedule, figures, b, device) if t[0] != op]
            is_last = all(span[1] <= start for _, span, _ in others_a)
            is_first = all(span[0] >= end for _, span, _ in others_b)
            used = any(p[0] == op and (p[1] == a or p[2] == b) for p in happened)
            if is_last and is_first and not used:
                happened.append(pair)
    return happened


def _weigh(problem: TinyDevices, schedule: SlowSchedule, figures: SlowFigures) -> None:
    for device in range(problem.n_devices):
        peak = 0
        lives = []
        for storage, size in enumerate(problem.bytes):
            touches = _touches(problem, schedule, figures, storage, device)
            births = [span[0] for _, span, is_birth in touches if is_birth]
            if births:
                lives.append((min(births), max(span[1] for _, span, _ in touches), size))
        for tick in range(figures.time):
            live = sum(size for first, last, size in lives if first <= tick < last)
            for op, (start, end) in figures.op_span.items():
                if schedule.placement[op] == device and start <= tick < end:
                    live += problem.workspace[op]
                    live -= sum(problem.bytes[a] for v, a, _ in figures.in_place if v == op)
            peak = max(peak, live)
        users = {r for v, r in problem.resident_users if schedule.placement[v] == device}
        resident = sum(problem.resident_bytes[r] for r in users)
        used = resident + (peak if problem.capacity_counts_live else 0)
        figures.peak.append(peak)
        figures.resident.append(resident)
        figures.overflow += max(0, used - problem.capacity[device])


def all_placements(problem: TinyDevices) -> Iterator[tuple[int, ...]]:
    """Yield every legal placement."""

    def extend(done: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        op = len(done)
        if op == problem.n_ops:
            yield done
            return
        for device in range(problem.n_devices):
            mates = [done[v] for v in range(op) if problem.groups[v] == problem.groups[op] >= 0]
            if problem.durations[op][device] > 0 and all(mate == device for mate in mates):
                yield from extend((*done, device))

    yield from extend(())


def all_orders(problem: TinyDevices) -> Iterator[tuple[int, ...]]:
    """Yield every topological order."""

    def extend(done: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(done) == problem.n_ops:
            yield done
        for op in range(problem.n_ops):
            if op not in done and problem.predecessors(op) <= set(done):
                yield from extend((*done, op))

    yield from extend(())
