"""Let ONNX Runtime optimize a model before it is planned."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import onnx

from regal.errors import BackendError, UsageError
from regal.frontends.onnx.dims import Bindings, bound_copy
from regal.frontends.onnx.parse import read_model
from regal.frontends.onnx.runtime import RunRequest, run_in_child

if TYPE_CHECKING:
    from onnx import ModelProto

LEVELS = ("none", "basic", "extended")
LONGEST_OPTIMIZATION = 120.0  # seconds


def optimized_model(model: ModelProto, path: Path, bindings: Bindings, level: str) -> ModelProto:
    """Return `model` with fixed input dimensions, as ONNX Runtime optimizes it.

    The result runs on this kind of machine; "extended" uses ONNX Runtime's own operators.

    Raises:
        UsageError: `level` is unknown.
        BackendError: ONNX Runtime refuses the model.
    """
    if level not in LEVELS:
        raise UsageError(f"optimization level '{level}' is none of {', '.join(LEVELS)}")
    with tempfile.TemporaryDirectory(prefix="regal-") as folder:
        bound, saved = Path(folder, "bound.onnx"), Path(folder, "optimized.onnx")
        bound.write_bytes(bound_copy(model, bindings.shapes).SerializeToString())
        result = run_in_child(
            RunRequest(
                model=str(bound),
                external_folder=str(path.parent.resolve()),
                level=level,
                optimized=str(saved),
                invocations=0,
            ),
            LONGEST_OPTIMIZATION,
        )
        if not result.ran or not saved.exists():
            raise BackendError(f"ONNX Runtime cannot optimize '{path}': {result.reason}")
        optimized = read_model(saved)
        onnx.external_data_helper.load_external_data_for_model(optimized, folder)
        return optimized
