"""A stretch of a schedule as a CP-SAT model: free inside, fixed before and after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regal.cost.types import FORBIDDEN
from regal.plan.schedule_problem import UNLIMITED

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from ortools.sat.python.cp_model import CpModel, IntervalVar, IntVar, LinearExpr

    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.types import DeviceOutcome

    Ints = NDArray[np.int64]

TIME_UNITS = 1 << 20  # of the running time; with more the solver is much slower


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Ops that follow each other in the order of their starts, and what is around them."""

    placement: Ints  # (N,) of the schedule
    order: Ints  # (N,) by start
    first: int  # position of the first op of the window
    end: int  # past the last
    starts: Ints  # (N,) ns
    ends: Ints
    time_ns: int

    @property
    def ops(self) -> list[int]:
        """Return the ops that are free."""
        return [int(op) for op in self.order[self.first : self.end]]


def window_around(
    problem: ScheduleProblem, outcome: DeviceOutcome, op: int, size: int
) -> Window | None:
    """Return a window of about `size` ops around one; None: nothing in it can move."""
    figures = outcome.figures
    # Ties as in the schedule: an op of no length stays behind what it needs.
    rank = np.empty(problem.n_ops, dtype=np.int64)
    rank[outcome.schedule.order] = np.arange(problem.n_ops)
    order = np.lexsort((rank, figures.op_start))
    at = int(np.flatnonzero(order == op)[0])
    first = max(0, min(at - size // 2, problem.n_ops - size))
    return Window(
        placement=outcome.schedule.placement,
        order=order,
        first=first,
        end=min(problem.n_ops, first + size),
        starts=figures.op_start,
        ends=figures.op_end,
        time_ns=figures.time,
    )


class WindowModel:
    """The model of one window. Transfers take their time, but never wait for a link."""

    def __init__(self, problem: ScheduleProblem, window: Window) -> None:
        from ortools.sat.python import cp_model

        self._problem = problem
        self._window = window
        self._unit = max(1, window.time_ns // TIME_UNITS)
        self._model: CpModel = cp_model.CpModel()
        self._free = set(window.ops)
        self._place = {int(op): i for i, op in enumerate(window.order)}
        self._starts: dict[int, IntVar] = {}
        self._ends: dict[int, LinearExpr] = {}
        self._runs_on: dict[int, dict[int, IntVar]] = {}
        self._makespan = self._model.new_int_var(0, max(0, window.time_ns // self._unit - 1), "")
        self._tails = self._tails_after()
        self._add_ops()
        self._add_edges()
        self._add_borders()
        self._add_capacity()
        self._model.minimize(self._makespan)

    def solve(
        self, *, seed: int, deterministic_seconds: float, seconds: float | None
    ) -> tuple[Ints, Ints] | None:
        """Return a placement and an order of all ops that end earlier in the model, if any.

        What `seconds` cut off does not count: it would differ from run to run.
        """
        from ortools.sat.python import cp_model

        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = seed
        solver.parameters.max_deterministic_time = deterministic_seconds
        if seconds is not None:
            solver.parameters.max_time_in_seconds = max(seconds, 0.01)
        status = solver.solve(self._model)
        was_cut_off = seconds is not None and solver.wall_time >= seconds
        if was_cut_off or status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None
        placement = self._window.placement.copy()
        for op, row in self._runs_on.items():
            placement[op] = next(d for d, on in row.items() if solver.boolean_value(on))
        rank = self._place
        inside = sorted(self._free, key=lambda op: (solver.value(self._starts[op]), rank[op]))
        order = self._window.order.copy()
        order[self._window.first : self._window.end] = inside
        return placement, order

    def _units(self, ns: int) -> int:
        return int(ns) // self._unit

    def _lag(self, tensor: int, source: int, target: int) -> int:
        """Return what a transfer takes in ns."""
        if source == target:
            return 0
        return int(self._problem.transfers[self._problem.link_classes[source, target], tensor])

    def _tails_after(self) -> dict[int, int]:
        """Return, for each op after the window, ns from its start to the end of the run."""
        problem, window = self._problem, self._window
        waiting = _successors(problem)
        tails: dict[int, int] = {}
        first_on: dict[int, int] = {}  # device -> the op that runs next on it
        for op in reversed([int(op) for op in window.order[window.end :]]):
            here = int(window.placement[op])
            longest = tails[first_on[here]] if here in first_on else 0
            for later, tensor in waiting.get(op, []):
                there = int(window.placement[later])
                if tensor >= 0:
                    lag = self._lag(tensor, here, there)
                else:
                    lag = int(problem.latency[here, there])
                longest = max(longest, lag + tails[later])
            tails[op] = longest + int(problem.durations[op, here])
            first_on[here] = op
        return tails

    def _add_ops(self) -> None:
        problem, window, model = self._problem, self._window, self._model
        horizon = window.time_ns // self._unit + 1
        allowed = problem.native.may_run.reshape(-1, problem.n_devices)
        groups = problem.native.group
        held = {int(groups[op]) for op in range(problem.n_ops) if op not in self._free}
        rows: dict[int, dict[int, IntVar]] = {}
        on_device: list[list[IntervalVar]] = [[] for _ in range(problem.n_devices)]
        for op in window.ops:
            group, now = int(groups[op]), int(window.placement[op])
            if group not in rows:
                devices = [now] if group in held else np.flatnonzero(allowed[group]).tolist()
                rows[group] = {d: model.new_bool_var(f"{group} on {d}") for d in devices}
                model.add_exactly_one(rows[group].values())
                for d, literal in rows[group].items():
                    model.add_hint(literal, d == now)
            row = self._runs_on[op] = rows[group]
            start = self._starts[op] = model.new_int_var(0, horizon, f"start{op}")
            model.add_hint(start, self._units(window.starts[op]))
            lengths = {d: self._units(problem.durations[op, d]) for d in row}
            length = sum(lengths[d] * row[d] for d in row)
            self._ends[op] = start + length
            for d, literal in row.items():
                if problem.durations[op, d] != FORBIDDEN and lengths[d] > 0:
                    on_device[d].append(
                        model.new_optional_fixed_size_interval_var(start, lengths[d], literal, "")
                    )
            model.add(self._makespan >= self._ends[op])
        for intervals in on_device:
            model.add_no_overlap(intervals)

    def _add_edges(self) -> None:
        """Let ops wait for what they read or are controlled by, inside and across the borders."""
        problem = self._problem
        for producer, reader, tensor in problem.data_edges.tolist():
            lags = {
                (a, b): self._units(self._lag(tensor, a, b))
                for a in self._devices(producer)
                for b in self._devices(reader)
            }
            self._add_wait(producer, reader, lags)
        for earlier, later in problem.control_edges.tolist():
            lags = {
                (a, b): self._units(problem.latency[a, b])
                for a in self._devices(earlier)
                for b in self._devices(later)
            }
            self._add_wait(earlier, later, lags)

    def _devices(self, op: int) -> list[int]:
        return list(self._runs_on[op]) if op in self._free else [int(self._window.placement[op])]

    def _add_wait(self, earlier: int, later: int, lags: dict[tuple[int, int], int]) -> None:
        model = self._model
        if earlier in self._free and later in self._free:
            model.add(self._starts[later] >= self._ends[earlier])
            far = {pair: lag for pair, lag in lags.items() if lag > 0}
            if not far:
                return
            if len(set(far.values())) == 1 and len(far) == sum(a != b for a, b in lags):
                is_cut = model.new_bool_var("")
                for d, literal in self._runs_on[later].items():
                    same = [self._runs_on[earlier][d]] if d in self._runs_on[earlier] else []
                    model.add_bool_or([is_cut, ~literal, *same])
                lag = next(iter(far.values()))
                model.add(self._starts[later] >= self._ends[earlier] + lag).only_enforce_if(is_cut)
                return
            for (a, b), lag in far.items():
                model.add(self._starts[later] >= self._ends[earlier] + lag).only_enforce_if(
                    self._runs_on[earlier][a], self._runs_on[later][b]
                )
        elif later in self._free:
            end = self._units(self._window.ends[earlier])
            for (_, b), lag in lags.items():
                model.add(self._starts[later] >= end + lag).only_enforce_if(self._runs_on[later][b])
        elif earlier in self._free:
            tail = self._units(self._tails[later])
            for (a, _), lag in lags.items():
                model.add(self._makespan >= self._ends[earlier] + lag + tail).only_enforce_if(
                    self._runs_on[earlier][a]
                )

    def _add_borders(self) -> None:
        """Let each device run the window between what it runs before and after."""
        window, model = self._window, self._model
        for device in range(self._problem.n_devices):
            before = [int(op) for op in window.order[: window.first]]
            release = max(
                (int(window.ends[op]) for op in before if window.placement[op] == device), default=0
            )
            after = next(
                (int(op) for op in window.order[window.end :] if window.placement[op] == device),
                None,
            )
            tail = 0 if after is None else self._units(self._tails[after])
            for op in window.ops:
                literal = self._runs_on[op].get(device)
                if literal is None:
                    continue
                if release > 0:
                    model.add(self._starts[op] >= self._units(release)).only_enforce_if(literal)
                if tail > 0:
                    model.add(self._makespan >= self._ends[op] + tail).only_enforce_if(literal)

    def _add_capacity(self) -> None:
        """Keep parameters and state within each device; what lives is judged by the simulation."""
        problem, window = self._problem, self._window
        if (problem.capacity == UNLIMITED).all():
            return
        users: dict[int, list[int]] = {}
        for op, resident in problem.resident_users.tolist():
            users.setdefault(resident, []).append(op)
        for device, capacity in enumerate(problem.capacity.tolist()):
            if capacity == UNLIMITED:
                continue
            fixed = 0
            literals: list[IntVar] = []
            sizes: list[int] = []
            for resident, ops in users.items():
                size = int(problem.resident_bytes[resident])
                outside = [op for op in ops if op not in self._free]
                if any(window.placement[op] == device for op in outside):
                    fixed += size
                    continue
                rows = {id(self._runs_on[op]): self._runs_on[op] for op in ops if op in self._free}
                here = [row[device] for row in rows.values() if device in row]
                if len(here) > 1:
                    lies_there = self._model.new_bool_var("")
                    for literal in here:
                        self._model.add_implication(literal, lies_there)
                    here = [lies_there]
                if here:
                    literals.append(here[0])
                    sizes.append(size)
            used = sum(size * literal for size, literal in zip(sizes, literals, strict=True))
            now = fixed  # what is too much already may stay
            self._model.add(used <= max(capacity - now, 0))


def _successors(problem: ScheduleProblem) -> dict[int, list[tuple[int, int]]]:
    """Return op -> (op that waits for it, tensor or -1 for a control edge)."""
    successors: dict[int, list[tuple[int, int]]] = {}
    for producer, reader, tensor in problem.data_edges.tolist():
        successors.setdefault(producer, []).append((reader, tensor))
    for earlier, later in problem.control_edges.tolist():
        successors.setdefault(earlier, []).append((later, -1))
    return successors
