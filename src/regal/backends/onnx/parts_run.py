"""Run a partitioned model with ONNX Runtime: one thread per device, values go as they are made."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from regal.backends.onnx.parts import read_parts
from regal.errors import BackendError
from regal.frontends.onnx.session import session_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from onnxruntime import InferenceSession

    from regal.backends.onnx.parts import Part, Parts

# What a session takes and gives: an OrtValue, or a list or dict for what is no tensor.
Value = Any


@dataclass(frozen=True, slots=True)
class PartsSession:
    """The sessions of all parts of a model, in the order of `parts.parts`."""

    parts: Parts
    sessions: tuple[InferenceSession, ...]

    def run(self, feeds: Mapping[str, Value]) -> dict[str, Value]:
        """Return output name -> value.

        Every device runs its parts in order, in a thread of its own, and waits for the
        values that others make.

        Args:
            feeds: input name -> numpy array (or OrtValue, or what ONNX Runtime takes).

        Raises:
            BackendError: an input is missing.
        """
        missing = [name for name in self.parts.inputs if name not in feeds]
        if missing:
            raise BackendError(f"input '{missing[0]}' is missing; expected {self.parts.inputs}")
        values = _Values(self.parts, feeds)
        pools = {part.device: ThreadPoolExecutor(1) for part in self.parts.parts}
        done: list[Future[None]] = []

        def run_one(number: int) -> None:
            part = self.parts.parts[number]
            for maker in sorted({maker for _, maker in part.inputs if maker >= 0}):
                done[maker].result()
            inputs = {name: values.held[maker, name] for name, maker in part.inputs}
            values.put(number, run_part(self.sessions[number], part, inputs))
            values.drop(part.inputs)

        try:
            for number, part in enumerate(self.parts.parts):
                done.append(pools[part.device].submit(run_one, number))
            for future in done:
                future.result()
        finally:
            for pool in pools.values():
                pool.shutdown()
        return {name: as_array(values.held[maker, name]) for name, maker in self.parts.outputs}


class _Values:
    """Values between parts, by (part that made it, name); each goes with its last reader."""

    def __init__(self, parts: Parts, feeds: Mapping[str, Value]) -> None:
        self.held: dict[tuple[int, str], Value] = {
            (-1, name): as_value(feeds[name]) for name in parts.inputs
        }
        self._readers = Counter(
            (maker, name) for part in parts.parts for name, maker in part.inputs
        )
        self._readers.update((maker, name) for name, maker in parts.outputs)
        self._lock = Lock()

    def put(self, number: int, results: Mapping[str, Value]) -> None:
        self.held.update({(number, name): value for name, value in results.items()})

    def drop(self, inputs: Sequence[tuple[str, int]]) -> None:
        """Note that one reader of each of `inputs` is done."""
        with self._lock:
            for name, maker in inputs:
                self._readers[maker, name] -= 1
                if not self._readers[maker, name]:
                    del self.held[maker, name]


def open_parts(
    index: Path,
    *,
    threads: int = 1,
    providers: Mapping[str, Sequence[str]] | None = None,
) -> PartsSession:
    """Return sessions for the parts that the index file lists; they lie beside it.

    Args:
        index: the STEM.parts.json of a partitioned model.
        threads: within an operator, per device.
        providers: device -> execution providers; the CPU's where a device is not named.

    Raises:
        ModelError: the index is broken.
    """
    import onnxruntime

    parts = read_parts(index)
    chosen = providers or {}
    sessions = tuple(
        onnxruntime.InferenceSession(
            str(index.with_name(part.file)),
            session_options(threads=threads),
            providers=list(chosen.get(parts.devices[part.device], ("CPUExecutionProvider",))),
        )
        for part in parts.parts
    )
    return PartsSession(parts, sessions)


def run_part(
    session: InferenceSession, part: Part, inputs: Mapping[str, Value]
) -> dict[str, Value]:
    """Return the values that a part gives, by name."""
    import numpy as np
    import onnxruntime

    names = list(part.outputs)
    values = (*session.get_inputs(), *session.get_outputs())
    if all(value.type.startswith("tensor(") for value in values):
        return dict(zip(names, session.run_with_ort_values(names, dict(inputs)), strict=True))
    results = session.run(names, {name: as_array(value) for name, value in inputs.items()})
    ort = onnxruntime.OrtValue
    return {
        name: ort.ortvalue_from_numpy(value) if isinstance(value, np.ndarray) else value
        for name, value in zip(names, results, strict=True)
    }


def as_value(value: Value) -> Value:
    """Return a tensor as the runtime holds it; what is no tensor stays as it is."""
    import numpy as np
    import onnxruntime

    if isinstance(value, (np.ndarray, np.generic)):
        return onnxruntime.OrtValue.ortvalue_from_numpy(np.asarray(value, order="C"))
    return value


def as_array(value: Value) -> Value:
    """Return a value as numpy has it; a tensor of a type that numpy lacks stays as it is."""
    import onnxruntime

    if not isinstance(value, onnxruntime.OrtValue):
        return value
    try:
        return value.numpy()
    except RuntimeError:
        return value
