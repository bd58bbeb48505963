"""Optimize an ONNX model written as text, and run it before and after in ONNX Runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from regal import pipeline
from regal.onnxruntime import session
from regal.options import Options

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from regal.result import Result

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'


def write_model(text: str, folder: Path) -> Path:
    """Write the model that ONNX's text syntax `text` describes (its graph alone)."""
    import onnx
    import onnx.parser

    model = onnx.parser.parse_model(HEAD + text)
    onnx.checker.check_model(model)
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


def optimized(path: Path, *, runs: int = 3) -> Result:
    """Return the result for the file at `path`, after judging outputs bit for bit."""
    import onnxruntime

    out = path.with_name("optimized.onnx")
    result = pipeline.optimize(path, out, Options(evaluations=500, verify=False))
    # With its optimizations ONNX Runtime 1.32 still fails on one of these models (#32413).
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    before = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    after = session(out)
    rng = np.random.default_rng(0)
    for _ in range(runs):
        feed = {value.name: _random(value.type, value.shape, rng) for value in before.get_inputs()}
        for name, (left, right) in _outputs(before, after, feed).items():
            assert left.dtype == right.dtype, name
            assert np.array_equal(left, right, equal_nan=left.dtype.kind == "f"), name
    return result


def _outputs(
    before: object, after: object, feed: Mapping[str, NDArray[np.generic]]
) -> dict[str, tuple[NDArray[np.generic], NDArray[np.generic]]]:
    left, right = before.run(None, feed), after.run(None, feed)  # type: ignore[attr-defined]
    names = [value.name for value in before.get_outputs()]  # type: ignore[attr-defined]
    return dict(zip(names, zip(left, right, strict=True), strict=True))


def _random(kind: str, shape: list[int], rng: np.random.Generator) -> NDArray[np.generic]:
    match kind:
        case "tensor(bool)":
            return rng.integers(0, 2, shape).astype(np.bool_)
        case "tensor(int64)":
            return rng.integers(1, 4, shape)
    return rng.standard_normal(shape).astype(np.float32)
