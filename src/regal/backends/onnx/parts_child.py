"""What runs in a child process: a model, and its parts, in ONNX Runtime on equal inputs.

Usage: python -m regal.backends.onnx.parts_child REQUEST.json RESULT.json
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime as ort

from regal.backends.onnx.parts import read_parts
from regal.backends.onnx.parts_request import PartsRequest, PartsResult
from regal.backends.onnx.parts_run import PartsSession, as_array, as_value, run_part
from regal.files import write_atomically
from regal.frontends.onnx.child import REFUSALS, digest, heap_meter, input_value, one_line
from regal.frontends.onnx.inputs import STYLES
from regal.frontends.onnx.runtime import MOST_MEMORY, RunRequest
from regal.frontends.onnx.session import session_options
from regal.frontends.onnx.trace import read_profile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from regal.backends.onnx.parts import Parts

    Values = dict[str, Any]


def main() -> None:
    """Read the request, run it, and write the result after every step."""
    request_path, result_path = sys.argv[1:]
    request = PartsRequest(**json.loads(Path(request_path).read_text()))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    ort.set_default_logger_severity(4)
    result = PartsResult()
    for _ in _steps(request, result):
        write_atomically(Path(result_path), json.dumps(asdict(result)).encode())
    # A runtime may crash while it is torn down; its result is safe by now.
    sys.stdout.flush()
    os._exit(0)


def _steps(request: PartsRequest, result: PartsResult) -> Iterator[None]:
    """Fill `result`; yield whenever something in it is new."""
    try:
        original = _session(Path(request.original), request.external_folder, file_order=False)
        style, feeds = _first_run(original, request)
    except REFUSALS as error:
        result.reason = one_line(error)
        yield
        return
    result.original_ran = True
    yield
    try:
        whole = _session(Path(request.whole), request.written_folder)
        parted = _parted(read_parts(Path(request.index)), Path(request.index).parent, request)
    except REFUSALS as error:
        result.failure = f"the written model cannot be loaded: {one_line(error)}"
        yield
        return
    for number in range(request.invocations):
        feeds = _feeds(original, request, number, style)
        begin = time.perf_counter()
        expected = _run(original, feeds)
        result.seconds_before.append(time.perf_counter() - begin)
        try:
            failure = difference(expected, _run(whole, feeds), request.tolerance)
            begin = time.perf_counter()
            found = parted.run(feeds)
            result.seconds_after.append(time.perf_counter() - begin)
        except REFUSALS as error:
            result.failure = f"the written model does not run: {one_line(error)}"
            yield
            return
        failure = failure or difference(expected, found, request.tolerance)
        if failure:
            result.failure = f"{failure} in invocation {number}"
            yield
            return
        result.invocations += 1
    yield
    gc.collect()
    gc.disable()  # it would free memory while it is measured
    result.peak_before = _peak_of(original, feeds)
    result.peaks_after = _peaks_of(parted, feeds)
    yield
    if request.named:
        named = _parted(parted.parts, Path(request.named), request, profile=request.named)
        result.out_of_order, result.added_kernels = _out_of_order(named, feeds)
        result.traced = True
        yield


def difference(expected: Values, found: Values, tolerance: float) -> str:
    """Return the first output that differs, in words; "" if none does.

    Types, shapes and bits must be equal; with a tolerance, floating-point numbers may be off
    by that fraction of the largest number of their output.
    """
    if list(expected) != list(found):
        return f"outputs {list(found)} instead of {list(expected)}"
    for name, wanted in expected.items():
        got = found[name]
        if digest(wanted) == digest(got):
            continue
        is_real = isinstance(wanted, np.ndarray) and wanted.dtype.kind == "f"
        if not (is_real and isinstance(got, np.ndarray)) or wanted.shape != got.shape:
            return f"output '{name}' differs"
        scale = float(np.nanmax(np.abs(wanted.astype(np.float64)), initial=0.0))
        gap = np.abs(wanted.astype(np.float64) - got.astype(np.float64))
        if not np.array_equal(np.isnan(wanted), np.isnan(got)):
            return f"output '{name}' differs: not a number in other places"
        worst = float(np.nanmax(gap, initial=0.0))
        if worst > tolerance * scale:
            return f"output '{name}' differs by {worst:.3g} of {scale:.3g}"
    return ""


def _session(
    path: Path, folder: str, *, file_order: bool = True, profile: str = ""
) -> ort.InferenceSession:
    options = session_options(file_order=file_order)
    # A model in memory has no folder of its own.
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
    if profile:
        options.enable_profiling = True
        options.profile_file_prefix = f"{profile}/{path.name}"
    return ort.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])


def _parted(
    parts: Parts, folder: Path, request: PartsRequest, *, profile: str = ""
) -> PartsSession:
    sessions = [
        _session(folder / part.file, request.written_folder, profile=profile)
        for part in parts.parts
    ]
    return PartsSession(parts, tuple(sessions))


def _first_run(session: ort.InferenceSession, request: PartsRequest) -> tuple[str, Values]:
    """Return the way to draw inputs that the model accepts, and such inputs."""
    refusal: BaseException | None = None
    for style in STYLES:
        try:
            feeds = _feeds(session, request, 0, style)
            _run(session, feeds)
        except REFUSALS as error:
            refusal = refusal or error
        else:
            return style, feeds
    raise refusal or ValueError("no inputs")


def _feeds(session: ort.InferenceSession, request: PartsRequest, number: int, style: str) -> Values:
    asked = RunRequest(model="", shapes=request.shapes, seed=request.seed)
    return {node.name: input_value(node, asked, number, style) for node in session.get_inputs()}


def _run(session: ort.InferenceSession, feeds: Values) -> Values:
    names = [output.name for output in session.get_outputs()]
    values = (*session.get_inputs(), *session.get_outputs())
    if not all(value.type.startswith("tensor(") for value in values):
        return dict(zip(names, session.run(names, feeds), strict=True))
    given = {name: as_value(np.asarray(value)) for name, value in feeds.items()}
    results = session.run_with_ort_values(names, given)
    return {name: as_array(value) for name, value in zip(names, results, strict=True)}


def _peak_of(session: ort.InferenceSession, feeds: Values) -> int:
    """Return the most heap that a run takes above the model and its inputs; -1: no meter."""
    begin = heap_meter()()
    _run(session, feeds)
    return begin()


def _peaks_of(parted: PartsSession, feeds: Values) -> list[int]:
    """Return per device the most bytes that it held while the parts ran one after the other.

    A device holds what its parts allocate while they run, measured, and between its parts the
    values that it made or was sent and that it or others still need.
    """
    parts = parted.parts
    last: dict[tuple[int, int, str], int] = {}  # (device, maker, name) -> last part that needs it
    for number, part in enumerate(parts.parts):
        for name, maker in part.inputs:
            if maker >= 0:
                last[part.device, maker, name] = number
                origin = parts.parts[maker].device
                last[origin, maker, name] = max(number, last.get((origin, maker, name), 0))
    for name, maker in parts.outputs:
        if maker >= 0:
            last[parts.parts[maker].device, maker, name] = len(parts.parts)
    given = {name: as_value(value) for name, value in feeds.items()}
    made: dict[tuple[int, str], Any] = {}
    peaks = [0] * len(parts.devices)
    for number, part in enumerate(parts.parts):
        held = sum(
            _bytes_of(made[maker, name])
            for (device, maker, name), until in last.items()
            if device == part.device and maker < number <= until
        )
        inputs = {n: given[n] if maker < 0 else made[maker, n] for n, maker in part.inputs}
        begin = heap_meter()()
        results = run_part(parted.sessions[number], part, inputs)
        taken = begin()
        if taken < 0:
            return []
        made.update({(number, name): value for name, value in results.items()})
        peaks[part.device] = max(peaks[part.device], held + taken)
    return peaks


def _bytes_of(value: Any) -> int:
    if isinstance(value, ort.OrtValue):
        return int(value.tensor_size_in_bytes())
    rows = value if isinstance(value, (list, tuple)) else ()
    return sum(int(np.asarray(row).nbytes) for row in rows)


def _out_of_order(parted: PartsSession, feeds: Values) -> tuple[str, int]:
    """Return the first node that ran out of the order of its part, in words; "" if none.

    The other result is the number of kernels that no node of the parts stands for.
    """
    parted.run(feeds)
    added = 0
    fault = ""
    for part, session in zip(parted.parts.parts, parted.sessions, strict=True):
        seen = read_profile(json.loads(Path(session.end_profiling()).read_text()))
        ran = [position for place, position in seen.order if not place]
        added += seen.strangers
        for step, (wanted, position) in enumerate(zip(sorted(set(ran)), ran, strict=False)):
            if wanted != position and not fault:
                fault = f"'{part.file}' ran node {position} as step {step}, not node {wanted}"
    return fault, added


if __name__ == "__main__":
    main()
