"""m-SCT of Baechi: a linear program picks favorite children, list scheduling keeps them close."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal.baselines.devices.means import mean_durations, mean_transfers
from regal.errors import BackendError
from regal.search.devices.outcomes import simulated_outcome

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from ortools.linear_solver.pywraplp import Constraint

    from regal._native import Cancel
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.types import DeviceOutcome, Objective
    from regal.search.types import Budget

    Ints = NDArray[np.int64]

# The simplex method took 0.02 to 0.1 s for 1,000 to 2,000 edges and 0.1 to 2 s for 5,000 to 8,000.
MOST_EDGES = 10_000


def m_sct(
    problem: ScheduleProblem,
    objective: Objective,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    cancel: Cancel | None = None,
) -> DeviceOutcome:
    """Return the better m-SCT schedule, with and without putting ops with their only readers.

    ETF, but a device that has just run an op waits for that op's favorite child, unless another
    op could start now on any device. With more than `MOST_EDGES` edges
    favorites are chosen greedily, and the note says so. The budget limits nothing.

    Where it differs from Baechi: times are means over devices and links; among several tensors
    between two ops the slowest counts; GLOP instead of MOSEK; memory is that of the ledger.

    Raises:
        BackendError: OR-tools is not installed.

    Source: Jeon et al. 2020 (Baechi); Hanen & Munier 1995 (small communication times).
    Cost: one linear program of N + E variables, then O(N log N).
    """
    started = time.perf_counter()
    weights = (objective.per_ns, objective.per_byte)
    n_edges = len(_edges_of(problem).costs)
    if n_edges > MOST_EDGES:
        found, count = _native.heuristic_schedules(
            problem.native, *weights, [_native.DeviceRule.SCT]
        )
        note = f"m-sct: {n_edges} edges are more than {MOST_EDGES}; greedy favorite children"
        return simulated_outcome(problem, found[0].schedule, count, started, note=note)
    favorites = favorite_children(problem)
    plain, together = (
        _native.favorite_schedule(problem.native, favorites, joins, *weights)
        for joins in (False, True)
    )
    best = together if together.score.is_better_than(plain.score) else plain
    return simulated_outcome(problem, best.schedule, 2, started)


def favorite_children(problem: ScheduleProblem) -> Ints:
    """Return per op the reader that should follow it on its device, or -1.

    The program: x = 0 says that the edge's reader is the favorite of its writer, else x = 1 and
    the transfer takes its time. Every op has at most one favorite child, and is the favorite of
    at most one op. The relaxed makespan is minimized; x < 1/2 counts as 0, which the two rules
    allow for one edge of an op only.

    Raises:
        BackendError: OR-tools is not installed.
    """
    favorites = np.full(problem.n_ops, -1, dtype=np.int64)
    edges = _edges_of(problem)
    if len(edges.costs) == 0:
        return favorites
    try:
        from ortools.linear_solver import pywraplp
    except ImportError as error:
        raise BackendError("m-sct: ortools is not installed; pip install regal[cp-sat]") from error
    solver = pywraplp.Solver.CreateSolver("GLOP")
    if solver is None:
        raise BackendError("m-sct: this ortools has no GLOP; install another build of ortools")
    durations = mean_durations(problem)
    unit = float(durations.mean())  # ns would spread the coefficients over nine decades
    infinity = solver.infinity()
    starts = [solver.NumVar(0, infinity, "") for _ in range(problem.n_ops)]
    far = [solver.NumVar(0, 1, "") for _ in edges.costs]
    makespan = solver.NumVar(0, infinity, "")
    children: dict[int, Constraint] = {}
    parents: dict[int, Constraint] = {}
    n_children = np.bincount(edges.writers, minlength=problem.n_ops)
    n_parents = np.bincount(edges.readers, minlength=problem.n_ops)
    for k, (a, b) in enumerate(zip(edges.writers.tolist(), edges.readers.tolist(), strict=True)):
        later = solver.RowConstraint(float(durations[a]) / unit, infinity, "")
        later.SetCoefficient(starts[b], 1)
        later.SetCoefficient(starts[a], -1)
        later.SetCoefficient(far[k], -float(edges.costs[k]) / unit)
        for group, op, count in ((children, a, n_children[a]), (parents, b, n_parents[b])):
            if op not in group:
                group[op] = solver.RowConstraint(float(count - 1), infinity, "")
            group[op].SetCoefficient(far[k], 1)
    for op in range(problem.n_ops):
        last = solver.RowConstraint(float(durations[op]) / unit, infinity, "")
        last.SetCoefficient(makespan, 1)
        last.SetCoefficient(starts[op], -1)
    solver.Minimize(makespan)
    if solver.Solve() != pywraplp.Solver.OPTIMAL:
        return favorites
    is_close = np.array([x.solution_value() for x in far]) < 0.5
    favorites[edges.writers[is_close]] = edges.readers[is_close]
    return favorites


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edges:
    """One row per pair of ops; the cost is the mean time of the slowest transfer between them."""

    writers: Ints
    readers: Ints
    costs: NDArray[np.float64]  # ns


def _edges_of(problem: ScheduleProblem) -> _Edges:
    costs = mean_transfers(problem)
    links = problem.n_devices * (problem.n_devices - 1)
    latency = float(problem.latency.sum()) / max(links, 1)
    cost_of: dict[tuple[int, int], float] = {}
    for a, b, tensor in problem.data_edges.tolist():
        cost_of[a, b] = max(cost_of.get((a, b), 0), float(costs[tensor]))
    for a, b in problem.control_edges.tolist():
        cost_of[a, b] = max(cost_of.get((a, b), 0), latency)
    pairs = np.array(list(cost_of), dtype=np.int64).reshape(-1, 2)
    return _Edges(
        writers=pairs[:, 0],
        readers=pairs[:, 1],
        costs=np.array(list(cost_of.values())),
    )
