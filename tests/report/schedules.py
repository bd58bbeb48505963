"""Schedules made by hand and simulated by the definitions, slowly: what planners deliver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.devices.types import Device, Link, System
from regal.graph.memory import counted_storages
from regal.graph.types import ABSENT, COUNTED_ROLES, Graph
from regal.plan.schedule import Copy, Figures, Schedule, SchedulePlan, Transfer
from regal.plan.types import Allocation

if TYPE_CHECKING:
    from collections.abc import Sequence

Span = tuple[int, int]


def system_of(
    n_devices: int, *, memory_bytes: int | None = None, contention: bool = True
) -> System:
    """Return equal devices: a byte takes 1 ns to compute and to send, plus 2 ns of latency."""
    devices = tuple(
        Device(
            name=f"gpu{i}",
            kind="gpu",
            flops_per_s={"": 1e9},
            bytes_per_s=1e9,
            launch_ns=1,
            memory_bytes=memory_bytes,
        )
        for i in range(n_devices)
    )
    pairs = [(a, b) for a in range(n_devices) for b in range(n_devices) if a != b]
    return System(
        name="equal devices",
        devices=devices,
        links={pair: Link(latency_ns=2, bytes_per_s=1e9) for pair in pairs},
        has_contention=contention,
    )


def schedule_plan(
    graph: Graph,
    system: System,
    placement: Sequence[int],
    order: Sequence[int] | None = None,
    *,
    in_place: Sequence[tuple[int, int]] = (),
    peak_bound: int = 0,
) -> SchedulePlan:
    """Return the plan of a placement and an order; an op takes 1 ns and 1 ns per byte it makes."""
    order = tuple(range(len(graph.ops)) if order is None else order)
    homes = {
        t: placement[next(i for i in order if t in graph.ops[i].inputs)]
        for t in graph.inputs
        if any(t in op.inputs for op in graph.ops)
    }
    transfers = _transfers(graph, placement, order, homes)
    runs, sends = _times(graph, system, placement, order, transfers)
    end = max((span[1] for span in runs), default=0)
    lives = _lives(graph, placement, homes, transfers, runs, sends, end)
    merged = _merged(graph, lives, placement, in_place)
    workspaces = {
        i: (placement[i], op.workspace_bytes, runs[i])
        for i, op in enumerate(graph.ops)
        if op.workspace_bytes
    }
    sizes = counted_storages(graph)
    blocks = [(device, sizes[chain[0]], span) for chain, device, span in merged]
    blocks += list(workspaces.values())
    offsets = _stacked(blocks)
    n = len(system.devices)
    copies = []
    for (chain, device, _), offset in zip(merged, offsets, strict=False):
        for storage in chain:
            begin, until = lives[storage, device]
            first, last = _steps(placement, runs, device, (begin, until))
            place = Allocation(
                offset=offset, bytes=sizes[storage], first_step=first, last_step=last, device=device
            )
            copies.append(Copy(storage=storage, allocation=place, start_ns=begin, end_ns=until))
    arenas = [0] * n
    for (device, size, _), offset in zip(blocks, offsets, strict=True):
        arenas[device] = max(arenas[device], offset + size)
    return SchedulePlan(
        schedule=Schedule(
            placement=tuple(placement),
            order=order,
            transfers=tuple(transfers),
            homes=homes,
            in_place=tuple(in_place),
        ),
        figures=Figures(
            time_ns=end,
            peak_bytes=tuple(_painted_peak(blocks, device) for device in range(n)),
            resident_bytes=(0,) * n,
            overflow_bytes=0,
            op_start_ns=tuple(span[0] for span in runs),
            op_end_ns=tuple(span[1] for span in runs),
            transfer_start_ns=tuple(span[0] for span in sends),
            transfer_end_ns=tuple(span[1] for span in sends),
        ),
        copies=tuple(copies),
        arena_bytes=tuple(arenas),
        time_bound_ns=0,
        peak_bound=peak_bound,
        workspaces={
            i: Allocation(
                offset=offset,
                bytes=size,
                first_step=_steps(placement, runs, device, span)[0],
                last_step=_steps(placement, runs, device, span)[1],
                device=device,
            )
            for (i, (device, size, span)), offset in zip(
                workspaces.items(), offsets[len(merged) :], strict=True
            )
        },
    )


def _transfers(
    graph: Graph, placement: Sequence[int], order: Sequence[int], homes: dict[int, int]
) -> list[Transfer]:
    source = {t: placement[i] for i, op in enumerate(graph.ops) for t in op.outputs} | homes
    found: dict[tuple[int, int], Transfer] = {}
    for i in order:
        for t in graph.ops[i].inputs:
            is_sent = t != ABSENT and graph.tensors[t].role in COUNTED_ROLES
            if is_sent and source[t] != placement[i]:
                sent = Transfer(tensor=t, source=source[t], target=placement[i])
                found.setdefault((t, placement[i]), sent)
    return list(found.values())


def _times(
    graph: Graph,
    system: System,
    placement: Sequence[int],
    order: Sequence[int],
    transfers: Sequence[Transfer],
) -> tuple[list[Span], list[Span]]:
    """Return the spans of ops and transfers: raised until nothing starts too early any more."""
    writer = {t: i for i, op in enumerate(graph.ops) for t in op.outputs}
    runs, sends = [(0, 1)] * len(order), [(0, 1)] * len(transfers)
    while True:
        old = (list(runs), list(sends))
        for k, sent in enumerate(transfers):
            ready = runs[writer[sent.tensor]][1] if sent.tensor in writer else 0
            same = [j for j in range(k) if _link(transfers[j]) == _link(sent)]
            if same and system.has_contention:
                ready = max(ready, *(sends[j][1] for j in same))
            sends[k] = (ready, ready + 2 + graph.tensors[sent.tensor].bytes)
        free = [0] * len(system.devices)
        for i in order:
            op, device = graph.ops[i], placement[i]
            start = free[device]
            for k, sent in enumerate(transfers):
                if sent.tensor in op.inputs and sent.target == device:
                    start = max(start, sends[k][1])
            for t in op.inputs:
                if t in writer and placement[writer[t]] == device:
                    start = max(start, runs[writer[t]][1])
            for j in op.control_inputs:
                start = max(start, runs[j][1] + (0 if placement[j] == device else 2))
            made = sum(graph.tensors[t].bytes for t in op.outputs)
            runs[i] = (start, start + 1 + made)
            free[device] = runs[i][1]
        if old == (runs, sends):
            return runs, sends


def _link(sent: Transfer) -> tuple[int, int]:
    return sent.source, sent.target


def _lives(
    graph: Graph,
    placement: Sequence[int],
    homes: dict[int, int],
    transfers: Sequence[Transfer],
    runs: Sequence[Span],
    sends: Sequence[Span],
    end: int,
) -> dict[tuple[int, int], Span]:
    """Return (storage, device) -> when it is live there: the hull of all that touches it."""
    touched: dict[tuple[int, int], list[Span]] = {}
    counted = counted_storages(graph)

    def touch(tensor: int, device: int, span: Span) -> None:
        storage = graph.tensors[tensor].storage
        if storage in counted:
            touched.setdefault((storage, device), []).append(span)

    for i, op in enumerate(graph.ops):
        for t in (*op.inputs, *op.outputs):
            if t != ABSENT:
                touch(t, placement[i], runs[i])
    for tensor, device in homes.items():
        touch(tensor, device, (0, 0))
    for sent, span in zip(transfers, sends, strict=True):
        touch(sent.tensor, sent.source, span)
        touch(sent.tensor, sent.target, span)
    writer = {t: i for i, op in enumerate(graph.ops) for t in op.outputs}
    for t in graph.outputs:
        if t in writer:
            touch(t, placement[writer[t]], (end, end))
    return {
        key: (min(s for s, _ in spans), max(e for _, e in spans)) for key, spans in touched.items()
    }


def _merged(
    graph: Graph,
    lives: dict[tuple[int, int], Span],
    placement: Sequence[int],
    in_place: Sequence[tuple[int, int]],
) -> list[tuple[list[int], int, Span]]:
    """Return (storages that share bytes, device, hull of their lives)."""
    writer = {t: i for i, op in enumerate(graph.ops) for t in op.outputs}
    chains = {key: [key[0]] for key in sorted(lives)}
    for read, written in in_place:
        device = placement[writer[written]]
        a, b = graph.tensors[read].storage, graph.tensors[written].storage
        head = next(key for key, chain in chains.items() if key[1] == device and a in chain)
        chains[head] += chains.pop((b, device))
    return [
        (
            chain,
            device,
            (
                min(lives[s, device][0] for s in chain),
                max(lives[s, device][1] for s in chain),
            ),
        )
        for (_, device), chain in chains.items()
    ]


def _stacked(blocks: Sequence[tuple[int, int, Span]]) -> list[int]:
    """Return an offset per block: the lowest that no earlier block of its time and device has."""
    offsets: list[int] = []
    for k, (device, size, (start, end)) in enumerate(blocks):
        taken = sorted(
            (offsets[j], offsets[j] + blocks[j][1])
            for j in range(k)
            if blocks[j][0] == device and blocks[j][2][0] < end and start < blocks[j][2][1]
        )
        offset = 0
        for low, high in taken:
            if offset + size <= low:
                break
            offset = max(offset, high)
        offsets.append(offset)
    return offsets


def _painted_peak(blocks: Sequence[tuple[int, int, Span]], device: int) -> int:
    """Return the most bytes at once; that is reached at the begin of some block."""
    here = [(size, span) for d, size, span in blocks if d == device]
    return max(
        (sum(size for size, (a, b) in here if a <= time < b) for _, (time, _) in here), default=0
    )


def _steps(placement: Sequence[int], runs: Sequence[Span], device: int, span: Span) -> Span:
    """Return the first and last step of a device that a span touches."""
    starts = sorted(runs[i][0] for i, d in enumerate(placement) if d == device)
    before = sum(start < span[0] for start in starts)
    return min(before, len(starts) - 1), max(sum(start < span[1] for start in starts) - 1, 0)
