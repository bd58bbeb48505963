"""Run an optimized ONNX model the way it was planned."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onnxruntime import InferenceSession

    from regal.backends.onnx.parts_run import PartsSession


def session(
    path: str | Path,
    *,
    threads: int = 1,
    providers: Sequence[str] = ("CPUExecutionProvider",),
) -> InferenceSession:
    """Return an ONNX Runtime session that runs the nodes of `path` in the file's order.

    Without these options ONNX Runtime chooses its own order and keeps memory that no tensor
    needs: arena, memory pattern and reuse of dead buffers are off, and so are optimizations,
    which would change the planned graph.

    Args:
        path: a model written by `regal optimize`.
        threads: within an operator; operators run one at a time.
        providers: execution providers, as for InferenceSession.
    """
    import onnxruntime

    from regal.frontends.onnx.session import session_options

    options = session_options(threads=threads)
    return onnxruntime.InferenceSession(str(path), options, providers=list(providers))


def parts_session(
    index: str | Path,
    *,
    threads: int = 1,
    providers: Mapping[str, Sequence[str]] | None = None,
) -> PartsSession:
    """Return a session that runs the parts of a model, each device in a thread of its own.

    Args:
        index: the STEM.parts.json beside a model that was written for several devices.
        threads: within an operator, per device.
        providers: name of a device -> its execution providers; the CPU's where not named.

    Raises:
        ModelError: the index is broken.
    """
    from regal.backends.onnx.parts_run import open_parts

    return open_parts(Path(index), threads=threads, providers=providers)


def optimized_bytes(
    path: Path, level: str, shapes: Mapping[str, tuple[int, ...]], dims: Mapping[str, int]
) -> bytes:
    """Return the model in `path` as ONNX Runtime optimizes it, its input dimensions fixed.

    Optimizing comes first, planning second: a session that runs a planned order must not
    optimize any more. "basic" keeps to standard operators; "extended" uses ONNX Runtime's own.

    Raises:
        ModelError: the file is broken, or dimensions are open.
        BackendError: ONNX Runtime refuses the model.
        UsageError: the level is unknown.
    """
    from regal.frontends.onnx.dims import bind
    from regal.frontends.onnx.optimize import optimized_model
    from regal.frontends.onnx.parse import read_model

    model = read_model(path)
    optimized = optimized_model(model, path, bind(model, shapes, dims), level)
    return bytes(optimized.SerializeToString())
