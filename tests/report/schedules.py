"""Schedules whose placement a test chooses: simulated, packed and judged as real ones are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from regal._native import complete_schedule, simulate_devices
from regal.cost.types import GraphCost
from regal.devices.types import Device, Link, System
from regal.plan.schedule_check import check_schedule_plan
from regal.plan.schedule_problem import schedule_problem
from regal.search.devices.packing import packed_schedule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.graph.types import Graph
    from regal.plan.schedule import SchedulePlan


def system_of(
    n_devices: int, *, memory_bytes: int | None = None, contention: bool = True
) -> System:
    """Return equal devices; sending a byte takes 1 ns, and 2 ns of latency come before."""
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


def cost_of(graph: Graph, system: System) -> GraphCost:
    """Return 1 ns per op and 1 ns per byte that it makes."""
    made = [sum(graph.tensors[t].bytes for t in op.outputs) for op in graph.ops]
    return GraphCost(
        op_ns=tuple((1 + size,) * len(system.devices) for size in made),
        sources=("file",) * len(made),
    )


def schedule_plan(
    graph: Graph,
    system: System,
    placement: Sequence[int],
    *,
    in_place: bool = False,
    peak_bound: int = 0,
) -> SchedulePlan:
    """Return the checked plan of a placement, with the ops in the order of the file."""
    cost = cost_of(graph, system)
    problem = schedule_problem(graph, system, cost, in_place=in_place)
    schedule = complete_schedule(
        problem.native,
        np.array(placement, dtype=np.int64),
        np.arange(len(graph.ops), dtype=np.int64),
    )
    figures = simulate_devices(problem.native, schedule)
    assert figures is not None
    plan = packed_schedule(
        graph, problem, schedule, figures, {}, time_bound_ns=0, peak_bound=peak_bound
    )
    check_schedule_plan(graph, system, cost, plan)
    return plan
