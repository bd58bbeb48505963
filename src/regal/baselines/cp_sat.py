"""OR-tools CP-SAT: positions, liveness intervals and one cumulative resource."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal.errors import BackendError, UsageError
from regal.search.classic import best_classic
from regal.search.types import Outcome

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, CpSolver, IntVar

    from regal._native import Cancel, OrderProblem
    from regal.search.types import Budget

# Above it the model alone takes longer than other methods need for a better answer: 245 ops
# came out 14 times worse than the optimum after 51 s without a hint.
MOST_OPS = 1000


def cp_sat(
    problem: OrderProblem,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    stop_at: int,
    cancel: Cancel | None = None,
) -> Outcome:
    """Return the best order that CP-SAT finds from the best classic order, with its bound.

    It is limited by wall time alone, so its result is not reproducible. With more than
    `MOST_OPS` ops the hint comes back, and the note says so.

    Raises:
        BackendError: OR-tools is not installed.
        UsageError: the budget has no time limit.
    """
    if budget.seconds is None:
        raise UsageError("cp-sat: evaluations do not limit it; give a time limit")
    started = time.perf_counter()
    hint = best_classic(problem, stop_at=stop_at)
    if problem.n_ops > MOST_OPS:
        note = f"cp-sat: {problem.n_ops} ops are more than {MOST_OPS}; classic order returned"
        return _outcome(problem, hint.order, stop_at, started, note=note)
    if hint.is_optimal:
        return _outcome(problem, hint.order, stop_at, started)
    try:
        from ortools.sat.python import cp_model
    except ImportError as error:
        raise BackendError("cp-sat: ortools is not installed; pip install regal[cp-sat]") from error

    rows = _Rows.of(problem)
    model = cp_model.CpModel()
    unit = math.gcd(*rows.bytes, *rows.workspace) or 1
    positions, peak = _add_problem(model, rows, unit, hint.peak_bytes, stop_at)
    for step, op in enumerate(hint.order):
        model.add_hint(positions[op], step)
    solver = cp_model.CpSolver()
    spent = time.perf_counter() - started
    solver.parameters.max_time_in_seconds = max(0.01, budget.seconds - spent)
    solver.parameters.num_workers = threads
    solver.parameters.random_seed = seed % 2**31
    model.minimize(peak)
    status = _solve(solver, model, cancel)

    order = hint.order
    bound = stop_at
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        places = [solver.value(position) for position in positions]
        found = np.argsort(np.array(places), kind="stable").astype(np.int64)
        if _native.peak_of(problem, found) < hint.peak_bytes:
            order = found
        bound = max(stop_at, math.ceil(solver.best_objective_bound - 1e-6) * unit)
    was_interrupted = cancel is not None and cancel.is_cancelled
    return _outcome(problem, order, bound, started, was_interrupted=was_interrupted)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """The problem as Python rows."""

    n_ops: int
    edges: list[tuple[int, int]]
    users: list[list[int]]  # per storage: the ops that touch it
    bytes: list[int]
    workspace: list[int]
    inputs: frozenset[int]
    outputs: frozenset[int]
    in_place: list[tuple[int, int, int]]

    @classmethod
    def of(cls, problem: OrderProblem) -> _Rows:
        edges, touches, sizes, workspace, inputs, outputs, in_place = _native.problem_rows(problem)
        users: list[list[int]] = [[] for _ in sizes]
        for op, storage in touches.reshape(-1, 2).tolist():
            users[storage].append(op)
        return cls(
            n_ops=problem.n_ops,
            edges=[(a, b) for a, b in edges.reshape(-1, 2).tolist()],
            users=users,
            bytes=sizes.tolist(),
            workspace=workspace.tolist(),
            inputs=frozenset(inputs.tolist()),
            outputs=frozenset(outputs.tolist()),
            in_place=[(op, a, b) for op, a, b in in_place.reshape(-1, 3).tolist()],
        )


def _add_problem(
    model: CpModel, rows: _Rows, unit: int, most_bytes: int, least_bytes: int
) -> tuple[list[IntVar], IntVar]:
    """Add the whole problem to the model; return the position of each op, and the peak."""
    n = rows.n_ops
    earliest, latest = _windows(rows)
    positions = [model.new_int_var(earliest[v], latest[v], f"op{v}") for v in range(n)]
    model.add_all_different(positions)
    for a, b in rows.edges:
        model.add(positions[a] < positions[b])
    merged = _add_in_place(model, rows, positions)
    intervals, demands = [], []
    for s, users in enumerate(rows.users):
        if rows.bytes[s] == 0 or not (users or (s in rows.inputs and s in rows.outputs)):
            continue
        start = model.new_int_var(0, n, f"start{s}")
        end = model.new_int_var(0, n, f"end{s}")
        size = model.new_int_var(0, n, f"size{s}")
        if s in rows.inputs:
            model.add(start == 0)
        else:
            model.add_min_equality(start, [positions[v] for v in users])
        if s in rows.outputs:
            model.add(end == n)
        else:
            last = model.new_int_var(0, n - 1, f"last{s}")
            model.add_max_equality(last, [positions[v] for v in users])
            model.add(end == last + 1 - sum(merged.get(s, [])))
        intervals.append(model.new_interval_var(start, size, end, f"storage{s}"))
        demands.append(rows.bytes[s] // unit)
    for v in range(n):
        if rows.workspace[v] > 0:
            intervals.append(model.new_fixed_size_interval_var(positions[v], 1, f"run{v}"))
            demands.append(rows.workspace[v] // unit)
    peak = model.new_int_var(least_bytes // unit, most_bytes // unit, "peak")
    model.add_cumulative(intervals, demands, peak)
    return positions, peak


def _add_in_place(model: CpModel, rows: _Rows, positions: list[IntVar]) -> dict[int, list[IntVar]]:
    """Add a choice per in-place pair; return the choices that end each storage early.

    The model may choose any matching of the pairs; a plan takes them in sequence. Where
    pairs of one op compete, the model can therefore promise less than a plan uses: its
    bound stays a bound.
    """
    by_input: dict[int, list[IntVar]] = {}
    by_output: dict[int, list[IntVar]] = {}
    for number, (op, a, b) in enumerate(rows.in_place):
        chosen = model.new_bool_var(f"pair{number}")
        for v in rows.users[a]:
            model.add(positions[v] <= positions[op]).only_enforce_if(chosen)
        for v in rows.users[b]:
            model.add(positions[v] >= positions[op]).only_enforce_if(chosen)
        by_input.setdefault(a, []).append(chosen)
        by_output.setdefault(b, []).append(chosen)
    for choices in [*by_input.values(), *by_output.values()]:
        model.add_at_most_one(choices)
    return by_input


def _windows(rows: _Rows) -> tuple[list[int], list[int]]:
    """Return the first and last step of each op, from how many ops must surround it."""
    n = rows.n_ops
    before: list[set[int]] = [set() for _ in range(n)]
    after: list[set[int]] = [set() for _ in range(n)]
    for a, b in rows.edges:
        before[b].add(a)
        after[a].add(b)

    def counts(direct: list[set[int]]) -> list[int]:
        reached: dict[int, int] = {}  # op -> bit set of all that it reaches
        for root in range(n):
            stack = [root]
            while stack:
                op = stack[-1]
                missing = [v for v in direct[op] if v not in reached]
                if op in reached or not missing:
                    stack.pop()
                    reached[op] = 0
                    for v in direct[op]:
                        reached[op] |= reached[v] | 1 << v
                else:
                    stack.extend(missing)
        return [reached[v].bit_count() for v in range(n)]

    return counts(before), [n - 1 - count for count in counts(after)]


def _solve(solver: CpSolver, model: CpModel, cancel: Cancel | None) -> int:
    """Solve, and stop early when `cancel` is set."""
    if cancel is None:
        return int(solver.solve(model))
    is_done = threading.Event()

    def watch() -> None:
        while not is_done.wait(0.02):
            if cancel.is_cancelled:
                solver.stop_search()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        return int(solver.solve(model))
    finally:
        is_done.set()
        watcher.join()


def _outcome(
    problem: OrderProblem,
    order: np.typing.NDArray[np.int64],
    bound: int,
    started: float,
    *,
    was_interrupted: bool = False,
    note: str = "",
) -> Outcome:
    peak_bytes = _native.peak_of(problem, order)
    return Outcome(
        order=order,
        peak_bytes=peak_bytes,
        evaluations=0,
        seconds=time.perf_counter() - started,
        lower_bound=bound,
        was_interrupted=was_interrupted,
        note=note,
    )
