"""`regal profile`: a model file -> measured op times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.errors import UsageError
from regal.frontends import load
from regal.profiling.types import ProfileOptions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from regal.cost.profile import Profile
    from regal.graph.types import LoadedModel


def profile_model(
    path: Path,
    options: ProfileOptions | None = None,
    *,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    dims: Mapping[str, int] | None = None,
) -> Profile:
    """Return the op times of the model in a file, measured in its own runtime.

    Args:
        path: a model that a runtime here can run; a graph file has none.
        options: runs, warm-up, threads, time limit.
        shapes: input -> dimensions, as for loading.
        dims: dimension name -> size, as for loading.

    Raises:
        ModelError: the file is broken or not supported.
        UsageError: nothing runs this kind of file.
        BackendError: the runtime is not installed, or refuses the model.
    """
    return profile_loaded(load(path, shapes, dims), options or ProfileOptions(), path.name)


def profile_loaded(model: LoadedModel, options: ProfileOptions, name: str) -> Profile:
    """Return the op times of a loaded model; `name` is that of its file, for messages."""
    # Runtimes are heavy; each is imported when its models come.
    if model.framework == "onnx":
        from regal.profiling.onnx import profile_onnx

        return profile_onnx(model, options)
    if model.framework == "tflite":
        from regal.profiling.litert import profile_litert

        return profile_litert(model, options, name)
    if model.framework == "tensorflow":
        from regal.profiling.tensorflow import profile_tensorflow

        return profile_tensorflow(model, options, name)
    raise UsageError(f"'{name}': no runtime measures a model of kind '{model.framework}'")
