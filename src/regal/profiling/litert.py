"""Op times from LiteRT's own profiler."""

from __future__ import annotations

import json
import struct
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from regal.backends.tflite.inputs import input_specs
from regal.backends.tflite.measure import LITERT, runtime_name
from regal.child import run_module
from regal.errors import BackendError
from regal.frontends.tflite import source_of
from regal.frontends.tflite.schema import ModelField, SubgraphField, TensorField
from regal.profiling.samples import profile_of, without_warmup

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from regal.cost.profile import Profile
    from regal.frontends.tflite import TfliteSource
    from regal.graph.types import LoadedModel
    from regal.profiling.samples import OpSamples
    from regal.profiling.types import ProfileOptions

_REASON: Final = "ERROR: "


def profile_litert(model: LoadedModel, options: ProfileOptions, name: str) -> Profile:
    """Return the op times of a .tflite model's main graph on LiteRT's plain CPU kernels.

    No delegate takes part: XNNPACK would fuse ops. LiteRT counts whole microseconds.

    Raises:
        BackendError: LiteRT is not installed, or refuses the model.
    """
    if not runtime_name(LITERT):
        raise BackendError("ai-edge-litert is not installed: pip install regal[tflite]")
    source = source_of(model)
    found = _run(source, options, name)
    runs: list[list[list[int]]] = found["ops"]
    return profile_of(
        _rows(source, runs, options.warmup),
        model.entries,
        model=name,
        runtime=runtime_name(LITERT),
        threads=options.threads,
        runs=options.runs,
        warmup=options.warmup,
        total_ns=min(found["run_ns"][options.warmup :]),
    )


def _rows(
    source: TfliteSource, runs: Sequence[Sequence[Sequence[int]]], warmup: int
) -> Iterator[OpSamples]:
    """Yield the samples of each op that ran, bodies included."""
    samples: dict[tuple[int, int], list[int]] = {}
    for run in runs:
        for subgraph, op, us in run:
            samples.setdefault((subgraph, op), []).append(1000 * us)
    for (subgraph, position), row in samples.items():
        graph = source.graphs[subgraph]
        if position < len(graph.ops):
            yield graph.ops[position], graph, without_warmup(row, warmup, len(runs))


def _run(source: TfliteSource, options: ProfileOptions, name: str) -> dict[str, Any]:
    """Return what the child process measured."""
    main = source.file.subgraphs[0]
    specs = zip(main.inputs, input_specs(source, 0), strict=True)
    numbers = [i for i, s in enumerate(source.file.signatures) if s.subgraph == 0]
    with tempfile.TemporaryDirectory(prefix="regal-") as folder:
        paths = {part: Path(folder, part) for part in ("model.tflite", "request", "result")}
        paths["model.tflite"].write_bytes(with_closed_shapes(source))
        request = {
            "model": str(paths["model.tflite"]),
            "signature": numbers[0] if numbers else 0,
            "inputs": {str(tensor): asdict(spec) for tensor, spec in specs},
            "invocations": options.warmup + options.runs,
            "threads": options.threads,
            "seed": options.seed,
        }
        paths["request"].write_text(json.dumps(request))
        arguments = [str(paths["request"]), str(paths["result"])]
        ended = run_module("regal.profiling.litert_child", arguments, options.timeout_s)
        if not paths["result"].exists():
            raise BackendError(f"LiteRT {ended.end} on '{name}'")
        result: dict[str, Any] = json.loads(paths["result"].read_text())
    if "error" in result:
        reasons = [line for line in ended.stderr.splitlines() if line.startswith(_REASON)]
        reason = reasons[0].removeprefix(_REASON)[:200] if reasons else result["error"]
        raise BackendError(f"LiteRT cannot profile '{name}': {reason}")
    return result


def with_closed_shapes(source: TfliteSource) -> bytes:
    """Return the file with open sizes in its tensors' signatures replaced by the bound ones.

    LiteRT's C interface makes no buffers for tensors of open sizes.
    """
    data = bytearray(source.file.data)
    tables = source.file.root.tables(ModelField.SUBGRAPHS)
    for table, shapes in zip(tables, source.shapes.of, strict=True):
        for tensor, shape in zip(table.tables(SubgraphField.TENSORS), shapes, strict=True):
            start, count = tensor.vector(TensorField.SHAPE_SIGNATURE, 4)
            if count == len(shape):
                data[start : start + 4 * count] = struct.pack(f"<{count}i", *shape)
    return bytes(data)
