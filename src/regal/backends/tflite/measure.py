"""Run models in child processes, under time limits, and read what the runtimes report."""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from regal.backends.tflite.inputs import input_specs
from regal.child import installed, run_module

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.frontends.tflite import TfliteSource

TFLM: Final = "tflm"
LITERT: Final = "litert"
_PACKAGES: Final = {TFLM: "tflite-micro", LITERT: "ai-edge-litert"}
_ALLOCATION: Final = re.compile(r"Arena allocation (total|head) (\d+) bytes")
# What TFLM needs besides the planned tensors: structures in the tail of the arena, and
# temporary memory while it plans. Untouched pages cost nothing.
_SPARE_ARENA: Final = 64 << 20
_LARGEST_ARENA: Final = (2 << 30) - 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one child process reports. `error` is empty when the model ran.

    `digests[i]` are those of all outputs in invocation i. `numbers` hold `head_bytes` and
    `total_bytes` (TFLM) or `span_bytes` (LiteRT).
    """

    runtime: str
    error: str = ""
    digests: tuple[tuple[str, ...], ...] = ()
    numbers: Mapping[str, int] = field(default_factory=dict)


def runtime_name(runtime: str) -> str:
    """Return name and version of a runtime, "" when it is not installed."""
    return installed(_PACKAGES[runtime])


def run_model(
    source: TfliteSource,
    model: bytes,
    runtime: str,
    *,
    seed: int,
    invocations: int,
    timeout_s: float,
) -> Run:
    """Return what happens when `runtime` runs `model` on seeded inputs.

    Args:
        source: the original model, which says what the inputs are.
        model: the file's bytes, original or rewritten.
        runtime: TFLM or LITERT.
        seed: of the inputs.
        invocations: how often in a row, state carried over; 0 only allocates (TFLM).
        timeout_s: the child process is killed after that.
    """
    if not runtime_name(runtime):
        return Run(runtime=runtime, error=f"{_PACKAGES[runtime]} is not installed")
    with tempfile.TemporaryDirectory(prefix="regal-") as folder:
        paths = {name: Path(folder) / name for name in ("model.tflite", "result", "request")}
        paths["model.tflite"].write_bytes(model)
        request = _request(source, runtime, seed, invocations)
        request |= {"model": str(paths["model.tflite"]), "result": str(paths["result"])}
        paths["request"].write_text(json.dumps(request))
        ended = run_module("regal.backends.tflite.runner", [str(paths["request"])], timeout_s)
        if not paths["result"].exists():
            return Run(runtime=runtime, error=f"{ended.end}{_last_words(ended.stderr)}")
        result = json.loads(paths["result"].read_text())
    if "error" in result:
        return Run(runtime=runtime, error=f"{result['error']}{_last_words(ended.stderr)}")
    numbers = {f"{what}_bytes": int(size) for what, size in _ALLOCATION.findall(ended.stderr)}
    if "span_bytes" in result:
        numbers["span_bytes"] = int(result["span_bytes"])
    return Run(
        runtime=runtime,
        digests=tuple(tuple(row) for row in result["digests"]),
        numbers=numbers,
    )


def _request(source: TfliteSource, runtime: str, seed: int, invocations: int) -> dict[str, object]:
    file = source.file
    keys = {s.subgraph: s.key for s in reversed(file.signatures)}
    entries = source.entries if runtime == LITERT else source.entries[:1]
    return {
        "runtime": runtime,
        "seed": seed,
        "invocations": invocations,
        "inputs": [[asdict(spec) for spec in input_specs(source, e)] for e in entries],
        "signatures": [keys[e] for e in entries[1:]],
        "n_outputs": len(file.subgraphs[0].outputs),
        "arena_bytes": min(_all_tensor_bytes(source) + _SPARE_ARENA, _LARGEST_ARENA),
        "measured": _placed_by_litert(source),
    }


def _all_tensor_bytes(source: TfliteSource) -> int:
    """Return a bound on any plan's extent: all tensors side by side."""
    total = 0
    for subgraph, shapes in zip(source.file.subgraphs, source.shapes.of, strict=True):
        for tensor, shape in zip(subgraph.tensors, shapes, strict=True):
            size = max(tensor.type.bits // 8, 1)
            for n in shape:
                size *= max(n, 1)
            total += size + 16
    return 2 * total


def _placed_by_litert(source: TfliteSource) -> list[int]:
    """Return the tensors of the main graph that lie in LiteRT's arena."""
    return [
        i
        for i, tensor in enumerate(source.file.subgraphs[0].tensors)
        if not tensor.data_bytes
        and not tensor.is_variable
        and tensor.type.name not in ("resource", "variant", "string")
    ]


def _last_words(stderr: str) -> str:
    """Return what the runtime said last, for the message: usually the reason."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(("INFO", "Traceback", "File"))]
    return f" ({lines[-1][:160]})" if lines else ""
