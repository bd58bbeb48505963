"""The product on one screen: load -> search -> check -> apply -> verify."""

from __future__ import annotations

import math
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from regal.backends import backend_of, files_of
from regal.cost.types import FORBIDDEN
from regal.devices.presets import system_file
from regal.errors import UsageError
from regal.files import require_writable, write_all
from regal.frontends import load, output_file
from regal.graph.file import model_hash
from regal.graph.restrict import restricted
from regal.onnxruntime import optimized_bytes
from regal.options import Options
from regal.plan.check import require_valid_model_plan
from regal.plan.types import ModelPlan
from regal.result import Result
from regal.schedule_result import ScheduleResult
from regal.scheduling import costs_of, optimize_schedule, profile_notes, system_for
from regal.search.devices.objectives import require_objective
from regal.search.meter import Meter
from regal.search.methods import DEFAULT_METHOD, DEFAULT_SECONDS, method_named
from regal.search.packing import before_plan
from regal.search.planner import Search, plan_model
from regal.search.pool_plan import with_pools
from regal.units import require_seed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.backends import Backend
    from regal.backends.types import AppliedModel, Verification
    from regal.cost.types import GraphCost
    from regal.devices.types import System
    from regal.graph.types import LoadedModel


ONE_DEVICE_TIME = (
    "on one device no decision of this version changes the running time: memory is what is lowered"
)
POOLS = "pools: the plan (--plan) says where each buffer lies; a written model has one arena"


def optimize(path: Path, out: Path | None = None, options: Options | None = None) -> Result:
    """Return a plan that needs less memory on one device; with `out`, apply and verify it too.

    Raises:
        UsageError: the options, or the file, name several devices.
    """
    result = run(path, out, options or Options())
    if isinstance(result, ScheduleResult):
        raise UsageError(f"'{path}' is planned for several devices: use regal.schedule")
    return result


def _require_limits(options: Options) -> None:
    """Raise if a number is not one that the command line would take."""
    if options.threads < 1:
        raise UsageError(f"threads is {options.threads}; give 1 or more")
    if options.seconds is not None and not 0 <= options.seconds < math.inf:
        raise UsageError(f"seconds is {options.seconds}; give 0 or more")
    if options.capacity is not None and options.capacity < 0:
        raise UsageError(f"capacity is {options.capacity}; give 0 or more bytes")


def run(path: Path, out: Path | None, options: Options) -> Result | ScheduleResult:
    """Return the result of `regal optimize`: of one device, or of several."""
    require_seed(options.seed)
    _require_limits(options)
    require_objective(options.objective)
    if out is not None:
        file = output_file(out, like=path)
        inputs = input_files(path, options)
        require_writable(file, inputs=inputs, force=options.force, makes_folder=file != out)
        out = file
    if options.ort_level != "none":
        return _run_after_runtime(path, out, options)
    model = load(path, options.shapes, options.dims)
    system = system_for(model, options.devices)
    if len(system.devices) > 1:
        return optimize_schedule(path, model, system, out, options)
    return _optimize_memory(path, model, system, out, options)


def input_files(path: Path, options: Options) -> list[Path]:
    """Return the files that are read and must not be written: model, devices, profiles."""
    devices = system_file(options.devices or "")
    return [path, *options.profiles, *([] if devices is None else [devices])]


def _optimize_memory(
    path: Path, model: LoadedModel, system: System, out: Path | None, options: Options
) -> Result:
    """Return the result on one device, where no decision of a plan changes the running time."""
    costs = costs_of(model, system, options.profiles)
    before = plan_before(model)
    started = time.perf_counter()
    plan = require_valid_model_plan(model, search(model, options))
    pools = system.devices[0].pools
    if pools:
        before = with_pools(model.entries, before, pools, in_one=True)
        plan = with_pools(model.entries, plan, pools, in_one=True)
    result = Result(
        path=path,
        model=model,
        system=system,
        costs=costs,
        objective=options.objective,
        notes=_notes(model, system, costs, options),
        before=before,
        plan=plan,
        seconds=time.perf_counter() - started,
        capacity=options.capacity,
        verify_skipped="no output was asked for: pass -o OUT",
    )
    if pools:
        result = _faster_in_pools(result, with_pools(model.entries, plan, pools))
    return result if out is None else apply_and_verify(result, out, options)


def _faster_in_pools(result: Result, plan: ModelPlan) -> Result:
    """Return the result with its plan, or with `plan`, whose buffers lie in other pools.

    One arena leaves the fast pool to weights where it does not fit there; spread over the pools,
    activations come first. Which is faster depends on what the ops read.
    """
    kept, other = (
        (result.overflow_of(each), result.time_of(each) or 0) for each in (result.plan, plan)
    )
    return result if kept < other else replace(result, plan=plan)


def _notes(
    model: LoadedModel, system: System, costs: Sequence[GraphCost], options: Options
) -> tuple[str, ...]:
    has_pools = bool(system.devices[0].pools)
    notes = [*profile_notes(model, system, options.profiles)]
    if options.objective != "memory" and not has_pools:
        notes.append(ONE_DEVICE_TIME)
    if has_pools:
        notes.append(POOLS)
    unable = [
        op
        for graph, cost in zip(model.entries, costs, strict=True)
        for op, row in zip(graph.ops, cost.op_ns, strict=True)
        if row[0] == FORBIDDEN
    ]
    if unable:
        more = f" and {len(unable) - 1} more ops" if len(unable) > 1 else ""
        notes.append(
            f"'{system.devices[0].name}' cannot run op '{unable[0].name}' ({unable[0].kind}){more}:"
            " no running time is predicted"
        )
    return tuple(notes)


def _run_after_runtime(path: Path, out: Path | None, options: Options) -> Result | ScheduleResult:
    """Return the result for the model as ONNX Runtime optimizes it; that one is the "before"."""
    if path.suffix == ".tflite":
        raise UsageError(f"--ort-level is for ONNX models; '{path}' is none")
    with tempfile.TemporaryDirectory(prefix="regal-") as folder:
        base = Path(folder, "optimized.onnx")
        base.write_bytes(optimized_bytes(path, options.ort_level, options.shapes, options.dims))
        result = run(base, out, replace(options, ort_level="none", shapes={}, dims={}))
    note = f"optimized by ONNX Runtime first, level {options.ort_level}: that is the before"
    return replace(result, path=path, notes=(note, *result.notes))


def plan_before(model: LoadedModel) -> ModelPlan:
    """Return what the runtime does with the model as it is: its own order and packing."""
    default = backend_of(model.framework).default_order(model)
    plans = tuple(
        before_plan(graph, default if i == 0 else None) for i, graph in enumerate(model.entries)
    )
    return ModelPlan(
        graph_hash=model_hash(model), method="before", seed=0, evaluations=0, plans=plans
    )


def search(model: LoadedModel, options: Options) -> ModelPlan:
    """Return the plans that the chosen method finds for all entries of the model."""
    seconds = options.seconds or DEFAULT_SECONDS.get(options.method)
    meter = Meter(evaluations=options.evaluations, seconds=seconds)
    runtime_order = backend_of(model.framework).default_order(model)
    plans = plan_model(
        [
            restricted(graph, in_place=options.in_place, sub_buffers=options.sub_buffers)
            for graph in model.entries
        ],
        Search(
            method=method_named(options.method),
            meter=meter,
            seed=options.seed,
            threads=options.threads,
            decides_all=options.method == DEFAULT_METHOD,
        ),
        runtime_order,
    )
    return ModelPlan(
        graph_hash=model_hash(model),
        method=options.method,
        seed=options.seed,
        evaluations=meter.spent,
        plans=plans,
    )


def apply_and_verify(result: Result, out: Path, options: Options) -> Result:
    """Write the applied model to `out` once the runtimes agree with it.

    A model whose outputs differ is not written. Where the runtime measures more memory than
    for the original, what it likes better is written instead: dimensions left free as they
    were, or its own order.
    """
    backend = backend_of(result.model.framework)
    if not options.verify:
        applied = backend.apply(result.model, result.plan)
        files = files_of(backend, applied, out)
        write_all(files, out, inputs=[result.path], force=options.force)
        result = replace(result, out=out, notes=(*result.notes, *applied.notes))
        return replace(result, verify_skipped="--no-verify")
    applied = backend.refine(result.model, result.plan)
    verification = _verified(backend, applied, result, out.name, options)
    if verification.grows:
        best = _Written(result, applied, verification)
        result, applied, verification = _without_growth(backend, best, out.name, options)
    gain: tuple[str, ...] = ()
    if (
        result.peak_bytes >= result.before.peak_bytes
        and result.arena_bytes >= result.before.arena_bytes
    ):
        gain = ("nothing is gained: the runtime's own order and packing are as good",)
    result = replace(
        result,
        notes=(*result.notes, *applied.notes, *gain),
        verification=verification,
        verify_skipped=verification.skipped,
    )
    if not result.is_equal:
        return replace(result, notes=(*result.notes, f"'{out.name}' is not written"))
    files = files_of(backend, applied, out)
    write_all(files, out, inputs=[result.path], force=options.force)
    return replace(result, out=out)


class _Written(NamedTuple):
    """What would be written, and what the runtimes say about it."""

    result: Result
    applied: AppliedModel
    verification: Verification


def _without_growth(backend: Backend, best: _Written, name: str, options: Options) -> _Written:
    """Return `best`, or the first way of writing the model that the runtime likes better."""
    result, grows = best.result, best.verification.grows
    free = backend.with_free_dimensions(result.model)
    own = replace(result, plan=_kept(result))
    own_order = f"{grows} with the plan: the runtime's own order is kept"
    choices = [
        (free, result, f"{grows} with fixed dimensions: those of the inputs stay free"),
        (result.model, own, own_order),
        (free, own, f"{own_order}, and dimensions stay free"),
    ]
    for model, choice, note in choices:
        if model is None:
            continue
        plan = result.plan if choice is result else result.before
        applied = replace(backend.refine(model, plan), notes=(note,))
        verification = _verified(backend, applied, result, name, options)
        if verification.outputs_equal and not verification.takes_more_than(best.verification):
            best = _Written(choice, applied, verification)
            if not verification.grows:
                return best
    return best


def _verified(
    backend: Backend, applied: AppliedModel, result: Result, name: str, options: Options
) -> Verification:
    """Return the runtimes' verdict on a model that lies in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="regal-") as folder:
        out = Path(folder, name)
        write_all(files_of(backend, applied, out), out, inputs=[], force=False)
        return backend.verify(
            result.path, out, seed=options.seed, shapes=options.shapes, dims=options.dims
        )


def _kept(result: Result) -> ModelPlan:
    """Return the plan of the runtime's own order, with the bounds that the search has proven."""
    plans = tuple(
        replace(before, peak_bound=min(plan.peak_bound, before.peak_bytes))
        for before, plan in zip(result.before.plans, result.plan.plans, strict=True)
    )
    return replace(result.plan, plans=plans)
