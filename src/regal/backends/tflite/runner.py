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
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regal.backends.tflite.inputs import InputSpec, values_of
from regal.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    Array = NDArray[Any]

Request = dict[str, Any]

_LITERT_ALIGNMENT = 64  # kDefaultTensorAlignment
_NEAR = 4096  # bytes between tensors of one arena, at least


def main() -> None:
    """Run the request named on the command line."""
    request: Request = json.loads(Path(sys.argv[1]).read_text())
    run = {"tflm": _run_tflm, "litert": _run_litert}[request["runtime"]]
    # Neither runtime is sure to survive its own destruction, so none is destroyed.
    alive: list[object] = []
    try:
        result = run(request, alive)
    except (RuntimeError, ValueError, MemoryError) as error:
        result = {"error": " ".join(str(error).split())[:300]}
    except ImportError as error:
        result = {"error": f"not installed: {error.name}"}
    _write(request["result"], result)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _write(path: str, result: Mapping[str, Any]) -> None:
    write_atomically(Path(path), json.dumps(result).encode())


def _specs(request: Request) -> list[list[InputSpec]]:
    return [
        [InputSpec(**{**spec, "shape": tuple(spec["shape"])}) for spec in entry]
        for entry in request["inputs"]
    ]


def _run_tflm(request: Request, alive: list[object]) -> dict[str, Any]:
    runtime: Any = import_module("tflite_micro").runtime

    model = Path(request["model"]).read_bytes()
    interpreter = runtime.Interpreter.from_bytes(
        model,
        arena_size=request["arena_bytes"],
        intrepreter_config=runtime.InterpreterConfig.kAllocationRecording,
    )
    alive.append(interpreter)
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
        digests.append([_digest(interpreter.get_output(i)) for i in range(request["n_outputs"])])
    return {"digests": digests}


def _run_litert(request: Request, alive: list[object]) -> dict[str, Any]:
    litert: Any = import_module("ai_edge_litert.interpreter")

    interpreter = litert.Interpreter(
        model_path=request["model"],
        num_threads=1,
        experimental_op_resolver_type=litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    alive.append(interpreter)
    main_specs, *other_specs = _specs(request)
    inputs = interpreter.get_input_details()
    for detail, spec in zip(inputs, main_specs, strict=True):
        if tuple(detail["shape"]) != spec.shape:
            interpreter.resize_tensor_input(detail["index"], list(spec.shape))
    interpreter.allocate_tensors()
    outputs = [detail["index"] for detail in interpreter.get_output_details()]
    digests = []
    for invocation in range(request["invocations"]):
        for position, (detail, spec) in enumerate(zip(inputs, main_specs, strict=True)):
            value = values_of(spec, request["seed"], 0, invocation, position)
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        digests.append([_digest(interpreter.get_tensor(index)) for index in outputs])
    # After the main graph, because a signature runner keeps the interpreter to itself.
    for entry, (key, specs) in enumerate(zip(request["signatures"], other_specs, strict=True), 1):
        run = interpreter.get_signature_runner(key)
        for invocation, found in enumerate(digests):
            found += _signature_digests(run, specs, request["seed"], entry, invocation)
        del run
    result = {"digests": digests}
    _write(request["result"], result)  # the outputs are safe, whatever follows
    span = _span(interpreter, request["measured"])
    return {**result, **({"span_bytes": span} if span else {})}


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

    Tensors that LiteRT sized at run time live on the heap: some betray themselves by an
    address that is no multiple of 64, others by their distance. The extent is that of the
    cluster with most bytes. Buffers of kernels (no name) are in the arena too.
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
        address = int(view.__array_interface__["data"][0])
        if address % _LITERT_ALIGNMENT == 0:
            ranges.append((address, int(view.nbytes)))
    widest = max((size for _, size in ranges), default=0)
    clusters: list[tuple[int, int, int]] = []  # first byte, end, bytes in all
    for start, size in sorted(ranges):
        if clusters and start - clusters[-1][1] <= max(widest, _NEAR):
            first, end, total = clusters[-1]
            clusters[-1] = (first, max(end, start + size), total + size)
        else:
            clusters.append((start, start + size, size))
    first, end, _ = max(clusters, key=lambda c: c[2], default=(0, 0, 0))
    return end - first


if __name__ == "__main__":
    main()
