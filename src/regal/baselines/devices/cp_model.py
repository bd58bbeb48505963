"""The schedule problem as a CP-SAT model: placement, order, transfers, capacities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from regal.baselines.devices.cp_memory import add_peaks
from regal.baselines.devices.cp_sends import add_data_edges, add_sends
from regal.baselines.devices.cp_types import DeviceModel, Known, weighted
from regal.plan.schedule_problem import UNLIMITED

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import IntervalVar, IntVar

    from regal._native import DeviceFigures, DeviceSchedule
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.types import Objective

# Products of weights and figures stay far below 2^63.
MOST_WEIGHT = 1 << 20


def known_schedule(
    problem: ScheduleProblem, schedule: DeviceSchedule, figures: DeviceFigures
) -> Known:
    """Return a schedule with its equal devices numbered by their first groups."""
    device_of = np.full(problem.n_devices, -1, dtype=np.int64)
    classes = problem.native.device_class
    free = {c: [d for d in range(problem.n_devices) if classes[d] == c] for c in set(classes)}
    for op in np.argsort(problem.native.group, kind="stable"):
        device = schedule.placement[op]
        if device_of[device] < 0:
            device_of[device] = free[classes[device]].pop(0)
    for device in range(problem.n_devices):
        if device_of[device] < 0:
            device_of[device] = free[classes[device]].pop(0)
    return Known(
        schedule=schedule,
        figures=figures,
        placement=device_of[schedule.placement],
        device_of=device_of,
    )


def device_model(
    problem: ScheduleProblem,
    objective: Objective,
    known: Known,
    *,
    unit_ns: int,
    unit_bytes: int,
    repairs: bool,
) -> DeviceModel:
    """Return the model of the whole problem, hinted with a known schedule.

    Times are rounded down to units, sizes too where they only limit: so its bounds are bounds of
    the problem. With `repairs` the bytes that exceed the devices are minimized, and nothing else.

    In-place writing is a choice of any matching of the pairs, where the simulation takes them in
    sequence: the model can promise less than a schedule needs, its bound stays a bound.
    """
    from ortools.sat.python import cp_model

    longest = _serial_ns(problem) // unit_ns + problem.n_ops
    built = DeviceModel(
        model=cp_model.CpModel(),
        problem=problem,
        known=known,
        unit_ns=unit_ns,
        unit_bytes=unit_bytes,
        horizon=max(longest, known.figures.time // unit_ns + 1),
    )
    _add_ops(built)
    _break_symmetry(built)
    add_sends(built)
    add_data_edges(built)
    _add_control_edges(built)
    model = built.model
    makespan = built.makespan = model.new_int_var(0, built.horizon, "time")
    for end in built.ends:
        model.add(makespan >= end)
    _add_work_bound(built)
    resident = _resident_uses(built)
    needs_live = problem.capacity_counts_live and bool((problem.capacity < UNLIMITED).any())
    peaks: list[IntVar] | None = None
    if objective.per_byte > 0 or needs_live:
        peaks = add_peaks(built)
    _add_capacity(built, resident, peaks, repairs=repairs)
    if repairs:
        model.minimize(sum(built.overflow))
    else:
        _add_objective(built, objective, peaks)
    return built


def _serial_ns(problem: ScheduleProblem) -> int:
    """Return a time within which some best schedule ends: everything one after the other."""
    slowest = problem.durations.max(axis=1).astype(object).sum()
    transfers = problem.transfers.max(axis=0, initial=0).astype(object).sum()
    waits = len(problem.control_edges) * int(problem.latency.max(initial=0))
    return int(slowest + transfers * problem.n_devices + waits)


def _add_ops(built: DeviceModel) -> None:
    """Add a start per op, a device per group, and one op at a time per device."""
    model, problem, known = built.model, built.problem, built.known
    groups = problem.native.group
    allowed = problem.native.may_run.reshape(-1, problem.n_devices)
    literals: list[dict[int, IntVar]] = []
    first_op = {int(g): i for i, g in reversed(list(enumerate(groups)))}
    for group in range(problem.native.n_groups):
        row = {
            int(d): model.new_bool_var(f"group{group} on {d}")
            for d in np.flatnonzero(allowed[group])
        }
        model.add_exactly_one(row.values())
        for device, literal in row.items():
            model.add_hint(literal, int(known.placement[first_op[group]]) == device)
        literals.append(row)
    intervals: list[list[IntervalVar]] = [[] for _ in range(problem.n_devices)]
    for op in range(problem.n_ops):
        start = model.new_int_var(0, built.horizon, f"start{op}")
        model.add_hint(start, int(known.figures.op_start[op]) // built.unit_ns)
        row = literals[groups[op]]
        lengths = {d: int(problem.durations[op, d]) // built.unit_ns for d in row}
        built.starts.append(start)
        built.runs_on.append(row)
        if len(set(lengths.values())) == 1:
            built.ends.append(start + next(iter(lengths.values())))
        else:
            built.ends.append(start + weighted([lengths[d] for d in row], list(row.values())))
        for d, literal in row.items():
            if lengths[d] > 0:
                intervals[d].append(
                    model.new_optional_fixed_size_interval_var(start, lengths[d], literal, "")
                )
    for device in range(problem.n_devices):
        model.add_no_overlap(intervals[device])


def _break_symmetry(built: DeviceModel) -> None:
    """Number equal devices by their first groups: group i is on one of the first i + 1 of them."""
    classes = built.problem.native.device_class
    groups = built.problem.native.group
    rank = [int((classes[:d] == classes[d]).sum()) for d in range(built.problem.n_devices)]
    seen: set[int] = set()
    used: dict[int, list[IntVar]] = {}  # device -> literals of earlier groups on it
    for op in np.argsort(groups, kind="stable"):
        if groups[op] in seen:
            continue
        seen.add(int(groups[op]))
        for device, literal in built.runs_on[op].items():
            if rank[device] > 0:
                before = max(d for d in range(device) if classes[d] == classes[device])
                built.model.add_bool_or([*used.get(before, []), ~literal])
        if len(seen) > 200:  # by then all devices are in use, or the clauses get long
            break
        for device, literal in built.runs_on[op].items():
            used.setdefault(device, []).append(literal)


def _add_control_edges(built: DeviceModel) -> None:
    """Let ops wait for the latency where a control edge joins two devices."""
    for earlier, later in built.problem.control_edges.tolist():
        built.model.add(built.starts[later] >= built.ends[earlier])
        for a, from_literal in built.runs_on[earlier].items():
            for b, to_literal in built.runs_on[later].items():
                latency = int(built.problem.latency[a, b]) // built.unit_ns
                if a != b and latency > 0:
                    built.model.add(
                        built.starts[later] >= built.ends[earlier] + latency
                    ).only_enforce_if(from_literal, to_literal)


def _add_work_bound(built: DeviceModel) -> None:
    """Say in linear form that a device runs one op at a time."""
    if built.makespan is None:
        return
    for device in range(built.problem.n_devices):
        ops = [op for op, row in enumerate(built.runs_on) if device in row]
        work = weighted(
            [int(built.problem.durations[op, device]) // built.unit_ns for op in ops],
            [built.runs_on[op][device] for op in ops],
        )
        built.model.add(built.makespan >= work)


def _resident_uses(built: DeviceModel) -> list[list[tuple[int, IntVar]]]:
    """Return per device (bytes, literal): parameters and state that may lie there."""
    users: dict[int, list[int]] = {}
    for op, resident in built.problem.resident_users.tolist():
        users.setdefault(resident, []).append(op)
    uses: list[list[tuple[int, IntVar]]] = [[] for _ in range(built.problem.n_devices)]
    for resident, ops in users.items():
        size = int(built.problem.resident_bytes[resident])
        rows = {int(built.problem.native.group[op]): built.runs_on[op] for op in ops}
        for device in sorted({d for row in rows.values() for d in row}):
            literals = [row[device] for row in rows.values() if device in row]
            lies_there = literals[0]
            if len(literals) > 1:
                lies_there = built.model.new_bool_var(f"resident{resident} on {device}")
                for literal in literals:
                    built.model.add_implication(literal, lies_there)
            uses[device].append((size, lies_there))
    return uses


def _add_capacity(
    built: DeviceModel,
    resident: list[list[tuple[int, IntVar]]],
    peaks: list[IntVar] | None,
    *,
    repairs: bool,
) -> None:
    for device, capacity in enumerate(built.problem.capacity.tolist()):
        if capacity == UNLIMITED:
            continue
        sizes = [size for size, _ in resident[device]]
        used = weighted(sizes, [literal for _, literal in resident[device]])
        if peaks is not None and built.problem.capacity_counts_live:
            used = used + built.unit_bytes * peaks[device]
        if repairs:
            most = int(built.problem.resident_bytes.sum() + built.problem.storage_bytes.sum())
            over = built.model.new_int_var(0, most + int(built.problem.workspace.sum()), "")
            built.overflow.append(over)
            used = used - over
        built.model.add(used <= capacity)


def _add_objective(built: DeviceModel, objective: Objective, peaks: list[IntVar] | None) -> None:
    if built.makespan is None:
        return
    if peaks is not None:
        most = int(built.problem.storage_bytes.sum() + built.problem.workspace.sum())
        built.peak = built.model.new_int_var(0, most // built.unit_bytes + 1, "peak")
        for peak in peaks:
            built.model.add(built.peak >= peak)
    per_time, per_size = objective.per_ns * built.unit_ns, objective.per_byte * built.unit_bytes
    if built.peak is None or per_size == 0:
        built.model.minimize(built.makespan)
    elif per_time == 0:
        built.model.minimize(built.peak)
    else:
        scale = MOST_WEIGHT / max(per_time, per_size)
        built.model.minimize(
            round(per_time * scale) * built.makespan + round(per_size * scale) * built.peak
        )
