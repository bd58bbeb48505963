"""Methods for several devices that need no search: list schedulers, splits, random schedules."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from regal import _native
from regal.search.devices.outcomes import simulated_outcome

if TYPE_CHECKING:
    from regal._native import Cancel, DeviceRule, NamedSchedule
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.types import DeviceOutcome, Objective
    from regal.search.types import Budget

# One batch of random schedules simulates about this many ops: some ten milliseconds.
OPS_PER_BATCH = 20_000


class RuleMethod:
    """A `DeviceMethod` that returns the best schedule of some rules, whatever the budget.

    What each rule does, and how many schedules it makes: native/device_heuristics.h. All of them
    keep colocation groups, allowed devices and control edges, book transfers on links that carry
    one tensor at a time where the system says so, and leave a device that is full while another
    is not. Placements also run in list order (time) or in memory-saving orders (memory).

    Source: HEFT and CPOP: Topcuoglu et al. 2002. PEFT: Arabnejad & Barbosa 2014. ETF: Hwang et
    al. 1989. m-TOPO and m-ETF: Jeon et al. 2020 (Baechi). Where they differ from the papers:
    costs are means over the devices that may run an op; a tensor is sent once per device; links
    and memory limit the choice; graph inputs lie where their first reader runs; the figures are
    those of the simulation, in which everything starts as early as the orders allow.
    Cost: O(n log n) per schedule; all rules take 20 to 55 ms for 1,000 ops on two devices, and
    1 to 3 s for 40,000, where they try fewer variants.
    """

    def __init__(self, *rules: DeviceRule) -> None:
        self._rules = list(rules)

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
        """Return the best schedule of the rules; see `DeviceMethod`."""
        started = time.perf_counter()
        found, evaluations = _native.heuristic_schedules(
            problem.native, objective.per_ns, objective.per_byte, self._rules
        )
        return simulated_outcome(
            problem, found[0].schedule, evaluations, started, note=f"best: {found[0].name}"
        )


def random_schedules(
    problem: ScheduleProblem,
    objective: Objective,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    cancel: Cancel | None = None,
) -> DeviceOutcome:
    """Return the best random schedule: random devices of the groups, random topological order.

    Schedule k depends on the seed and k alone.

    Cost: per evaluation one simulation.
    """
    started = time.perf_counter()
    most = budget.evaluations
    batch = max(threads, OPS_PER_BATCH // max(problem.n_ops, 1))
    best: NamedSchedule | None = None
    done = 0
    was_interrupted = False
    try:
        while best is None or not (was_interrupted or done == most or is_used_up(budget, started)):
            count = batch if most is None else min(batch, most - done)
            found = _native.random_schedule(
                problem.native, objective.per_ns, objective.per_byte, seed, done, count, threads
            )
            if best is None or found.score.is_better_than(best.score):
                best = found
            done += count
            was_interrupted = cancel is not None and cancel.is_cancelled
    except KeyboardInterrupt:
        if best is None:
            raise
        was_interrupted = True
    return simulated_outcome(problem, best.schedule, done, started, was_interrupted=was_interrupted)


def is_used_up(budget: Budget, started: float) -> bool:
    """Return whether the seconds of the budget are over."""
    return budget.seconds is not None and time.perf_counter() - started >= budget.seconds
