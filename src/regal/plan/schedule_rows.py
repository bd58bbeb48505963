"""Schedules between the graph's numbers (tensors) and the kernel's (rows of a problem)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from regal._native import DeviceSchedule
from regal.errors import PlanError
from regal.plan.problem import pair_rows
from regal.plan.schedule import Figures, Schedule, Transfer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from regal._native import DeviceFigures
    from regal.graph.types import Graph
    from regal.plan.schedule_problem import ScheduleProblem

MOST_INDEX = 2**31 - 1


def schedule_of(
    problem: ScheduleProblem, found: DeviceSchedule, figures: DeviceFigures
) -> tuple[Schedule, Figures]:
    """Return a simulated schedule and its figures in the graph's numbers, and in one sequence.

    The order lists all ops by their start, then by device; transfers by start, source, target,
    tensor. Neither changes what a device or a link does, and equal schedules become equal bytes.
    """
    placement = found.placement.tolist()
    op_start = figures.op_start.tolist()
    sends = found.sends.reshape(-1, 3).tolist()
    send_start = figures.send_start.tolist()
    sequence = sorted(
        range(len(sends)),
        key=lambda k: (send_start[k], sends[k][1], sends[k][2], problem.tensors[sends[k][0]]),
    )
    homes = found.home.tolist()
    schedule = Schedule(
        placement=tuple(placement),
        order=tuple(sorted(range(len(placement)), key=lambda v: (op_start[v], placement[v]))),
        transfers=tuple(
            Transfer(tensor=problem.tensors[sends[k][0]], source=sends[k][1], target=sends[k][2])
            for k in sequence
        ),
        homes={
            tensor: homes[row]
            for row, tensor in enumerate(problem.tensors)
            if problem.producers[row] < 0
        },
        in_place=tuple(problem.tensors_of_pair[row] for row in pair_rows(figures.in_place)),
    )
    plain = figures_of(figures)
    ends = plain.transfer_end_ns
    return schedule, Figures(
        time_ns=plain.time_ns,
        peak_bytes=plain.peak_bytes,
        resident_bytes=plain.resident_bytes,
        overflow_bytes=plain.overflow_bytes,
        op_start_ns=plain.op_start_ns,
        op_end_ns=plain.op_end_ns,
        transfer_start_ns=tuple(send_start[k] for k in sequence),
        transfer_end_ns=tuple(ends[k] for k in sequence),
    )


def figures_of(figures: DeviceFigures) -> Figures:
    """Return the kernel's figures as plain numbers."""
    return Figures(
        time_ns=figures.time,
        peak_bytes=tuple(figures.peak.tolist()),
        resident_bytes=tuple(figures.resident.tolist()),
        overflow_bytes=figures.overflow,
        op_start_ns=tuple(figures.op_start.tolist()),
        op_end_ns=tuple(figures.op_end.tolist()),
        transfer_start_ns=tuple(figures.send_start.tolist()),
        transfer_end_ns=tuple(figures.send_end.tolist()),
    )


def native_of(graph: Graph, problem: ScheduleProblem, schedule: Schedule) -> DeviceSchedule:
    """Return a schedule in the kernel's numbers; it is not judged here.

    Raises:
        PlanError: it speaks of tensors that cannot be sent or have no home, or of absurd numbers.
    """
    row_of = {tensor: row for row, tensor in enumerate(problem.tensors)}
    sends = []
    for transfer in schedule.transfers:
        if transfer.tensor not in row_of:
            raise PlanError(
                f"plan of '{graph.name}' sends {_name(graph, transfer.tensor)}, which is neither"
                " made by an op nor given to the graph"
            )
        sends.append((row_of[transfer.tensor], transfer.source, transfer.target))
    home = [-1] * len(problem.tensors)
    for tensor, device in schedule.homes.items():
        row = row_of.get(tensor)
        if row is None or problem.producers[row] >= 0:
            raise PlanError(
                f"plan of '{graph.name}' gives a home to {_name(graph, tensor)}, which is no"
                " input of the graph"
            )
        home[row] = device
    numbers = (*schedule.placement, *schedule.order, *home, *(n for row in sends for n in row))
    if not all(-1 <= number <= MOST_INDEX for number in numbers):
        guilty = next(number for number in numbers if not -1 <= number <= MOST_INDEX)
        raise PlanError(f"plan of '{graph.name}' names op or device {guilty}")
    return DeviceSchedule(
        _ints(schedule.placement),
        _ints(schedule.order),
        np.array(sends, dtype=np.int64).reshape(-1, 3),
        _ints(home),
    )


def in_place_rows(graph: Graph, problem: ScheduleProblem, schedule: Schedule) -> NDArray[np.int64]:
    """Return the (op, in storage, out storage) rows of the schedule's pairs, flat in three columns.

    Raises:
        PlanError: no op allows a pair.
    """
    row_of = {tensors: row for row, tensors in problem.tensors_of_pair.items()}
    for pair in schedule.in_place:
        if pair not in row_of:
            text = f"{_name(graph, pair[1])} over {_name(graph, pair[0])}"
            raise PlanError(f"plan of '{graph.name}' writes {text} in place; no op allows that")
    rows = [row_of[pair] for pair in schedule.in_place]
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def _name(graph: Graph, tensor: int) -> str:
    known = 0 <= tensor < len(graph.tensors)
    return f"'{graph.tensors[tensor].name}'" if known else f"tensor {tensor}"


def _ints(values: Sequence[int]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)
