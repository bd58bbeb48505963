"""Legal schedules from an obvious planner: any placement, any order, times by hand."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from regal.devices.types import Device, Link, System
from regal.graph.types import ABSENT
from regal.plan.schedule import Figures, ModelSchedule, Schedule, SchedulePlan, Transfer
from tests.backends.simple_plans import graph_plan, random_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.graph.types import Graph, LoadedModel

OP_NS = 100
LATENCY_NS = 30


def system(count: int) -> System:
    """Return `count` equal devices that are all linked."""
    return System(
        name=f"{count} devices",
        devices=tuple(
            Device(
                name=f"cpu{i}",
                kind="cpu",
                flops_per_s={"": 1e9},
                bytes_per_s=1e9,
                launch_ns=1,
            )
            for i in range(count)
        ),
        links={
            (a, b): Link(latency_ns=LATENCY_NS, bytes_per_s=1e9)
            for a in range(count)
            for b in range(count)
            if a != b
        },
    )


def model_schedule(
    model: LoadedModel,
    placements: Sequence[Sequence[int]],
    orders: Sequence[Sequence[int]] | None = None,
    *,
    n_devices: int = 2,
) -> ModelSchedule:
    """Return the schedule with these placements; in file order where no order is given."""
    rows = orders or [range(len(graph.ops)) for graph in model.entries]
    return ModelSchedule(
        graph_hash="",
        system=system(n_devices),
        objective="time",
        method="simple",
        seed=0,
        evaluations=1,
        plans=tuple(
            graph_schedule(graph, placement, order, n_devices)
            for graph, placement, order in zip(model.entries, placements, rows, strict=True)
        ),
    )


def random_schedule(model: LoadedModel, seed: int, n_devices: int = 2) -> ModelSchedule:
    """Return a schedule with random placements (colocated ops together) and orders."""
    chance = random.Random(seed)
    placements, orders = [], []
    for graph in model.entries:
        device_of: dict[str, int] = {}
        row = []
        for i, op in enumerate(graph.ops):
            key = op.colocation or f"alone {i}"
            row.append(device_of.setdefault(key, chance.randrange(n_devices)))
        placements.append(row)
        orders.append(random_order(graph, chance.randrange(1 << 30)))
    return model_schedule(model, placements, orders, n_devices=n_devices)


def graph_schedule(
    graph: Graph, placement: Sequence[int], order: Sequence[int], n_devices: int
) -> SchedulePlan:
    """Return the plan in which every op takes OP_NS, and every transfer LATENCY_NS."""
    writer = {t: i for i, op in enumerate(graph.ops) for t in op.outputs if t != ABSENT}
    homes: dict[int, int] = {}
    sent: dict[tuple[int, int], int] = {}  # (tensor, target) -> when it is there
    transfers: list[Transfer] = []
    arrivals: list[int] = []
    free = [0] * n_devices
    start, end = [0] * len(graph.ops), [0] * len(graph.ops)
    for i in order:
        device, ready = placement[i], free[placement[i]]
        for tensor in graph.ops[i].inputs:
            if tensor in writer:
                source, made = placement[writer[tensor]], end[writer[tensor]]
            elif tensor in graph.inputs:
                source, made = homes.setdefault(tensor, device), 0
            else:
                continue
            if source != device and (tensor, device) not in sent:
                sent[tensor, device] = made + LATENCY_NS
                transfers.append(Transfer(tensor=tensor, source=source, target=device))
                arrivals.append(made + LATENCY_NS)
            ready = max(ready, sent.get((tensor, device), made))
        for earlier in graph.ops[i].control_inputs:
            late = LATENCY_NS if placement[earlier] != device else 0
            ready = max(ready, end[earlier] + late)
        start[i], end[i] = ready, ready + OP_NS
        free[device] = end[i]
    return SchedulePlan(
        schedule=Schedule(
            placement=tuple(placement), order=tuple(order), transfers=tuple(transfers), homes=homes
        ),
        figures=Figures(
            time_ns=max(end, default=0),
            peak_bytes=(0,) * n_devices,
            resident_bytes=(0,) * n_devices,
            overflow_bytes=0,
            op_start_ns=tuple(start),
            op_end_ns=tuple(end),
            transfer_start_ns=tuple(a - LATENCY_NS for a in arrivals),
            transfer_end_ns=tuple(arrivals),
        ),
        copies=(),
        arena_bytes=(0,) * n_devices,
        time_bound_ns=0,
        peak_bound=0,
        bodies={
            i: tuple(graph_plan(body) for body in op.subgraphs)
            for i, op in enumerate(graph.ops)
            if op.subgraphs
        },
    )
