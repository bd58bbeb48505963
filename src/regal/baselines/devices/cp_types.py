"""The parts of a CP-SAT model of a schedule problem."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from ortools.sat.python.cp_model import CpModel, IntVar, LinearExpr

    from regal._native import DeviceFigures, DeviceSchedule
    from regal.plan.schedule_problem import ScheduleProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A complete schedule: where the solver starts, and how long things may take at most."""

    schedule: DeviceSchedule
    figures: DeviceFigures
    placement: NDArray[np.int64]  # of the schedule, equal devices numbered by first use
    device_of: NDArray[np.int64]  # device of the schedule -> device of the placement


@dataclass(slots=True, kw_only=True)
class DeviceModel:
    """A CP-SAT model and its variables. Times in units of `unit_ns`, sizes of `unit_bytes`."""

    model: CpModel
    problem: ScheduleProblem
    known: Known
    unit_ns: int
    unit_bytes: int
    horizon: int
    starts: list[IntVar] = field(default_factory=list)
    ends: list[LinearExpr] = field(default_factory=list)
    runs_on: list[dict[int, IntVar]] = field(default_factory=list)  # op -> device -> literal
    sends: dict[tuple[int, int], Send] = field(default_factory=dict)  # (tensor, target)
    homes: dict[int, dict[int, IntVar]] = field(default_factory=dict)  # input -> device
    makespan: IntVar | None = None
    peak: IntVar | None = None
    overflow: list[IntVar] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """A tensor that may be sent to a device: whether it is, and from when to when."""

    is_sent: IntVar
    start: LinearExpr
    end: LinearExpr


def weighted(factors: list[int], literals: list[IntVar]) -> LinearExpr:
    """Return the sum of products; 0 for none."""
    from ortools.sat.python.cp_model import LinearExpr

    return LinearExpr.weighted_sum(literals, factors)


def readers_of(problem: ScheduleProblem) -> dict[int, list[int]]:
    """Return the ops that read each tensor, for tensors that have any."""
    readers: dict[int, list[int]] = {}
    for _, op, tensor in problem.data_edges.tolist():
        readers.setdefault(tensor, []).append(op)
    for op, tensor in problem.input_reads.tolist():
        readers.setdefault(tensor, []).append(op)
    return readers
