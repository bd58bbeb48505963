"""Child process: run one .tflite model in one runtime and write down what it did.

Runtimes abort the whole process on some models, and LiteRT may crash after a correct result.
So this runs apart, writes its result as soon as it has it, and the parent judges the file.

    python -m regal.backends.tflite.runner REQUEST.json

The request holds `runtime` ("tflm" or "litert"), `model`, `result` (paths), `seed`,
`invocations`, `inputs` per entry (see `inputs.py`), `signatures`, `arena_bytes` and, for
LiteRT, `measured`: the tensors that count in the span.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regal.backends.tflite.inputs import InputSpec, values_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    Array = NDArray[Any]

Request = dict[str, Any]


def main() -> None:
    """Run the request named on the command line."""
    request: Request = json.loads(Path(sys.argv[1]).read_text())
    run = {"tflm": _run_tflm, "litert": _run_litert}[request["runtime"]]
    try:
        result = run(request)
    except (RuntimeError, ValueError, MemoryError) as error:
        result = {"error": " ".join(str(error).split())[:300]}
    except ImportError as error:
        result = {"error": f"not installed: {error.name}"}
    _write(Path(request["result"]), result)
    # Neither runtime is sure to survive its own destruction.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _write(path: Path, result: Mapping[str, Any]) -> None:
    partial = path.with_suffix(".part")
    partial.write_text(json.dumps(result))
    partial.replace(path)


def _specs(request: Request) -> list[list[InputSpec]]:
    return [
        [InputSpec(**{**spec, "shape": tuple(spec["shape"])}) for spec in entry]
        for entry in request["inputs"]
    ]


def _run_tflm(request: Request) -> dict[str, Any]:
    from tflite_micro import runtime

    model = Path(request["model"]).read_bytes()
    interpreter = runtime.Interpreter.from_bytes(
        model,
        arena_size=request["arena_bytes"],
        intrepreter_config=runtime.InterpreterConfig.kAllocationRecording,
    )
    if not request["invocations"]:
        interpreter.print_allocations()
        return {"digests": []}
    (specs, *_) = _specs(request)
    digests = []
    for invocation in range(request["invocations"]):
        for position, spec in enumerate(specs):
            value = values_of(spec, request["seed"], 0, invocation, position)
            interpreter.set_input(value, position)
        interpreter.invoke()
        if invocation == 0:
            interpreter.print_allocations()
        digests.append(
            [_digest(interpreter.get_output(i)) for i in range(request["n_outputs"])]
        )
    return {"digests": digests}


def _run_litert(request: Request) -> dict[str, Any]:
    from ai_edge_litert import interpreter as litert

    interpreter = litert.Interpreter(
        model_path=request["model"],
        num_threads=1,
        experimental_op_resolver_type=litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    entries = _specs(request)
    inputs = interpreter.get_input_details()
    for detail, spec in zip(inputs, entries[0], strict=True):
        if tuple(detail["shape"]) != spec.shape:
            interpreter.resize_tensor_input(detail["index"], list(spec.shape))
    interpreter.allocate_tensors()
    outputs = [detail["index"] for detail in interpreter.get_output_details()]
    signatures = [interpreter.get_signature_runner(key) for key in request["signatures"]]
    digests = []
    for invocation in range(request["invocations"]):
        for position, (detail, spec) in enumerate(zip(inputs, entries[0], strict=True)):
            value = values_of(spec, request["seed"], 0, invocation, position)
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        found = [_digest(interpreter.get_tensor(index)) for index in outputs]
        for number, (run, specs) in enumerate(zip(signatures, entries[1:], strict=True), 1):
            found += _signature_digests(run, specs, request["seed"], number, invocation)
        digests.append(found)
    result = {"digests": digests}
    _write(Path(request["result"]), result)  # the outputs are safe, whatever follows
    return {**result, "span_bytes": _span(interpreter, request["measured"])}


def _signature_digests(
    run: Callable[..., Mapping[str, Array]],
    specs: list[InputSpec],
    seed: int,
    entry: int,
    invocation: int,
) -> list[str]:
    values = {
        spec.argument: values_of(spec, seed, entry, invocation, position)
        for position, spec in enumerate(specs)
    }
    return [_digest(value) for _, value in sorted(run(**values).items())]


def _digest(value: Array) -> str:
    data = value.tobytes() if value.dtype != object else repr(value.tolist()).encode()
    head = f"{value.dtype} {value.shape} ".encode()
    return hashlib.sha256(head + data).hexdigest()[:16]


def _span(interpreter: Any, measured: list[int]) -> int:
    """Return the extent of LiteRT's arena: from the first to the last byte of its tensors.

    Tensors that LiteRT sized at run time live on the heap, far away: the extent is that of
    the cluster with most bytes. Buffers of kernels (no name) are in the arena too.
    """
    wanted = set(measured)
    ranges = []
    for detail in interpreter.get_tensor_details():
        if detail["index"] not in wanted and detail["name"]:
            continue
        try:
            view = interpreter.tensor(detail["index"])()
        except ValueError:
            continue
        if view is None or not hasattr(view, "__array_interface__") or view.nbytes == 0:
            continue
        ranges.append((int(view.__array_interface__["data"][0]), int(view.nbytes)))
    widest = max((size for _, size in ranges), default=0)
    clusters: list[tuple[int, int, int]] = []  # first byte, end, bytes in all
    for start, size in sorted(ranges):
        if clusters and start - clusters[-1][1] <= max(widest, 1 << 20):
            first, end, total = clusters[-1]
            clusters[-1] = (first, max(end, start + size), total + size)
        else:
            clusters.append((start, start + size, size))
    first, end, _ = max(clusters, key=lambda c: c[2], default=(0, 0, 0))
    return end - first


if __name__ == "__main__":
    main()
