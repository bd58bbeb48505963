"""`optimize` for several devices on one screen: cost -> search -> check -> apply -> verify."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from regal.backends import backend_of, files_of, schedule_backend_of
from regal.cost.profile import Profiles, read_profile
from regal.cost.roofline import graph_cost
from regal.devices.presets import device_count, system_named
from regal.devices.types import copies_of, with_memory
from regal.files import write_all
from regal.plan.schedule_check import require_valid_model_schedule
from regal.schedule_result import ScheduleResult
from regal.search.devices.methods import device_method_named, keeps_before
from regal.search.devices.planner import DeviceSearch, before_schedule, plan_schedules
from regal.search.meter import Meter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.backends import ScheduleBackend
    from regal.backends.types import AppliedModel
    from regal.cost.types import GraphCost
    from regal.devices.types import System
    from regal.graph.types import LoadedModel
    from regal.options import Options
    from regal.plan.schedule import ModelSchedule


def optimize_schedule(
    path: Path, model: LoadedModel, system: System, out: Path | None, options: Options
) -> ScheduleResult:
    """Return a checked schedule; with `out`, the applied and verified model too."""
    if options.capacity is not None:
        system = with_memory(system, options.capacity)
    costs = costs_of(model, system, options.profiles)
    before = schedule_before(model, system, costs)
    started = time.perf_counter()
    plan = search_schedule(model, system, costs, before, options)
    require_valid_model_schedule(model, costs, plan)
    result = ScheduleResult(
        path=path,
        model=model,
        costs=costs,
        before=before,
        plan=plan,
        weights={"time": options.weights.time, "memory": options.weights.memory},
        seconds=time.perf_counter() - started,
        verify_skipped="no output was asked for: pass -o OUT",
    )
    result = replace(
        result, notes=(*profile_notes(model, system, options.profiles), *_notes(result))
    )
    return result if out is None else _apply_and_verify(result, out, options)


def system_for(model: LoadedModel, devices: str | None) -> System:
    """Return the devices that are asked for.

    A file that describes devices itself (a task graph) brings its own; a plain number then means
    so many of its first one.

    Raises:
        UsageError: `devices` names nothing.
    """
    if model.system is None:
        return system_named("1" if devices is None else devices)
    if devices is None:
        return model.system
    if devices.isascii() and devices.isdigit():
        return copies_of(model.system, device_count(devices))
    return system_named(devices)


def costs_of(
    model: LoadedModel, system: System, profiles: Sequence[Path] = ()
) -> tuple[GraphCost, ...]:
    """Return the costs of all entries; profile files override the roofline op by op."""
    measured = Profiles(tuple(map(read_profile, profiles))) if profiles else None
    return tuple(graph_cost(graph, system, measured) for graph in model.entries)


def profile_notes(model: LoadedModel, system: System, profiles: Sequence[Path]) -> tuple[str, ...]:
    """Return a line on how many ops of the main graph have measured times, and where they hold."""
    if not profiles:
        return ()
    measured = Profiles(tuple(map(read_profile, profiles)))
    graph, kinds = model.graph, {profile.device_kind for profile in measured.profiles}
    covered = sum(bool(measured.times_of(op, graph)) for op in graph.ops)
    line = f"profile: {covered:,} of {len(graph.ops):,} ops have measured times"
    others = [device.name for device in system.devices if device.kind not in kinds]
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        line += (
            f", which apply to {', '.join(sorted(kinds))}-kind devices only: not to '{others[0]}'"
            f"{more}"
        )
    return (line,)


def schedule_before(
    model: LoadedModel, system: System, costs: Sequence[GraphCost]
) -> ModelSchedule:
    """Return what happens without regal: all on the first device, in the runtime's own order."""
    order = backend_of(model.framework).default_order(model)
    return before_schedule(model, system, costs, order)


def search_schedule(
    model: LoadedModel,
    system: System,
    costs: Sequence[GraphCost],
    before: ModelSchedule,
    options: Options,
) -> ModelSchedule:
    """Return the schedules that the chosen method finds for all entries of the model."""
    search = DeviceSearch(
        method=device_method_named(options.method),
        method_name=options.method,
        objective=options.objective,
        weights=options.weights,
        meter=Meter(evaluations=options.evaluations, seconds=options.seconds),
        seed=options.seed,
        threads=options.threads,
        in_place=options.in_place,
        sub_buffers=options.sub_buffers,
        keeps_before=keeps_before(options.method),
    )
    return plan_schedules(model, system, costs, search, before)


def _apply_and_verify(result: ScheduleResult, out: Path, options: Options) -> ScheduleResult:
    """Write the applied model to `out` once the runtime agrees with it."""
    backend = schedule_backend_of(result.model.framework)
    applied = backend.apply_schedule(result.model, result.plan, name=out.name)
    result = replace(
        result, notes=(*result.notes, *applied.notes), is_order_whole=applied.is_order_whole
    )
    if options.verify:
        result = _verified(backend, applied, result, out.name, options)
        if not result.is_equal:
            return replace(result, notes=(*result.notes, f"'{out.name}' is not written"))
    else:
        result = replace(result, verify_skipped="--no-verify")
    write_all(files_of(backend, applied, out), out, inputs=[result.path], force=options.force)
    return replace(result, out=out)


def _verified(
    backend: ScheduleBackend,
    applied: AppliedModel,
    result: ScheduleResult,
    name: str,
    options: Options,
) -> ScheduleResult:
    """Return the result with the runtime's verdict on a model that lies in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="regal-") as folder:
        out = Path(folder, name)
        write_all(files_of(backend, applied, out), out, inputs=[], force=False)
        verification = backend.verify_schedule(
            result.path,
            out,
            result.plan,
            seed=options.seed,
            shapes=options.shapes,
            dims=options.dims,
        )
    return replace(result, verification=verification, verify_skipped=verification.skipped)


def _notes(result: ScheduleResult) -> tuple[str, ...]:
    notes = []
    guessed = result.costs[0].coverage.get("bytes", 0)
    if guessed:
        notes.append(f"{guessed} ops of {len(result.model.graph.ops)} are priced by bytes alone")
    if any(device.pools for device in result.plan.system.devices):
        notes.append("pools: on several devices a buffer gets an offset per device, not per pool")
    before, plan = result.before, result.plan
    is_as_good = before.overflow_bytes <= plan.overflow_bytes
    is_as_fast = before.time_ns <= plan.time_ns
    if is_as_good and is_as_fast and before.peak_bytes <= plan.peak_bytes:
        notes.append("nothing is gained: everything on the first device is as good")
    return tuple(notes)
