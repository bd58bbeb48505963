"""Have ONNX Runtime run the original and the new model: equal outputs, measured heap."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import TYPE_CHECKING

from regal.backends.types import RuntimeCheck, Verification
from regal.errors import RegalError
from regal.frontends.onnx.dims import bind
from regal.frontends.onnx.parse import read_model
from regal.frontends.onnx.runtime import RunRequest, run_in_child
from regal.frontends.onnx.trace import trace

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from regal.frontends.onnx.runtime import RunResult


def verify(
    original: Path,
    optimized: Path,
    *,
    seed: int,
    invocations: int = 20,
    timeout_s: float = 60,
    shapes: Mapping[str, tuple[int, ...]],
    dims: Mapping[str, int],
) -> Verification:
    """Return the verdict of ONNX Runtime: bit-equal outputs, and the heap of a run.

    Both models run without further optimization and without memory that no tensor needs; the
    original in ONNX Runtime's default order, the new one in the order of its file.
    `heap_peak_bytes` is what one run takes above the model and its inputs.

    Args:
        original: the file that was planned.
        optimized: the file that was written.
        seed: of the inputs.
        invocations: runs on different inputs.
        timeout_s: wall time for each child process.
        shapes: input -> dimensions, as for loading.
        dims: dimension name -> size, as for loading.
    """
    try:
        bindings = bind(read_model(original), shapes, dims)
    except RegalError as error:
        return Verification(checks=(), skipped=str(error))
    request = RunRequest(
        model=str(original),
        file_order=False,
        shapes={name: list(shape) for name, shape in bindings.shapes.items()},
        seed=seed,
        invocations=invocations,
    )
    before = run_in_child(request, timeout_s, measure=True)
    if not before.ran:
        return Verification(checks=(), skipped=f"the original does not run: {before.reason}")
    request = replace(request, model=str(optimized), file_order=True, style=before.style)
    after = run_in_child(request, timeout_s, measure=True)
    difference = _first_difference(before, after) if after.ran else after.reason
    return Verification(
        checks=(
            RuntimeCheck(
                runtime=_runtime(),
                outputs_equal=not difference,
                before=_heap(before),
                after=_heap(after),
                invocations=invocations,
                detail=difference,
            ),
        )
    )


def _runtime() -> str:
    from importlib.metadata import version

    return f"onnxruntime {version('onnxruntime')}"


def _heap(result: RunResult) -> dict[str, int]:
    return {"heap_peak_bytes": result.heap_peak_bytes} if result.heap_peak_bytes >= 0 else {}


def _first_difference(before: RunResult, after: RunResult) -> str:
    for run, (left, right) in enumerate(zip(before.digests, after.digests, strict=True)):
        for output, (a, b) in enumerate(zip(left, right, strict=True)):
            if a != b:
                return f"output {output} of run {run} differs"
    return ""
