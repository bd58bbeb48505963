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

    class ScheduleBackend(Backend, Protocol):
        """A backend that can also spread a model over several devices."""

        def apply_schedule(
            self, model: LoadedModel, schedule: ModelSchedule, *, name: str
        ) -> AppliedModel:
            """Return the model with placement and order in it; `name` is the output's file name."""

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
            """Return what the runtime says when both models run on equal inputs."""


BACKENDS = {
    "tflite": "regal.backends.tflite",
    "onnx": "regal.backends.onnx",
    "tensorflow": "regal.backends.tensorflow",
    "graph": "regal.backends.graph",
    "torch": "regal.backends.torch",
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
    """Return the backend that spreads models of `framework` over several devices.

    Raises:
        BackendError: there is none.
    """
    backend = backend_of(framework)
    if not hasattr(backend, "apply_schedule"):
        raise BackendError(
            f"a '{framework}' file cannot say which device runs an op: write the plan with --plan"
            " FILE.json instead of an output model"
        )
    return cast("ScheduleBackend", backend)


def files_of(backend: Backend, applied: AppliedModel, out: Path) -> dict[str, bytes]:
    """Return the files of an applied model, the model itself in the form that `out` asks for."""
    return {**applied.files, "": backend.encoded(applied.files[""], out)}
