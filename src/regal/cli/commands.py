"""One function per command: call the library, print, return the exit code."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regal import comparison, pipeline, schedule_comparison
from regal.backends import backend_of, files_of, schedule_backend_of
from regal.cli import output
from regal.cli.schedule_output import schedule_comparison_text, schedule_result_text
from regal.devices.presets import system_named
from regal.errors import UsageError
from regal.files import read_file, require_file, require_writable, write_all, write_atomically
from regal.frontends import files_beside, holds_saved_model, load, output_file, require_ending
from regal.graph.file import model_to_json
from regal.graph.text import graph_text
from regal.inspection import inspect_graph, inspection_to_dict
from regal.options import Options
from regal.plan.check import require_valid_model_plan
from regal.plan.file import plan_from_json, plan_to_json
from regal.plan.schedule import ModelSchedule
from regal.plan.schedule_check import require_valid_model_schedule
from regal.plan.schedule_costs import require_possible_costs
from regal.plan.schedule_file import is_schedule_file, schedule_from_json, schedule_to_json
from regal.plan.types import ModelPlan
from regal.report.of_result import stories_of
from regal.report.page import report_html
from regal.report.trace import trace_json
from regal.result import result_to_dict, verification_to_dict
from regal.schedule_result import ScheduleResult, figures_to_dict, schedule_result_to_dict
from regal.scheduling import system_for
from regal.search.allocation_csv import run_allocate

if TYPE_CHECKING:
    import argparse

    from regal.graph.types import LoadedModel
    from regal.result import Result


def optimize(arguments: argparse.Namespace) -> int:
    """Run `regal optimize`."""
    if arguments.header and len(system_named(arguments.devices or "1").devices) > 1:
        raise UsageError("--header: a C header describes one device; drop --devices")
    options = replace(
        _options(arguments),
        verify=arguments.verify,
        force=arguments.force,
        method=arguments.method,
        capacity=arguments.capacity,
        ort_level=arguments.ort_level,
        in_place=arguments.in_place,
        sub_buffers=arguments.sub_buffers,
    )
    also = (arguments.plan, arguments.header, arguments.report, arguments.trace)
    extra = [path for path in also if path is not None]
    targets = [*extra, *([arguments.out] if arguments.out else [])]
    if len({path.parent.resolve() / path.name for path in targets}) < len(targets):
        raise UsageError("--out, --plan, --header, --report and --trace must name different files")
    beside = next((path for path in extra if _lies_beside(path, arguments.out)), None)
    if beside is not None:
        raise UsageError(
            f"'{beside}' is a name that -o gives to what it writes beside '{arguments.out.name}';"
            " choose another one"
        )
    if arguments.header and arguments.model.suffix.lower() not in (".tflite", ".lite"):
        raise UsageError(
            f"--header: a C header is for TFLite models; '{arguments.model.name}' is none"
        )
    inputs = pipeline.input_files(arguments.model, options)
    if any(path.exists() for path in extra):
        inputs += files_beside(arguments.model)
    for path in extra:
        require_writable(path, inputs=inputs, force=arguments.force)
    with output.progress("optimizing"):
        result = pipeline.run(arguments.model, arguments.out, options)
    document = document_of(result)
    if arguments.plan:
        write_atomically(arguments.plan, _plan_text(result).encode())
    if arguments.header:
        write_atomically(arguments.header, _c_header(result).encode())
    if arguments.report:
        page = report_html(document, stories_of(result), _comparison_of(result, options))
        write_atomically(arguments.report, page.encode(errors="backslashreplace"))
    if arguments.trace:
        write_atomically(arguments.trace, trace_json(stories_of(result), document).encode())
    if isinstance(result, ScheduleResult):
        text = schedule_result_text(result, extra)
    else:
        text = output.result_text(result, extra)
    _print(arguments, document, text)
    return 0 if result.is_good else 1


def _lies_beside(path: Path, out: Path | None) -> bool:
    """Return whether `path` may be a part of an ONNX model for several devices, or their index."""
    if (
        out is None
        or out.suffix.lower() != ".onnx"
        or path.parent.resolve() != out.parent.resolve()
    ):
        return False
    is_part = path.name.startswith(f"{out.stem}.") and path.suffix.lower() == ".onnx"
    return is_part or path.name == f"{out.stem}.parts.json"


def _comparison_of(result: Result | ScheduleResult, options: Options) -> dict[str, Any] | None:
    """Return the table of methods of a page: the result beside rules that need no search."""
    started = time.perf_counter()
    document = (
        schedule_comparison.compare_with_rules(result, options)
        if isinstance(result, ScheduleResult)
        else comparison.compare_with_rules(result, options)
    )
    if document is not None:
        document["seconds"] = round(time.perf_counter() - started, 3)
    return document


def document_of(result: Result | ScheduleResult) -> dict[str, Any]:
    """Return the JSON object of a result."""
    if isinstance(result, ScheduleResult):
        return schedule_result_to_dict(result)
    return result_to_dict(result)


def inspect(arguments: argparse.Namespace) -> int:
    """Run `regal inspect`."""
    model = _load(arguments)
    before = pipeline.plan_before(model)
    parts = [
        inspect_graph(graph, plan) for graph, plan in zip(model.entries, before.plans, strict=True)
    ]
    document = inspection_to_dict(str(arguments.model), model, before, parts)
    _print(arguments, document, output.inspection_text(str(arguments.model), model, parts))
    return 0


def convert(arguments: argparse.Namespace) -> int:
    """Run `regal convert`."""
    require_ending(arguments.out, like=Path("graph.json"))
    require_writable(arguments.out, inputs=[arguments.model], force=arguments.force)
    model = _load(arguments)
    text = (
        "".join(graph_text(graph) for graph in model.entries)
        if arguments.text
        else model_to_json(model)
    )
    write_atomically(arguments.out, text.encode(errors="backslashreplace"))
    facts = {
        "model": str(arguments.model),
        "output": str(arguments.out),
        "ops": len(model.graph.ops),
        "tensors": len(model.graph.tensors),
        "entries": len(model.entries),
    }
    _print(arguments, facts, output.facts_text(facts))
    return 0


def apply(arguments: argparse.Namespace) -> int:
    """Run `regal apply`."""
    inputs = [arguments.model, arguments.plan]
    out = output_file(arguments.out, like=arguments.model)
    require_writable(out, inputs=inputs, force=arguments.force, makes_folder=out != arguments.out)
    model = _load(arguments)
    plan = _load_plan(arguments.plan, model)
    backend = backend_of(model.framework)
    if isinstance(plan, ModelSchedule):
        scheduler = schedule_backend_of(model.framework)
        applied = scheduler.apply_schedule(model, plan, name=out.name)
    else:
        applied = backend.apply(model, plan)
    files = files_of(backend, applied, out)
    write_all(files, out, inputs=inputs, force=arguments.force)
    facts = {
        "model": str(arguments.model),
        "plan": str(arguments.plan),
        "output": str(out),
        "checked": True,
        "notes": list(applied.notes),
    }
    _print(arguments, facts, output.facts_text(facts))
    return 0


def verify(arguments: argparse.Namespace) -> int:
    """Run `regal verify`."""
    require_ending(arguments.optimized, like=arguments.model)
    model = _load(arguments)
    if not holds_saved_model(arguments.optimized):
        require_file(arguments.optimized, "model file")
    with output.progress("verifying"):
        verification = backend_of(model.framework).verify(
            arguments.model,
            arguments.optimized,
            seed=arguments.seed,
            invocations=arguments.invocations,
            shapes=dict(arguments.shape),
            dims=dict(arguments.dim),
        )
    document: dict[str, Any] = {"verified": verification_to_dict(verification)}
    if document["verified"] is None:
        document["verify_skipped"] = verification.skipped
    _print(arguments, document, output.verification_text(verification))
    return 0 if verification.outputs_equal or not verification.checks else 1


def check(arguments: argparse.Namespace) -> int:
    """Run `regal check`."""
    model = _load(arguments)
    plan = _load_plan(arguments.plan, model)
    facts = {
        "model": str(arguments.model),
        "plan": str(arguments.plan),
        "checked": True,
        **(
            {
                "peak_bytes": plan.peak_bytes,
                "arena_bytes": plan.arena_bytes,
                **({"pool_bytes": list(plan.pool_bytes)} if plan.pool_bytes else {}),
            }
            if isinstance(plan, ModelPlan)
            else figures_to_dict(plan)
        ),
    }
    _print(arguments, facts, output.facts_text(facts))
    return 0


def compare(arguments: argparse.Namespace) -> int:
    """Run `regal compare`."""
    options = _options(arguments)
    names = None if arguments.methods is None else arguments.methods.split(",")
    model = _load(arguments)
    system = system_for(model, arguments.devices)
    started = time.perf_counter()
    path = str(arguments.model)
    with output.progress("comparing"):
        if len(system.devices) > 1:
            schedules = schedule_comparison.compare_schedules(model, system, names, options)
            document = schedule_comparison.schedule_comparison_to_dict(
                path, model, system, schedules, options
            )
            text = schedule_comparison_text(schedules)
        else:
            rows = comparison.compare_methods(model, names, options)
            document = comparison.comparison_to_dict(path, model, rows, options)
            text = output.comparison_text(rows)
    document["seconds"] = round(time.perf_counter() - started, 3)
    _print(arguments, document, text)
    return 0


def allocate(arguments: argparse.Namespace) -> int:
    """Run `regal allocate`."""
    if arguments.out is not None:
        require_writable(arguments.out, inputs=[arguments.file], force=arguments.force)
    with output.progress("allocating"):
        run = run_allocate(
            arguments.file,
            capacity=arguments.capacity,
            seed=arguments.seed,
            seconds=arguments.time,
        )
    out = arguments.out if run.fits else None
    if out is not None:
        write_atomically(out, run.csv_text.encode())
    _print(arguments, run.to_dict(), output.allocation_text(run, out))
    return 0 if run.fits else 1


def _load(arguments: argparse.Namespace) -> LoadedModel:
    return load(arguments.model, dict(arguments.shape), dict(arguments.dim))


def _load_plan(path: Path, model: LoadedModel) -> ModelPlan | ModelSchedule:
    data = read_file(path, "plan file")
    if is_schedule_file(data):
        schedule, costs = schedule_from_json(data, model, path.name)
        require_possible_costs(model, schedule.system, costs)
        return require_valid_model_schedule(model, costs, schedule)
    return require_valid_model_plan(model, plan_from_json(data, model, path.name))


def _plan_text(result: Result | ScheduleResult) -> str:
    if isinstance(result, ScheduleResult):
        return schedule_to_json(result.model, result.costs, result.plan)
    return plan_to_json(result.model, result.plan)


def _c_header(result: Result | ScheduleResult) -> str:
    from regal.backends.tflite import c_header

    if isinstance(result, ScheduleResult):
        raise UsageError("--header: a C header describes one device")
    return c_header(result.model, result.plan)


def _options(arguments: argparse.Namespace) -> Options:
    return Options(
        objective=arguments.objective,
        weights=arguments.weights,
        devices=arguments.devices,
        profiles=tuple(arguments.profile),
        policy=arguments.policy,
        evaluations=arguments.evaluations,
        seconds=arguments.time,
        seed=arguments.seed,
        threads=arguments.threads,
        shapes=dict(arguments.shape),
        dims=dict(arguments.dim),
    )


def _print(arguments: argparse.Namespace, document: dict[str, Any], text: str) -> None:
    output.print_result(document, text, as_json=arguments.json)
