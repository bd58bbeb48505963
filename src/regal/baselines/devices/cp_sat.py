"""OR-tools CP-SAT: placement and schedule as one model, started from the best heuristic."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal.baselines.devices.cp_model import device_model, known_schedule
from regal.baselines.devices.rules import RuleMethod
from regal.errors import BackendError, UsageError
from regal.plan.schedule_problem import UNLIMITED
from regal.search.devices.outcomes import score_of

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpSolver

    from regal._native import Cancel, DeviceSchedule
    from regal.baselines.devices.cp_types import DeviceModel
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.types import DeviceOutcome, Objective
    from regal.search.types import Budget

# Above it the model alone takes longer than other methods need for a better schedule.
MOST_TIME_LITERALS = 40_000  # ops * devices
MOST_MEMORY_LITERALS = 8_000  # storages * devices
# The running time is counted in about so many units: with more the solver is much slower (a graph
# of 604 ops: optimum proven in 6 s with 2^20 units, nothing found in 15 s with 2^28). Where the
# optimum of the rounded times is proven, the rest of the time goes to exact ones.
TIME_UNITS = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CpSat:
    """A `DeviceMethod`: CP-SAT from the best schedule of the heuristics, with its bounds.

    Wall time limits it, so that its result is not reproducible; with `deterministic_seconds`
    (CP-SAT's own measure of work) and one worker it is. Where the graph is too large for a
    model, the heuristic schedule comes back and the note says so.

    Source: the formulation of Tarnawski et al. 2020 as a scheduling model; memory as retention
    intervals, as in MOCCASIN (Bartan et al. 2023).
    """

    deterministic_seconds: float | None = None
    start: DeviceOutcome | None = None  # another schedule to start from

    def __call__(
        self,
        problem: ScheduleProblem,
        objective: Objective,
        budget: Budget,
        *,
        seed: int,
        threads: int,
        cancel: Cancel | None = None,
    ) -> DeviceOutcome:
        """Return the best schedule that CP-SAT finds; see `DeviceMethod`.

        Raises:
            BackendError: OR-tools is not installed.
            UsageError: nothing limits the time.
        """
        if budget.seconds is None and self.deterministic_seconds is None:
            raise UsageError("cp-sat: evaluations do not limit it; give a time limit")
        started = time.perf_counter()
        best = self.start
        if best is None:
            best = RuleMethod()(problem, objective, budget, seed=seed, threads=threads)
        best = replace(best, evaluations=0, note="")
        refusal = _refusal(problem, objective)
        if refusal:
            note = f"cp-sat: {refusal}; heuristic schedule returned"
            return replace(best, seconds=time.perf_counter() - started, note=note)
        try:
            import ortools.sat.python.cp_model  # noqa: F401
        except ImportError as error:
            raise BackendError(
                "cp-sat: ortools is not installed; pip install regal[cp-sat]"
            ) from error
        limits = _Limits(
            started=started,
            seconds=budget.seconds,
            deterministic_seconds=self.deterministic_seconds,
            seed=seed,
            threads=threads,
            cancel=cancel,
        )
        # What does not fit must fit first; only then is anything else worth a look.
        unit_ns = max(1, best.figures.time // TIME_UNITS)
        if best.figures.overflow > 0:
            best, _ = _improved(problem, objective, best, limits, unit_ns, repairs=True)
        is_optimal = best.figures.overflow == 0
        while is_optimal and not limits.is_over:
            best, is_optimal = _improved(problem, objective, best, limits, unit_ns, repairs=False)
            if unit_ns == 1:
                break
            unit_ns = 1
        return replace(
            best,
            seconds=time.perf_counter() - started,
            was_interrupted=cancel is not None and cancel.is_cancelled,
        )


def _refusal(problem: ScheduleProblem, objective: Objective) -> str:
    """Return why the problem gets no model, or nothing."""
    literals = problem.n_ops * problem.n_devices
    if literals > MOST_TIME_LITERALS:
        return f"{problem.n_ops} ops on {problem.n_devices} devices are more than it can take"
    needs_memory = objective.per_byte > 0 or (
        problem.capacity_counts_live and bool((problem.capacity < UNLIMITED).any())
    )
    if needs_memory and len(problem.storage_bytes) * problem.n_devices > MOST_MEMORY_LITERALS:
        return (
            f"{len(problem.storage_bytes)} tensors on {problem.n_devices} devices are more than"
            " its memory model can take"
        )
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    """When to stop, and how to search."""

    started: float
    seconds: float | None
    deterministic_seconds: float | None
    seed: int
    threads: int
    cancel: Cancel | None

    @property
    def left(self) -> float:
        if self.seconds is None:
            return math.inf
        return max(0.0, self.seconds - (time.perf_counter() - self.started))

    @property
    def is_over(self) -> bool:
        return self.left <= 0 or (self.cancel is not None and self.cancel.is_cancelled)


def _improved(
    problem: ScheduleProblem,
    objective: Objective,
    start: DeviceOutcome,
    limits: _Limits,
    unit_ns: int,
    *,
    repairs: bool,
) -> tuple[DeviceOutcome, bool]:
    """Return the better of `start` and what the solver finds, with the bounds that it proves.

    Also returns whether it solved its model.
    """
    known = known_schedule(problem, start.schedule, start.figures)
    sizes = [*problem.storage_bytes.tolist(), *problem.workspace.tolist()]
    built = device_model(
        problem,
        objective,
        known,
        unit_ns=unit_ns,
        unit_bytes=math.gcd(*sizes) or 1,
        repairs=repairs,
    )
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = limits.threads
    solver.parameters.random_seed = limits.seed % 2**31
    if math.isfinite(limits.left):
        solver.parameters.max_time_in_seconds = max(0.01, limits.left)
    if limits.deterministic_seconds is not None:
        solver.parameters.max_deterministic_time = limits.deterministic_seconds
    status = solve(solver, built, limits.cancel)
    best = start
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        best = _best_of(problem, objective, start, extracted(built, solver))
    is_optimal = status == cp_model.OPTIMAL
    bound = solver.best_objective_bound
    if repairs or status == cp_model.INFEASIBLE or not math.isfinite(bound):
        return best, is_optimal
    proven = max(0, math.ceil(bound - 1e-6))
    if objective.per_byte == 0:
        best = replace(best, time_bound_ns=max(best.time_bound_ns, proven * built.unit_ns))
    elif objective.per_ns == 0:
        best = replace(best, peak_bound=max(best.peak_bound, proven * built.unit_bytes))
    return best, is_optimal


def solve(solver: CpSolver, built: DeviceModel, cancel: Cancel | None) -> int:
    """Solve, and stop early when `cancel` is set."""
    if cancel is None:
        return int(solver.solve(built.model))
    is_done = threading.Event()

    def watch() -> None:
        while not is_done.wait(0.02):
            if cancel.is_cancelled:
                solver.stop_search()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        return int(solver.solve(built.model))
    finally:
        is_done.set()
        watcher.join()


def extracted(built: DeviceModel, solver: CpSolver) -> list[DeviceSchedule]:
    """Return schedules with the placement and order that the solver found.

    One has the solver's own transfers and homes, the other those that the kernel chooses.
    """
    problem = built.problem
    placement = np.array(
        [next(d for d, on in row.items() if solver.boolean_value(on)) for row in built.runs_on],
        dtype=np.int64,
    )
    starts = [solver.value(start) for start in built.starts]
    rank = _topological_rank(problem)
    order = np.array(sorted(range(problem.n_ops), key=lambda op: (starts[op], rank[op])), np.int64)
    home = np.where(problem.producers < 0, 0, -1)
    for tensor, row in built.homes.items():
        home[tensor] = next(d for d, there in row.items() if solver.boolean_value(there))
    completed = _native.complete_schedule(problem.native, placement, order)
    needed = set()
    for producer, reader, tensor in problem.data_edges.tolist():
        if placement[producer] != placement[reader]:
            needed.add((tensor, int(placement[producer]), int(placement[reader])))
    for reader, tensor in problem.input_reads.tolist():
        if home[tensor] != placement[reader]:
            needed.add((tensor, int(home[tensor]), int(placement[reader])))
    sends = sorted(
        needed,
        key=lambda s: (
            solver.value(built.sends[s[0], s[2]].start),
            rank_of_maker(problem, rank, s),
        ),
    )
    own = _native.DeviceSchedule(
        placement, order, np.array(sends, dtype=np.int64).reshape(-1, 3), home
    )
    return [own, completed]


def rank_of_maker(problem: ScheduleProblem, rank: list[int], send: tuple[int, int, int]) -> int:
    """Return the topological rank of what makes a tensor; graph inputs come first."""
    producer = int(problem.producers[send[0]])
    return -1 if producer < 0 else rank[producer]


def _topological_rank(problem: ScheduleProblem) -> list[int]:
    """Return op -> its place in a topological order, for ops that start at once."""
    successors: list[list[int]] = [[] for _ in range(problem.n_ops)]
    missing = [0] * problem.n_ops
    edges = [(a, b) for a, b, _ in problem.data_edges.tolist()] + problem.control_edges.tolist()
    for earlier, later in edges:
        successors[earlier].append(later)
        missing[later] += 1
    order = [op for op in range(problem.n_ops) if missing[op] == 0]
    for op in order:
        for later in successors[op]:
            missing[later] -= 1
            if missing[later] == 0:
                order.append(later)
    rank = [0] * problem.n_ops
    for place, op in enumerate(order):
        rank[op] = place
    return rank


def _best_of(
    problem: ScheduleProblem,
    objective: Objective,
    start: DeviceOutcome,
    schedules: list[DeviceSchedule],
) -> DeviceOutcome:
    best = start
    best_score = score_of(start.figures, objective)
    for schedule in schedules:
        figures = _native.simulate_devices(problem.native, schedule)
        if figures is None:
            continue
        score = score_of(figures, objective)
        if score.is_better_than(best_score):
            best = replace(best, schedule=schedule, figures=figures)
            best_score = score
    return best
