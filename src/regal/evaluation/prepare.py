"""One graph on one system, ready for any number of runs: numbers, bounds, and the "before"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from regal._native import device_time_bound
from regal.data.entries import SHIPPED
from regal.data.structure import structure_hash
from regal.data.systems import ROOMY, random_system
from regal.errors import ModelError, UsageError
from regal.evaluation.graphs import FILE, held_out_structures, loaded
from regal.evaluation.suite import DRAWN_SYSTEM, OWN_SYSTEM
from regal.graph.types import LoadedModel
from regal.plan.problem import least_workspace, planned_workspace
from regal.plan.schedule_problem import schedule_problem
from regal.scheduling import costs_of, schedule_before, system_for
from regal.search.devices.outcomes import completed_outcome
from regal.search.devices.planner import before_schedule, peak_floor, planned_bodies

if TYPE_CHECKING:
    from pathlib import Path

    from regal.devices.types import System
    from regal.evaluation.cells import Problem
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.types import DeviceOutcome

SEED_DIGITS = 12  # of a graph's hash, that decide the system drawn for it


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What all runs on one problem share. Of a file with several entries, the main one."""

    numbers: ScheduleProblem
    framework: str
    ops: int
    n_devices: int
    today: DeviceOutcome  # everything on the first device, in the runtime's order
    before_time_ns: int
    before_peak_bytes: int
    time_bound_ns: int  # proven
    peak_bound: int  # proven
    least_time_ns: int | None  # planted
    least_peak_bytes: int | None  # planted


def prepared(problem: Problem, *, is_tuning: bool, data: Path = SHIPPED) -> Prepared:
    """Return a problem as numbers.

    Args:
        problem: the graph and the system.
        is_tuning: whether a graph with the structure of one that is held out is refused.
        data: folder of the data set.

    Raises:
        RegalError: the graph cannot be read, is held out, or cannot run on the system.

    Cost: loading, the bodies' plans, and about 50 us per op.
    """
    source = problem.source
    found = loaded(source, data)
    model = LoadedModel(
        framework=found.model.framework,
        entries=found.model.entries[:1],
        source=found.model.source,
        system=found.model.system,
    )
    graph = model.graph
    if is_tuning and source.split == FILE:
        _require_not_held_out(structure_hash(graph), source.key, data)
    if problem.system == OWN_SYSTEM and model.system is None:
        raise UsageError(f"graph '{source.key}' describes no devices; name a system")
    system = _system(problem, model)
    costs = costs_of(model, system)
    bodies = planned_bodies(graph)
    workspace = planned_workspace(graph, bodies)
    numbers = schedule_problem(graph, system, costs[0], workspace)
    before = (
        schedule_before(found.model, system, costs_of(found.model, system))
        if found.is_file
        else before_schedule(model, system, costs)
    ).plans[0]
    least = least_workspace(graph, bodies)
    loosest = numbers if least == workspace else schedule_problem(graph, system, costs[0], least)
    return Prepared(
        numbers=numbers,
        framework=model.framework,
        ops=len(graph.ops),
        n_devices=len(system.devices),
        today=completed_outcome(numbers, before.schedule.placement, before.schedule.order),
        before_time_ns=before.figures.time_ns,
        before_peak_bytes=before.figures.peak,
        time_bound_ns=device_time_bound(numbers.native),
        peak_bound=peak_floor(loosest),
        least_time_ns=found.time_ns,
        least_peak_bytes=found.peak_bytes,
    )


def _system(problem: Problem, model: LoadedModel) -> System:
    if problem.system == DRAWN_SYSTEM:
        seed = int(problem.source.hash[:SEED_DIGITS], 16)
        return random_system(seed, model.graph, ROOMY)
    return system_for(model, None if problem.system == OWN_SYSTEM else problem.system)


def _require_not_held_out(structure: str, key: str, data: Path) -> None:
    twin = held_out_structures(data).get(structure)
    if twin is not None:
        raise ModelError(
            f"graph '{key}' has the structure of '{twin}', which is held out; tuning must not"
            " look at it"
        )
