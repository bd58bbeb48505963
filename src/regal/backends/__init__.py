"""Apply a plan to the user's model, and prove in the real runtime that it still works."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from regal.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Protocol

    from regal.backends.types import AppliedModel, Verification
    from regal.graph.types import LoadedModel
    from regal.plan.schedule import ModelSchedule
    from regal.plan.types import ModelPlan

    class Backend(Protocol):
        """A module that writes one kind of model and runs it."""

        def default_order(self, model: LoadedModel) -> tuple[int, ...] | None:
            """Return the order in which the runtime runs the main graph; None: the file's."""

        def apply(self, model: LoadedModel, plan: ModelPlan) -> AppliedModel:
            """Return the model with the plan in it."""

        def refine(self, model: LoadedModel, plan: ModelPlan) -> AppliedModel:
            """Return the model like `apply`, but in the form that the runtime likes best."""

        def with_free_dimensions(self, model: LoadedModel) -> LoadedModel | None:
            """Return a model that applies without dimensions of the user; None: it has none."""

        def encoded(self, data: bytes, out: Path) -> bytes:
            """Return the model in the form that the name of `out` asks for."""

        def verify(
            self,
            original: Path,
            optimized: Path,
            *,
            seed: int,
            invocations: int = 20,
            timeout_s: float = 60,
            shapes: Mapping[str, tuple[int, ...]] | None = None,
            dims: Mapping[str, int] | None = None,
        ) -> Verification:
            """Return what the runtimes say when both models run on equal inputs."""

    class ScheduleBackend(Protocol):
        """A module that writes one kind of model for several devices and runs it."""

        def apply_schedule(
            self, model: LoadedModel, schedule: ModelSchedule, *, name: str
        ) -> AppliedModel:
            """Return the model with the schedule in it, to be written to a file called `name`."""

        def encoded(self, data: bytes, out: Path) -> bytes:
            """Return the model in the form that the name of `out` asks for."""

        def verify_schedule(
            self,
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
            """Return what the runtime says when both models run on equal inputs.

            `optimized` is the file that was written, with its neighbors beside it.
            """


BACKENDS = {
    "tflite": "regal.backends.tflite",
    "onnx": "regal.backends.onnx",
    "tensorflow": "regal.backends.tensorflow",
    "graph": "regal.backends.graph",
}
# Frameworks whose files can say on which device an op runs.
SCHEDULE_BACKENDS = ("onnx", "tensorflow")
# Why the others cannot.
NO_DEVICES = {
    "tflite": "a .tflite file has no place for devices: its runtime gives ops to delegates",
    "graph": "a graph file has no runtime",
}


def backend_of(framework: str) -> Backend:
    """Return the backend that writes models of `framework`.

    Raises:
        BackendError: there is none.
    """
    if framework not in BACKENDS:
        raise BackendError(f"no backend writes '{framework}' models; known: {', '.join(BACKENDS)}")
    return cast("Backend", import_module(BACKENDS[framework]))


def schedule_backend_of(framework: str) -> ScheduleBackend:
    """Return the backend that writes models of `framework` for several devices.

    Raises:
        BackendError: there is none; the plan is what can be had.
    """
    if framework not in SCHEDULE_BACKENDS:
        reason = NO_DEVICES.get(framework, f"no backend writes '{framework}' models")
        raise BackendError(f"{reason}; leave out -o and write the plan, with --plan FILE.json")
    return cast("ScheduleBackend", backend_of(framework))
