"""Execute schedules for several devices: the backend's own verification says what they took."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from regal.backends import files_of, schedule_backend_of
from regal.child import installed
from regal.errors import BackendError
from regal.files import write_all
from regal.validation.types import Measured

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.graph.types import LoadedModel
    from regal.plan.schedule import ModelSchedule
    from regal.validation.executors import ExecutorOptions


RUNTIMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"onnx": ("onnxruntime",), "tensorflow": ("tensorflow-cpu", "tensorflow")}
)


@dataclass(frozen=True, slots=True)
class ScheduleExecutor:
    """Runs a model spread over CPU threads or logical devices that stand in for the planned ones.

    A run that leaves the plan (another placement, other outputs) is a failure: what it took says
    nothing about that plan.
    """

    model: LoadedModel
    path: Path
    options: ExecutorOptions
    shapes: Mapping[str, tuple[int, ...]]
    dims: Mapping[str, int]

    @property
    def name(self) -> str:
        """Return what executes, with its version where it is installed."""
        packages = RUNTIMES.get(self.model.framework, (self.model.framework,))
        package = installed(*packages) or packages[0]
        return f"{package}, CPU threads in place of devices"

    def planned_bytes(self, plan: ModelSchedule) -> int:
        """Return the planned peak of the device with most."""
        return plan.plans[0].figures.peak

    def run(self, plan: ModelSchedule) -> Measured:
        """Return what the schedule took."""
        backend = schedule_backend_of(self.model.framework)
        with tempfile.TemporaryDirectory(prefix="regal-") as folder:
            out = Path(folder, self.path.name)
            try:
                applied = backend.apply_schedule(self.model, plan, name=out.name)
            except BackendError as error:
                return Measured(failure=str(error))
            write_all(files_of(backend, applied, out), out, inputs=[], force=False)
            verification = backend.verify_schedule(
                self.path,
                out,
                plan,
                seed=self.options.seed,
                invocations=self.options.invocations + 1,
                timeout_s=self.options.timeout_s,
                shapes=self.shapes,
                dims=self.dims,
            )
        if not verification.checks:
            return Measured(failure=verification.skipped or "no runtime ran it")
        check = verification.checks[0]
        ran = check.run_after
        if ran is None or not check.outputs_equal or check.placement_honored is False:
            return Measured(failure=check.detail or "the runtime left the plan")
        return Measured(
            time_ns=round(ran.median_s * 1e9), peak_bytes=max(ran.peak_bytes, default=None)
        )
