"""Methods that know the optimum, lie, overspend, break, hang or die: the harness must see it."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from regal import _native
from regal.evaluation.methods import MethodEntry
from regal.evaluation.planted import Planted, planted_graph
from regal.plan.schedule_rows import native_of
from regal.search.devices.methods import device_method_named
from regal.search.devices.types import CurvePoint, DeviceMethod, DeviceOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal._native import Cancel
    from regal.plan.schedule import Schedule
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.types import Objective
    from regal.search.types import Budget

# Graphs that all tests here use: small, and with a known optimum on two devices.
OPS, DEVICES, SEED = 20, 2, 0


def planted_of(objective: Objective) -> Planted:
    return planted_graph("time" if objective.per_ns else "memory", OPS, DEVICES, SEED)


def outcome_of(problem: ScheduleProblem, planted: Planted, schedule: Schedule) -> DeviceOutcome:
    native = native_of(planted.graph, problem, schedule)
    figures = _native.simulate_devices(problem.native, native)
    assert figures is not None
    return DeviceOutcome(schedule=native, figures=figures, evaluations=1, seconds=0.0)


def single(problem: ScheduleProblem, objective: Objective, budget: Budget) -> DeviceOutcome:
    method = device_method_named("single-device")
    return replace(method(problem, objective, budget, seed=0, threads=1), evaluations=1)


def optimum(
    problem: ScheduleProblem,
    objective: Objective,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    cancel: Cancel | None = None,
) -> DeviceOutcome:
    """Return the planted schedule."""
    planted = planted_of(objective)
    return outcome_of(problem, planted, planted.schedule)


def liar(
    problem: ScheduleProblem,
    objective: Objective,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    cancel: Cancel | None = None,
) -> DeviceOutcome:
    """Return everything on one device, with the figures of the optimum."""
    best = optimum(problem, objective, budget, seed=seed, threads=threads)
    return replace(single(problem, objective, budget), figures=best.figures)


def outlaw(
    problem: ScheduleProblem,
    objective: Objective,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    cancel: Cancel | None = None,
) -> DeviceOutcome:
    """Return the planted schedule with its order turned around."""
    planted = planted_of(objective)
    good = outcome_of(problem, planted, planted.schedule)
    wrong = replace(planted.schedule, order=planted.schedule.order[::-1])
    return replace(good, schedule=native_of(planted.graph, problem, wrong))


def spender(
    problem: ScheduleProblem,
    objective: Objective,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    cancel: Cancel | None = None,
) -> DeviceOutcome:
    """Take one evaluation more than there was."""
    found = single(problem, objective, budget)
    return replace(found, evaluations=(budget.evaluations or 0) + 1)


def idler(
    problem: ScheduleProblem,
    objective: Objective,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    cancel: Cancel | None = None,
) -> DeviceOutcome:
    """Say that no evaluation was needed."""
    return replace(single(problem, objective, budget), evaluations=0)


def prophet(
    problem: ScheduleProblem,
    objective: Objective,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    cancel: Cancel | None = None,
) -> DeviceOutcome:
    """Claim a bound above its own schedule."""
    found = single(problem, objective, budget)
    return replace(found, time_bound_ns=found.figures.time + 1)


def boaster(
    problem: ScheduleProblem,
    objective: Objective,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    cancel: Cancel | None = None,
) -> DeviceOutcome:
    """Tell of a better schedule on the way than the one returned."""
    return replace(
        single(problem, objective, budget),
        curve=(CurvePoint(evaluations=1, seconds=0.0, value=1.0),),
    )


def raiser(
    problem: ScheduleProblem,
    objective: Objective,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    cancel: Cancel | None = None,
) -> DeviceOutcome:
    """Have a defect."""
    raise ZeroDivisionError("no luck today")


def sleeper(
    problem: ScheduleProblem,
    objective: Objective,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    cancel: Cancel | None = None,
) -> DeviceOutcome:
    """Take for ever on seed 0."""
    if seed == 0:
        time.sleep(600)
    return single(problem, objective, budget)


def dier(
    problem: ScheduleProblem,
    objective: Objective,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    cancel: Cancel | None = None,
) -> DeviceOutcome:
    """Take the process along on seed 0."""
    if seed == 0:
        os._exit(3)
    return single(problem, objective, budget)


FAKES: Final[Mapping[str, DeviceMethod]] = {
    "optimum": optimum,
    "liar": liar,
    "outlaw": outlaw,
    "spender": spender,
    "idler": idler,
    "prophet": prophet,
    "boaster": boaster,
    "raiser": raiser,
    "sleeper": sleeper,
    "dier": dier,
}


def entry(name: str) -> MethodEntry:
    return MethodEntry(name=name, label=name)
