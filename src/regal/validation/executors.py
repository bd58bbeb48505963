"""Execute plans for one device in the real runtimes."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from regal.backends import backend_of
from regal.child import installed
from regal.errors import BackendError, UsageError
from regal.files import write_all
from regal.validation.types import Measured

if TYPE_CHECKING:
    from regal.graph.types import LoadedModel
    from regal.plan.types import ModelPlan
    from regal.validation.types import Executor

WARMUP = 1  # the first run sets up what later runs share


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorOptions:
    """How often, and within which limits, a plan is executed."""

    invocations: int = 6
    seed: int = 0
    timeout_s: float = 120.0  # for each child process


def order_executor(model: LoadedModel, options: ExecutorOptions) -> Executor[ModelPlan]:
    """Return what executes plans for one device of a model of this kind.

    Raises:
        UsageError: nothing here executes them.
    """
    if model.framework == "onnx":
        return OnnxOrders(model, options)
    if model.framework == "tflite":
        return TflmOrders(model, options)
    raise UsageError(f"nothing executes plans of a '{model.framework}' model on one device")


@dataclass(frozen=True, slots=True)
class OnnxOrders:
    """ONNX Runtime runs the nodes in planned order: its fastest run, and the heap of one."""

    model: LoadedModel
    options: ExecutorOptions

    @property
    def name(self) -> str:
        """Return name and version."""
        return installed("onnxruntime")

    def planned_bytes(self, plan: ModelPlan) -> int:
        """Return the planned peak: ONNX Runtime takes every buffer from the heap."""
        return plan.plans[0].peak_bytes

    def run(self, plan: ModelPlan) -> Measured:
        """Return what the plan took."""
        from regal.frontends.onnx.parse import read_model
        from regal.frontends.onnx.prepare import runnable_copy
        from regal.frontends.onnx.runtime import RunRequest, run_in_child
        from regal.frontends.onnx.source import OnnxSource

        source = self.model.source
        if not isinstance(source, OnnxSource):
            raise BackendError("the model was not read from an ONNX file")
        applied = backend_of("onnx").apply(self.model, plan)
        with tempfile.TemporaryDirectory(prefix="regal-") as folder:
            path = Path(folder, "model.onnx")
            write_all(applied.files, path, inputs=[], force=False)
            runnable = runnable_copy(read_model(path))
            path.write_bytes(runnable.SerializeToString())
            request = RunRequest(
                model=str(path),
                external_folder=folder,
                shapes={name: list(shape) for name, shape in source.shapes.items()},
                seed=self.options.seed,
                invocations=self.options.invocations + WARMUP,
            )
            timed = run_in_child(request, self.options.timeout_s)
            # Apart from the time: the meter counts at every allocation.
            request = replace(request, style=timed.style, invocations=1 + WARMUP)
            metered = run_in_child(request, self.options.timeout_s, measure=True)
        if not (timed.ran and metered.ran):
            return Measured(failure=timed.reason or metered.reason)
        peak = metered.heap_peak_bytes
        return Measured(time_ns=min(timed.run_ns[WARMUP:]), peak_bytes=peak if peak >= 0 else None)


@dataclass(frozen=True, slots=True)
class TflmOrders:
    """TFLite Micro executes the written file; the head of its arena is the plan's."""

    model: LoadedModel
    options: ExecutorOptions

    @property
    def name(self) -> str:
        """Return name and version."""
        from regal.backends.tflite.measure import TFLM, runtime_name

        return runtime_name(TFLM) or "tflite-micro"

    def planned_bytes(self, plan: ModelPlan) -> int:
        """Return the planned arena."""
        return plan.arena_bytes

    def run(self, plan: ModelPlan) -> Measured:
        """Return what the plan took: memory alone, time here is not that of a microcontroller."""
        from regal.backends.tflite.measure import TFLM, run_model
        from regal.frontends.tflite import source_of

        applied = backend_of("tflite").apply(self.model, plan)
        run = run_model(
            source_of(self.model),
            applied.files[""],
            TFLM,
            seed=self.options.seed,
            invocations=1,
            timeout_s=self.options.timeout_s,
        )
        if run.error or "head_bytes" not in run.numbers:
            return Measured(failure=run.error or "no arena was reported")
        return Measured(peak_bytes=run.numbers["head_bytes"])
