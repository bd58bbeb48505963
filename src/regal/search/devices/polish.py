"""Polish a schedule: CP-SAT places and orders anew what runs in a stretch of time."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal.errors import BackendError
from regal.search.devices.outcomes import score_of, simulated_outcome
from regal.search.devices.window_model import Window, WindowModel, window_around
from regal.search.types import Budget

if TYPE_CHECKING:
    from regal._native import Cancel, DeviceScore
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.types import DeviceOutcome, Objective

LEAST_OPS, MOST_OPS = 20, 120  # of a window
# CP-SAT's own measure of work, about seconds: equal on every machine, so that windows are too.
DETERMINISTIC_SECONDS = 0.5
# So many windows in a row that cannot be improved end the polish.
MOST_FAILURES = 40


def window_polish(
    problem: ScheduleProblem,
    objective: Objective,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    cancel: Cancel | None = None,
) -> DeviceOutcome:
    """Return the best heuristic schedule, polished; see `polish` and `DeviceMethod`.

    Where the objective weighs memory alone the heuristic schedule comes back, and the note says so.

    Raises:
        BackendError: OR-tools is not installed.
    """
    started = time.perf_counter()
    found, evaluations = _native.heuristic_schedules(
        problem.native, objective.per_ns, objective.per_byte
    )
    note = "" if objective.per_ns > 0 else "only running time is polished; heuristic schedule"
    start = simulated_outcome(problem, found[0].schedule, evaluations, started, note=note)
    if budget.evaluations is not None and budget.evaluations <= evaluations:
        return start
    left = Budget(
        evaluations=None if budget.evaluations is None else budget.evaluations - evaluations,
        seconds=None if budget.seconds is None else max(0.0, budget.seconds - start.seconds),
    )
    return polish(problem, objective, start, left, seed=seed, threads=threads, cancel=cancel)


def polish(
    problem: ScheduleProblem,
    objective: Objective,
    outcome: DeviceOutcome,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    cancel: Cancel | None = None,
) -> DeviceOutcome:
    """Return `outcome`, its schedule improved window by window until the budget ends.

    A window is a run of ops in the order of their starts. All others keep their devices and
    order: those before are where the window begins, those after count with their way to the end.
    CP-SAT searches for a placement and an order that end earlier; what it finds is simulated,
    which is one evaluation, and kept if it is better. Equal seeds and evaluations give equal
    schedules: each window gets the same work, on one worker.

    Only running time is polished: for an objective without it, `outcome` comes back as it is.

    Args:
        problem: N ops on D devices.
        objective: what is minimized.
        outcome: the schedule to start from.
        budget: of the polish alone; `seconds` may be exceeded by part of a window.
        seed: the only source of randomness.
        threads: not used; windows depend on each other.
        cancel: ends the search from another thread.

    Raises:
        BackendError: OR-tools is not installed.

    Source: large neighborhood search (Shaw 1998) with time windows.
    Cost: up to half a second per window; windows that are not improved count no evaluation, and
        MOST_FAILURES of them in a row end it.
    """
    if objective.per_ns == 0 or problem.n_ops == 0:
        return outcome
    try:
        import ortools.sat.python.cp_model  # noqa: F401
    except ImportError as error:
        raise BackendError("polish: ortools is not installed; pip install regal[cp-sat]") from error
    started = time.perf_counter()
    state = _State(problem=problem, objective=objective, outcome=outcome, simulated=0)
    rng = np.random.default_rng(seed)
    failures = 0
    while failures < MOST_FAILURES:
        left = None
        if budget.seconds is not None:
            left = budget.seconds - (time.perf_counter() - started)
        is_used_up = left is not None and left <= 0
        is_cancelled = cancel is not None and cancel.is_cancelled
        if is_used_up or is_cancelled or state.simulated == budget.evaluations:
            break
        window = _next_window(state, rng)
        if window is None:
            break
        if state.improve(window, int(rng.integers(2**31)), left):
            failures = 0
        elif len(window.ops) == problem.n_ops:  # another window is the same one
            break
        else:
            failures += 1
    return replace(
        state.outcome,
        evaluations=outcome.evaluations + state.simulated,
        seconds=outcome.seconds + time.perf_counter() - started,
        was_interrupted=outcome.was_interrupted or (cancel is not None and cancel.is_cancelled),
    )


@dataclass(slots=True, kw_only=True)
class _State:
    """The best schedule so far."""

    problem: ScheduleProblem
    objective: Objective
    outcome: DeviceOutcome
    simulated: int

    @property
    def score(self) -> DeviceScore:
        return score_of(self.outcome.figures, self.objective)

    def improve(self, window: Window, seed: int, seconds: float | None) -> bool:
        """Return whether a better schedule was found in a window."""
        found = WindowModel(self.problem, window).solve(
            seed=seed, deterministic_seconds=DETERMINISTIC_SECONDS, seconds=seconds
        )
        if found is None:
            return False
        schedule = _native.complete_schedule(self.problem.native, *found)
        figures = _native.simulate_devices(self.problem.native, schedule)
        self.simulated += 1
        if figures is None:
            return False
        if not score_of(figures, self.objective).is_better_than(self.score):
            return False
        self.outcome = replace(self.outcome, schedule=schedule, figures=figures)
        return True


def _next_window(state: _State, rng: np.random.Generator) -> Window | None:
    """Return a window around an op that the running time depends on, if any can be moved."""
    figures, placement = state.outcome.figures, state.outcome.schedule.placement
    critical = critical_ops(state.problem, placement, figures.op_start, figures.op_end)
    size = int(rng.integers(LEAST_OPS, MOST_OPS + 1))
    center = int(critical[rng.integers(len(critical))])
    return window_around(state.problem, state.outcome, center, min(size, state.problem.n_ops))


def critical_ops(
    problem: ScheduleProblem,
    placement: np.typing.NDArray[np.int64],
    starts: np.typing.NDArray[np.int64],
    ends: np.typing.NDArray[np.int64],
) -> list[int]:
    """Return a chain of ops, last first, each of which the next one waits for.

    Where a link is busy the chain may end early.
    """
    at_end: dict[int, list[int]] = {}
    for op, end in enumerate(ends.tolist()):
        at_end.setdefault(end, []).append(op)
    sources: dict[int, list[int]] = {}
    for producer, reader, _ in problem.data_edges.tolist():
        sources.setdefault(reader, []).append(producer)
    for earlier, later in problem.control_edges.tolist():
        sources.setdefault(later, []).append(earlier)
    op = int(np.argmax(ends))
    chain = [op]
    while True:
        start = int(starts[op])
        here = [u for u in at_end.get(start, []) if placement[u] == placement[op] and u != op]
        if here:
            op = here[0]
        elif sources.get(op):
            op = max(sources[op], key=lambda u: (int(ends[u]), -u))
        else:
            return chain
        chain.append(op)
