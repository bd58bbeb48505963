"""Have ONNX Runtime run the original and the new model: equal outputs, measured heap."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from regal.backends.types import RuntimeCheck, Verification
from regal.child import installed
from regal.errors import RegalError
from regal.frontends.onnx.dims import bind
from regal.frontends.onnx.parse import read_model
from regal.frontends.onnx.prepare import lacks_weights, needs_preparation, runnable_copy
from regal.frontends.onnx.runtime import RunRequest, run_in_child
from regal.frontends.onnx.trace import trace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onnx import ModelProto

    from regal.frontends.onnx.runtime import RunResult
    from regal.frontends.onnx.trace import Trace

# What the runtime's own bookkeeping takes differs by some hundred bytes from order to order.
NOISE_BYTES = 1024


def verify(
    original: Path,
    optimized: Path,
    *,
    seed: int,
    invocations: int = 20,
    timeout_s: float = 60,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    dims: Mapping[str, int] | None = None,
) -> Verification:
    """Return the verdict of ONNX Runtime: bit-equal outputs, the heap of a run, the order.

    Both models run without further optimization and without memory that no tensor needs; the
    original in ONNX Runtime's default order, the new one in the order of its file.
    `heap_peak_bytes` is the most that one run takes above the loaded model and its inputs.
    `detail` names the first difference, a peak that rose, or nodes that ran out of order.

    Args:
        original: the file that was planned.
        optimized: the file that was written.
        seed: of the inputs.
        invocations: runs, each on other inputs.
        timeout_s: wall time for each of three child processes.
        shapes: input -> dimensions, as for loading.
        dims: dimension name -> size, as for loading.
    """
    try:
        old, new = read_model(original), read_model(optimized)
        inputs = bind(old, shapes or {}, dims or {}).shapes
    except RegalError as error:
        return Verification(checks=(), skipped=str(error))
    with tempfile.TemporaryDirectory(prefix="regal-") as folder:
        request = RunRequest(
            model="",
            shapes={name: list(shape) for name, shape in inputs.items()},
            seed=seed,
            invocations=invocations,
        )
        before = run_in_child(
            replace(_of_file(request, old, original, Path(folder, "old")), file_order=False),
            timeout_s,
            measure=True,
        )
        if not before.ran:
            return Verification(checks=(), skipped=before.reason)
        after = run_in_child(
            replace(_of_file(request, new, optimized, Path(folder, "new")), style=before.style),
            timeout_s,
            measure=True,
        )
    seen = trace(new, optimized, inputs, seed=seed, file_order=True, timeout_s=timeout_s)
    check = RuntimeCheck(
        runtime=runtime_name(),
        outputs_equal=after.ran and before.digests == after.digests,
        before=_heap(before),
        after=_heap(after),
        invocations=invocations,
        detail="; ".join(_remarks(before, after, seen)),
        noise_bytes=NOISE_BYTES,
    )
    made_up = "the file holds no weights; both models ran with the same made-up ones"
    return Verification(checks=(check,), skipped=made_up if lacks_weights(old) else "")


def out_of_order(seen: Trace) -> str:
    """Return "" if the main graph ran in the order of the file, else where it did not."""
    executed = [position for place, position in seen.order if not place]
    # Constants and casts to the same type never run.
    listed = sorted(set(executed))
    added = f" ({seen.strangers} kernels added by ONNX Runtime)" if seen.strangers else ""
    for step, (wanted, ran) in enumerate(zip(listed, executed, strict=True)):
        if wanted != ran:
            return f"ONNX Runtime ran node {ran} as step {step}, the file lists {wanted}{added}"
    return ""


def _of_file(request: RunRequest, model: ModelProto, path: Path, scratch: Path) -> RunRequest:
    """Return the request for the model in `path`, or for a copy that can run."""
    if not needs_preparation(model):
        # As the user runs it; a text file goes through its binary form.
        if path.suffix == ".onnx":
            return replace(request, model=str(path))
        scratch.write_bytes(model.SerializeToString())
    else:
        scratch.write_bytes(runnable_copy(model).SerializeToString())
    return replace(request, model=str(scratch), external_folder=str(path.parent.resolve()))


def _remarks(before: RunResult, after: RunResult, seen: Trace) -> list[str]:
    if not after.ran:
        return [f"the new model does not run: {after.reason}"]
    remarks = [_first_difference(before, after)]
    if 0 <= before.heap_peak_bytes < after.heap_peak_bytes - NOISE_BYTES:
        remarks.append(
            f"the heap peak rose from {before.heap_peak_bytes} to {after.heap_peak_bytes} bytes"
        )
    remarks.append(seen.reason or out_of_order(seen))
    return [remark for remark in remarks if remark]


def _first_difference(before: RunResult, after: RunResult) -> str:
    for run, (left, right) in enumerate(zip(before.digests, after.digests, strict=False)):
        for output, (a, b) in enumerate(zip(left, right, strict=False)):
            if a != b:
                return f"output {output} of run {run} differs"
    return "" if before.digests == after.digests else "the numbers of outputs differ"


def _heap(result: RunResult) -> dict[str, int]:
    return {"heap_peak_bytes": result.heap_peak_bytes} if result.heap_peak_bytes >= 0 else {}


def runtime_name() -> str:
    """Return the name and version of the runtime."""
    return installed("onnxruntime")
