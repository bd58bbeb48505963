"""Diverse schedules of one model on several devices: today's, splits, random ones, regal's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from regal.options import Options
from regal.plan.schedule_check import require_valid_model_schedule
from regal.scheduling import schedule_before, search_schedule
from regal.search.devices.outcomes import completed_outcome
from regal.search.devices.planner import DeviceSearch, plan_schedules
from regal.search.meter import Meter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from regal._native import Cancel
    from regal.cost.types import GraphCost
    from regal.devices.types import System
    from regal.graph.types import LoadedModel
    from regal.plan.schedule import ModelSchedule
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.types import DeviceMethod, DeviceOutcome, Objective
    from regal.search.types import Budget

EVALUATIONS = 2_000
# How likely an op stays on the device of what it reads: from hardly any transfer to many.
STAYS = (0.98, 0.9, 0.6)
MOST_DOUBLES = 8  # as in `plans`


def schedule_plans(
    model: LoadedModel, system: System, costs: Sequence[GraphCost], most: int, seed: int
) -> list[tuple[str, ModelSchedule]]:
    """Return up to `most` checked schedules with different placements or orders, each named.

    The first one has everything on the first device.
    """
    plans: list[tuple[str, ModelSchedule]] = []
    seen: set[object] = set()
    doubles = 0
    for name, plan in _all_plans(model, system, costs, seed):
        schedule = plan.plans[0].schedule
        decisions = (schedule.placement, schedule.order, schedule.transfers)
        if decisions in seen:
            doubles += 1
        else:
            seen.add(decisions)
            plans.append((name, plan))
        if len(plans) >= most or doubles >= MOST_DOUBLES:
            break
    return plans


def _all_plans(
    model: LoadedModel, system: System, costs: Sequence[GraphCost], seed: int
) -> Iterator[tuple[str, ModelSchedule]]:
    before = schedule_before(model, system, costs)
    yield "before", before

    def with_method(method: DeviceMethod, number: int) -> ModelSchedule:
        search = DeviceSearch(
            method=method,
            method_name="random",
            objective="time",
            meter=Meter(evaluations=1, seconds=None),
            seed=seed + number,
            keeps_before=False,
        )
        return require_valid_model_schedule(
            model, costs, plan_schedules(model, system, costs, search, before)
        )

    for objective in ("time", "memory"):
        options = Options(objective=objective, evaluations=EVALUATIONS, seed=seed)
        found = search_schedule(model, system, costs, before, options)
        yield f"regal {objective}", require_valid_model_schedule(model, costs, found)
    for number in count():
        yield f"split {number}", with_method(split_schedule, number)
        for stay in STAYS:
            yield f"random {stay:g} {number}", with_method(RandomSchedules(stay), number)


@dataclass(frozen=True, slots=True)
class RandomSchedules:
    """A method that draws one schedule: ops in file order, each likely beside what it reads."""

    stay: float  # probability to stay on the device of one of its inputs

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
        """Return a random schedule; see `DeviceMethod`."""
        random = np.random.default_rng(seed)
        group, may_run = _groups(problem)
        sources: list[list[int]] = [[] for _ in range(problem.n_ops)]
        for writer, reader in problem.data_edges[:, :2].tolist():
            sources[reader].append(writer)
        device_of: dict[int, int] = {}
        placement: list[int] = []
        for op in range(problem.n_ops):
            own = int(group[op])
            if own not in device_of:
                allowed = np.flatnonzero(may_run[own])
                device = int(random.choice(allowed))
                if sources[op] and random.random() < self.stay:
                    near = placement[int(random.choice(sources[op]))]
                    device = near if may_run[own][near] else device
                device_of[own] = device
            placement.append(device_of[own])
        return _drawn(problem, placement)


def split_schedule(
    problem: ScheduleProblem,
    objective: Objective,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    cancel: Cancel | None = None,
) -> DeviceOutcome:
    """Return the ops in file order, cut at random places: each device gets one stretch."""
    random = np.random.default_rng(seed)
    cuts = np.sort(random.integers(0, problem.n_ops + 1, problem.n_devices - 1))
    group, may_run = _groups(problem)
    device_of: dict[int, int] = {}
    placement = []
    for op in range(problem.n_ops):
        wanted = int(np.searchsorted(cuts, op, side="right"))
        own = int(group[op])
        if own not in device_of:
            is_allowed = bool(may_run[own][wanted])
            device_of[own] = wanted if is_allowed else int(may_run[own].argmax())
        placement.append(device_of[own])
    return _drawn(problem, placement)


def _groups(problem: ScheduleProblem) -> tuple[np.ndarray, np.ndarray]:
    """Return the group of each op, and (groups, devices) flags: may it run there?"""
    may_run = np.asarray(problem.native.may_run).reshape(-1, problem.n_devices)
    return np.asarray(problem.native.group), may_run


def _drawn(problem: ScheduleProblem, placement: Sequence[int]) -> DeviceOutcome:
    """Return the schedule of a placement with ops in file order: one evaluation."""
    return replace(completed_outcome(problem, placement, range(problem.n_ops)), evaluations=1)
