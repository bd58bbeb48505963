"""Run an optimized ONNX model the way it was planned."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from onnxruntime import InferenceSession


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
