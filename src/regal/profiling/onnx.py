"""Op times from ONNX Runtime's own profiler."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from regal.backends.onnx.verify import runtime_name
from regal.errors import BackendError
from regal.frontends.onnx.prepare import runnable_copy
from regal.frontends.onnx.runtime import RunRequest, run_in_child
from regal.frontends.onnx.source import OnnxSource
from regal.frontends.onnx.trace import trace
from regal.profiling.samples import profile_of, without_warmup

if TYPE_CHECKING:
    from collections.abc import Iterator

    from regal.cost.profile import Profile
    from regal.frontends.onnx.trace import Trace
    from regal.graph.types import Graph, LoadedModel
    from regal.profiling.samples import OpSamples
    from regal.profiling.types import ProfileOptions


def profile_onnx(model: LoadedModel, options: ProfileOptions) -> Profile:
    """Return the op times of an ONNX model: each node as it stands, nothing fused.

    Two child processes run it: one under the profiler, one without, which says how long a whole
    run takes. Weights that the file leaves out are made up.

    Raises:
        BackendError: ONNX Runtime does not run the model.
    """
    source = model.source
    if not isinstance(source, OnnxSource):
        raise BackendError("the model was not read from an ONNX file")
    invocations = options.warmup + options.runs
    seen = trace(
        source.model,
        source.path,
        source.shapes,
        seed=options.seed,
        file_order=True,
        timeout_s=options.timeout_s,
        invocations=invocations,
        threads=options.threads,
    )
    if seen.reason:
        raise BackendError(f"ONNX Runtime cannot run '{source.path.name}': {seen.reason}")
    return profile_of(
        _rows(model.graph, seen, options.warmup, invocations),
        model.entries,
        model=source.path.name,
        runtime=runtime_name(),
        threads=options.threads,
        runs=options.runs,
        warmup=options.warmup,
        total_ns=_total_ns(source, options, seen.style),
    )


def _rows(graph: Graph, seen: Trace, warmup: int, invocations: int) -> Iterator[OpSamples]:
    """Yield the samples of each op that ran, bodies included."""
    for (place, position), runs in seen.runs.items():
        inside = graph
        for op, body in place:
            inside = inside.ops[op].subgraphs[body]
        samples = without_warmup([run.ns for run in runs], warmup, invocations)
        yield inside.ops[position], inside, samples


def _total_ns(source: OnnxSource, options: ProfileOptions, style: str) -> int:
    with tempfile.TemporaryDirectory(prefix="regal-") as folder:
        path = Path(folder, "model.onnx")
        path.write_bytes(runnable_copy(source.model).SerializeToString())
        result = run_in_child(
            RunRequest(
                model=str(path),
                external_folder=str(source.path.parent.resolve()),
                shapes={name: list(shape) for name, shape in source.shapes.items()},
                seed=options.seed,
                invocations=options.warmup + options.runs,
                threads=options.threads,
                style=style,
            ),
            options.timeout_s,
        )
    if not result.ran:
        raise BackendError(f"ONNX Runtime cannot run '{source.path.name}': {result.reason}")
    return min(result.run_ns[options.warmup :])
