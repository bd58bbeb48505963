"""What runs in a child process: one model in ONNX Runtime, which may crash or never end.

Usage: python -m regal.frontends.onnx.child REQUEST.json RESULT.json
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import re
import resource
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnxruntime as ort
from onnxruntime.capi import onnxruntime_pybind11_state as state

from regal.files import write_atomically
from regal.frontends.onnx.inputs import ELEMENTS_OF_SEQUENCE, STYLES, values
from regal.frontends.onnx.runtime import MOST_MEMORY, RunRequest, RunResult
from regal.frontends.onnx.session import session_options

if TYPE_CHECKING:
    from collections.abc import Callable

# What ONNX Runtime throws through its bindings.
REFUSALS = (
    RuntimeError,
    ValueError,
    TypeError,
    NotImplementedError,
    MemoryError,
    OSError,
    state.Fail,
    state.EPFail,
    state.InvalidArgument,
    state.InvalidGraph,
    state.InvalidProtobuf,
    state.NoSuchFile,
    state.NotImplemented,
    state.RuntimeException,
)


def main() -> None:
    """Read the request, run it, and write the result."""
    request_path, result_path = sys.argv[1:]
    request = RunRequest(**json.loads(Path(request_path).read_text()))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    result = run(request)
    write_atomically(Path(result_path), json.dumps(asdict(result)).encode())
    # A runtime may crash while it is torn down; its result is safe by now.
    sys.stdout.flush()
    os._exit(0)


def run(request: RunRequest) -> RunResult:
    """Return what ONNX Runtime made of the request; a refusal is a result too."""
    ort.set_default_logger_severity(4)
    if not request.invocations:
        try:
            _session(request)
        except REFUSALS as error:
            return RunResult(reason=one_line(error))
        return RunResult(ran=True)
    reason = ""
    for style in (request.style,) if request.style else STYLES:
        try:
            # A new session each time: a profile must not hold a run that failed.
            session = _session(request)
            digests, peak, times = _invoke(session, request, style)
        except REFUSALS as error:
            reason = reason or one_line(error)
            continue
        profile = session.end_profiling() if request.profile_prefix else ""
        return RunResult(
            ran=True,
            style=style,
            digests=digests,
            heap_peak_bytes=peak,
            run_ns=times,
            profile=profile,
        )
    return RunResult(reason=reason)


def _session(request: RunRequest) -> ort.InferenceSession:
    options = session_options(
        file_order=request.file_order, level=request.level, threads=request.threads
    )
    if request.profile_prefix:
        options.enable_profiling = True
        options.profile_file_prefix = request.profile_prefix
    if request.optimized:
        options.optimized_model_filepath = request.optimized
    model: str | bytes = request.model
    if request.external_folder:
        # A model in memory has no folder of its own.
        options.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", request.external_folder
        )
        model = Path(request.model).read_bytes()
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _invoke(
    session: ort.InferenceSession, request: RunRequest, style: str
) -> tuple[list[list[str]], int, list[int]]:
    """Return the digests of all outputs, the most heap that a run took, and the time of each."""
    meter = heap_meter()
    names = [output.name for output in session.get_outputs()]
    values = (*session.get_inputs(), *session.get_outputs())
    are_tensors = all(value.type.startswith("tensor(") for value in values)
    digests: list[list[str]] = []
    peaks: list[int] = []
    times: list[int] = []
    for number in range(request.invocations):
        arrays = {
            node.name: input_value(node, request, number, style) for node in session.get_inputs()
        }
        if not are_tensors:
            begin, start = meter(), time.perf_counter_ns()
            results = session.run(names, arrays)
            times.append(time.perf_counter_ns() - start)
            peaks.append(begin())
            digests.append([digest(result) for result in results])
            continue
        feeds = {name: _tensor(array) for name, array in arrays.items()}
        begin, start = meter(), time.perf_counter_ns()
        outputs = session.run_with_ort_values(names, feeds)
        times.append(time.perf_counter_ns() - start)
        peaks.append(begin())
        digests.append([digest_of_value(output) for output in outputs])
    # The first run also sets up what later runs share.
    return digests, max(peaks[1:] or peaks), times


def heap_meter() -> Callable[[], Callable[[], int]]:
    """Return a function that starts a measurement and returns one that ends it.

    Without the preloaded meter every measurement is -1.
    """
    library = ctypes.CDLL(None)
    if not hasattr(library, "regal_heap_peak"):
        return lambda: lambda: -1
    for function in (library.regal_heap_live, library.regal_heap_peak):
        function.restype = ctypes.c_int64
        function.argtypes = []

    def begin() -> Callable[[], int]:
        before = int(library.regal_heap_live())
        library.regal_heap_reset()
        return lambda: int(library.regal_heap_peak()) - before

    return begin


def input_value(node: ort.NodeArg, request: RunRequest, number: int, style: str) -> object:
    """Return what the input `node` gets in run `number`; None where it is left out."""
    kind = node.type
    if kind.startswith("optional("):
        if style == "absent":
            return None
        kind = kind[len("optional(") : -1]
    shape = request.shapes.get(node.name)
    if shape is None:
        shape = [d if isinstance(d, int) and d >= 0 else 1 for d in node.shape or []]
    seed = request.seed + number
    if kind.startswith("seq(tensor("):
        element = kind[len("seq(tensor(") : -2]
        return [
            _values(f"{node.name}.{i}", element, shape, seed, style)
            for i in range(ELEMENTS_OF_SEQUENCE)
        ]
    if not kind.startswith("tensor("):
        raise ValueError(f"no values are made for input '{node.name}' of type {node.type}")
    return _values(node.name, kind[len("tensor(") : -1], shape, seed, style)


def _values(name: str, kind: str, shape: list[int], seed: int, style: str) -> object:
    array = values(name, kind, shape, seed, style)
    if array is None:
        raise ValueError(f"no values are made for input '{name}' with elements of type {kind}")
    return array


def _tensor(array: object) -> ort.OrtValue:
    return ort.OrtValue.ortvalue_from_numpy(np.asarray(array, order="C"))


def digest_of_value(value: ort.OrtValue) -> str:
    """Return a digest of type, shape and every bit of a tensor."""
    try:
        return digest(value.numpy())
    except REFUSALS:
        # No numpy type, as for bfloat16: take the raw bytes.
        data = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
        text = f"{value.data_type()}{value.shape()}"
        return hashlib.sha256(text.encode() + data).hexdigest()[:16]


def digest(value: object) -> str:
    """Return a digest of type, shape and every bit of an output."""
    if isinstance(value, np.ndarray):
        text = f"{value.dtype}{value.shape}"
        data = repr(value.tolist()).encode() if value.dtype == object else value.tobytes()
        return hashlib.sha256(text.encode() + data).hexdigest()[:16]
    if isinstance(value, (list, tuple)):
        return hashlib.sha256("".join(map(digest, value)).encode()).hexdigest()[:16]
    if isinstance(value, dict):
        return digest([np.array(repr(sorted(value.items())), dtype=object)])
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


def one_line(error: BaseException) -> str:
    """Return the message without the C++ function that it came from."""
    text = re.sub(r"/onnxruntime_src/\S+ [^()]*(\([^()]*\))?( const)? *", "", str(error))
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", text)
    return " ".join(text.split())[:300] or type(error).__name__


if __name__ == "__main__":
    main()
