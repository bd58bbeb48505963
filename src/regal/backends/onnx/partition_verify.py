"""Have ONNX Runtime run a model and its parts: equal outputs, the order, memory per device."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import onnx

from regal.backends.onnx.order import executed_order, is_folded
from regal.backends.onnx.parts import index_name, parts_to_json, read_parts
from regal.backends.onnx.parts_request import PartsRequest, PartsResult, times_of
from regal.backends.onnx.verify import NOISE_BYTES, runtime_name
from regal.backends.types import DeviceRun, RuntimeCheck, Verification
from regal.child import run_module
from regal.errors import RegalError
from regal.frontends.onnx.dims import bind
from regal.frontends.onnx.kinds import SHAPE_READERS
from regal.frontends.onnx.load import load
from regal.frontends.onnx.parse import read_model
from regal.frontends.onnx.prepare import lacks_weights, runnable_copy
from regal.frontends.onnx.runtime import meter_path
from regal.frontends.onnx.trace import name_nodes
from regal.graph.types import ABSENT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onnx import ModelProto

    from regal.backends.onnx.parts import Parts
    from regal.graph.types import Graph
    from regal.plan.schedule import ModelSchedule

# Where it has no kernel for float16, ONNX Runtime computes in float32 and rounds between ops;
# inside one model it leaves out some of these roundings, between parts it cannot.
HALF_TOLERANCE = 1e-2


def verify_schedule(
    original: Path,
    optimized: Path,
    schedule: ModelSchedule,
    *,
    seed: int,
    invocations: int = 20,
    timeout_s: float = 120,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    dims: Mapping[str, int] | None = None,
) -> Verification:
    """Return the verdict of ONNX Runtime on a model that was cut into parts.

    One child process runs the original, the whole new model, and its parts with a thread per
    device, on equal inputs. Outputs must be equal bit for bit, but where float16 values go
    between parts: then they may be off by HALF_TOLERANCE of the largest. The placement is
    honored when each op lies in one part, of its device, and the order when the parts list
    the ops in planned order and run them so, as profiles tell. Peaks are the heap that the
    parts of a device take, one part at a time, plus what the device holds between them.

    Args:
        original: the file that was planned.
        optimized: the whole model that was written; its parts lie beside it.
        schedule: what was applied.
        seed: of the inputs.
        invocations: runs, each on other inputs.
        timeout_s: wall time for the child process.
        shapes: input -> dimensions, as for loading.
        dims: dimension name -> size, as for loading.
    """
    index = optimized.with_name(index_name(optimized.stem))
    try:
        old, new = read_model(original), read_model(optimized)
        inputs = bind(old, shapes or {}, dims or {}).shapes
        graph = load(original, shapes or {}, dims or {}).graph
        parts = read_parts(index)
        models = [read_model(optimized.with_name(part.file)) for part in parts.parts]
    except RegalError as error:
        return Verification(checks=(), skipped=str(error))
    tolerance = HALF_TOLERANCE if _has_half(parts, models) else 0.0
    with tempfile.TemporaryDirectory(prefix="regal-") as name:
        folder = Path(name)
        request = PartsRequest(
            original=_runnable(old, folder / "original.onnx"),
            whole=_runnable(new, folder / "whole.onnx"),
            index=_runnable_parts(parts, models, folder / "parts"),
            named=_named_parts(parts, models, folder / "named"),
            external_folder=str(original.parent.resolve()),
            written_folder=str(optimized.parent.resolve()),
            shapes={name: list(shape) for name, shape in inputs.items()},
            seed=seed,
            invocations=invocations,
            tolerance=tolerance,
        )
        result, end = _run(request, folder, timeout_s)
    if not result.original_ran:
        return Verification(checks=(), skipped=result.reason or f"ONNX Runtime {end}")
    placed = _placement_fault(graph, schedule, parts, models)
    ordered = _order_fault(graph, schedule, parts, models) or result.out_of_order
    check = _check(parts, result, end, tolerance, placed, ordered)
    made_up = "the file holds no weights; all models ran with the same made-up ones"
    return Verification(checks=(check,), skipped=made_up if lacks_weights(old) else "")


def _run(request: PartsRequest, folder: Path, timeout_s: float) -> tuple[PartsResult, str]:
    """Return what the child wrote down, and how it ended if that was early."""
    request_path, result_path = folder / "request.json", folder / "result.json"
    request_path.write_text(json.dumps(asdict(request)))
    ended = run_module(
        "regal.backends.onnx.parts_child",
        [str(request_path), str(result_path)],
        timeout_s,
        preload=meter_path(),
    )
    if not result_path.exists():
        last = ended.stderr.strip().splitlines()[-1:]
        return PartsResult(), ": ".join([ended.end or "ended early", *(s[:200] for s in last)])
    return PartsResult(**json.loads(result_path.read_text())), ended.end


def _check(
    parts: Parts, result: PartsResult, end: str, tolerance: float, placed: str, ordered: str
) -> RuntimeCheck:
    """Return the verdict; `placed` and `ordered` say where the files leave the schedule."""
    equal = not result.failure and result.invocations > 0
    is_free = result.added_kernels > 0 and ordered == result.out_of_order
    if ordered and is_free:
        ordered += f", for it added {result.added_kernels} kernels of its own"
    remarks = [result.failure, placed, ordered, end and f"ONNX Runtime {end}"]
    before_s, before_runs = times_of(result.seconds_before)
    after_s, after_runs = times_of(result.seconds_after)
    before = (result.peak_before,) if result.peak_before >= 0 else ()
    after = tuple(result.peaks_after)
    return RuntimeCheck(
        runtime=runtime_name(),
        outputs_equal=equal,
        before={"heap_peak_bytes": max(before)} if before else {},
        after={"heap_peak_bytes": max(after)} if after else {},
        invocations=result.invocations,
        detail="; ".join(remark for remark in remarks if remark),
        noise_bytes=NOISE_BYTES * len(parts.devices),
        tolerance=tolerance,
        run_before=DeviceRun(
            devices=("CPU",), peak_bytes=before, median_s=before_s, runs=before_runs
        ),
        run_after=DeviceRun(
            devices=tuple(f"CPU thread of '{name}'" for name in parts.devices),
            peak_bytes=after,
            median_s=after_s,
            runs=after_runs,
        ),
        placement_honored=not placed,
        order_honored=None if is_free or not (ordered or result.traced) else not ordered,
    )


def _placement_fault(
    graph: Graph, schedule: ModelSchedule, parts: Parts, models: list[ModelProto]
) -> str:
    """Return the first op that does not lie in one part of its device, in words."""
    found: dict[str, list[int]] = {}
    for part, model in zip(parts.parts, models, strict=True):
        for node in model.graph.node:
            found.setdefault(_label(node.output), []).append(part.device)
    for i, device in enumerate(schedule.plans[0].schedule.placement):
        if is_folded(graph, i):
            continue  # a weight: it lies wherever it is read
        label = _label_of(graph, i)
        if found.get(label, []) != [device]:
            where = [parts.devices[d] for d in found.get(label, [])]
            return f"op '{graph.ops[i].name}' of '{parts.devices[device]}' lies in parts of {where}"
    return ""


def _order_fault(
    graph: Graph, schedule: ModelSchedule, parts: Parts, models: list[ModelProto]
) -> str:
    """Return the first op that a device would run out of order, in words."""
    planned = schedule.plans[0].schedule
    step_of = {op: step for step, op in enumerate(executed_order(graph, planned.order))}
    op_of = {_label_of(graph, i): i for i in range(len(graph.ops)) if not is_folded(graph, i)}
    for device, name in enumerate(parts.devices):
        last = -1
        for part, model in zip(parts.parts, models, strict=True):
            for node in model.graph.node if part.device == device else ():
                op = op_of.get(_label(node.output), -1)
                if op >= 0 and step_of[op] < last and graph.ops[op].kind not in SHAPE_READERS:
                    return f"'{name}' runs op '{graph.ops[op].name}' after a later one"
                last = max(last, step_of.get(op, last))
    return ""


def _label(names: Sequence[str]) -> str:
    return next((name for name in names if name), "")


def _label_of(graph: Graph, op: int) -> str:
    return _label([graph.tensors[t].name for t in graph.ops[op].outputs if t != ABSENT])


def _runnable(model: ModelProto, path: Path) -> str:
    """Write a model that can run, in binary form; return where."""
    path.write_bytes(runnable_copy(model).SerializeToString())
    return str(path)


def _runnable_parts(parts: Parts, models: list[ModelProto], folder: Path) -> str:
    """Write parts that can run, and their index; return where that is."""
    folder.mkdir()
    for part, model in zip(parts.parts, models, strict=True):
        _runnable(model, folder / part.file)
    index = folder / "parts.json"
    index.write_text(parts_to_json(parts))
    return str(index)


def _named_parts(parts: Parts, models: list[ModelProto], folder: Path) -> str:
    """Write parts whose nodes are named by their positions; return the folder."""
    folder.mkdir()
    for part, model in zip(parts.parts, models, strict=True):
        named = runnable_copy(model)
        name_nodes(named.graph, ())
        (folder / part.file).write_bytes(named.SerializeToString())
    return str(folder)


def _has_half(parts: Parts, models: list[ModelProto]) -> bool:
    """Return whether a value of 16-bit floats goes from one part to another."""
    halves = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
    return any(
        value.type.tensor_type.elem_type in halves
        for part, model in zip(parts.parts, models, strict=True)
        for value in model.graph.input
        if any(name == value.name and maker >= 0 for name, maker in part.inputs)
    )
