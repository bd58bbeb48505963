"""LiteRT's C interface, as far as profiling needs it: its Python package leaves the profiler out.

Source: litert/c/*.h of google-ai-edge/LiteRT (exported by libLiteRt.so under version VERS_1.0).
Runs in child processes only: a wrong call ends the process.
"""

from __future__ import annotations

import ctypes
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_CPU: Final = 1  # kLiteRtHwAcceleratorCpu
_WRITE: Final = 1  # kLiteRtTensorBufferLockModeWrite
_OPERATOR: Final = 2  # tflite::Profiler::EventType::OPERATOR_INVOKE_EVENT
_TENSOR_TYPE_BYTES: Final = 1024  # LiteRtRankedTensorType takes less
_free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class LiteRtError(RuntimeError):
    """A call was refused."""


class Event(ctypes.Structure):
    """ProfiledEventData of litert_profiler_event.h."""

    _fields_ = (
        ("tag", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("start_us", ctypes.c_uint64),
        ("elapsed_us", ctypes.c_uint64),
        ("memory", ctypes.c_size_t * 6),
        ("op", ctypes.c_uint64),
        ("subgraph", ctypes.c_uint64),
        ("source", ctypes.c_int),
    )


class CompiledModel:
    """One signature of a model, ready to run on plain kernels, without delegates.

    Args:
        path: of the .tflite file.
        signature: its number in the file; 0 where the file has none.
        threads: within a kernel.
        profiled: whether `op_events` can be read.

    Raises:
        LiteRtError: names the call that LiteRT refused.
    """

    def __init__(self, path: str, signature: int, threads: int, *, profiled: bool) -> None:
        self._library = ctypes.CDLL(_library_path())
        self._signature = ctypes.c_size_t(signature)
        self._environment = self._made("LiteRtCreateEnvironment", 0, None)
        self._model = self._made("LiteRtCreateModelFromFile", self._environment, path.encode())
        self._kept: list[object] = []  # what LiteRT keeps pointers to
        options = self._made("LiteRtCreateOptions")
        self._call("LiteRtSetOptionsHardwareAccelerators", options, _CPU)
        # Options of the parts of LiteRT are TOML texts.
        self._add_options(
            options, b"xnnpack", f'num_threads = {threads}\nkernel_mode = "builtin"\n'
        )
        if profiled:
            self._add_options(options, b"runtime_options_string", "enable_profiling = true\n")
        self._compiled = self._made(
            "LiteRtCreateCompiledModel", self._environment, self._model, options
        )
        self._profiler = (
            self._made("LiteRtCompiledModelGetProfiler", self._compiled) if profiled else None
        )
        self._entry = self._made("LiteRtGetModelSignature", self._model, self._signature)
        self._inputs = self._buffers("Input")
        self._outputs = self._buffers("Output")

    def input_tensors(self) -> list[int]:
        """Return the number in its subgraph of each input's tensor."""
        numbers = []
        for tensor, _ in self._inputs:
            number = ctypes.c_uint32()
            self._call("LiteRtGetTensorIndex", tensor, ctypes.byref(number))
            numbers.append(int(number.value))
        return numbers

    def set_inputs(self, values: Sequence[bytes]) -> None:
        """Copy the values of all inputs, in the sequence of `input_tensors`."""
        for (_, buffer), value in zip(self._inputs, values, strict=True):
            size = ctypes.c_size_t()
            self._call("LiteRtGetTensorBufferPackedSize", buffer, ctypes.byref(size))
            if size.value != len(value):
                raise LiteRtError(f"an input takes {size.value} bytes, {len(value)} were made")
            address = ctypes.c_void_p()
            self._call("LiteRtLockTensorBuffer", buffer, ctypes.byref(address), _WRITE)
            ctypes.memmove(address, value, len(value))
            self._call("LiteRtUnlockTensorBuffer", buffer)

    def run(self) -> None:
        """Run once."""
        inputs, outputs = _array(self._inputs), _array(self._outputs)
        if self._profiler is not None:
            self._call("LiteRtResetProfiler", self._profiler)
            self._call("LiteRtStartProfiler", self._profiler)
        self._call(
            "LiteRtRunCompiledModel", self._compiled, self._signature,
            ctypes.c_size_t(len(inputs)), inputs, ctypes.c_size_t(len(outputs)), outputs,
        )  # fmt: skip

    def op_events(self) -> list[tuple[int, int, int]]:
        """Return (subgraph, op, us) of every op of the last run, in the order of running."""
        count = ctypes.c_int()
        self._call("LiteRtGetNumProfilerEvents", self._profiler, ctypes.byref(count))
        events = (Event * count.value)()
        self._call("LiteRtGetProfilerEvents", self._profiler, count, events)
        return [
            (int(event.subgraph), int(event.op), int(event.elapsed_us))
            for event in events
            if event.type == _OPERATOR
        ]

    def _buffers(self, side: str) -> list[tuple[ctypes.c_void_p, ctypes.c_void_p]]:
        """Return the tensor and the buffer of every input or output."""
        count = ctypes.c_size_t()
        self._call(f"LiteRtGetNumSignature{side}s", self._entry, ctypes.byref(count))
        buffers = []
        for i in range(count.value):
            number = ctypes.c_size_t(i)
            tensor = self._made(f"LiteRtGetSignature{side}TensorByIndex", self._entry, number)
            kind = ctypes.create_string_buffer(_TENSOR_TYPE_BYTES)
            self._call("LiteRtGetRankedTensorType", tensor, kind)
            needs = self._made(
                f"LiteRtGetCompiledModel{side}BufferRequirements",
                self._compiled,
                self._signature,
                number,
            )
            buffer = self._made(
                "LiteRtCreateManagedTensorBufferFromRequirements", self._environment, kind, needs
            )
            buffers.append((tensor, buffer))
        return buffers

    def _add_options(self, options: ctypes.c_void_p, name: bytes, text: str) -> None:
        payload = ctypes.create_string_buffer(text.encode())
        keeper = _free(lambda _: None)  # Python owns the payload
        self._kept += [payload, keeper]
        part = self._made("LiteRtCreateOpaqueOptions", name, payload, keeper)
        self._call("LiteRtAddOpaqueOptions", options, part)

    def _made(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        """Return the handle that a call writes behind its last pointer."""
        handle = ctypes.c_void_p()
        self._call(name, *arguments, ctypes.byref(handle))
        return handle

    def _call(self, name: str, *arguments: Any) -> None:
        function = getattr(self._library, name, None)
        if function is None:
            raise LiteRtError(f"this LiteRT has no {name}")
        function.restype = ctypes.c_int
        status = function(*arguments)
        if status:
            raise LiteRtError(f"{name} returned status {status}")


def _array(pairs: list[tuple[ctypes.c_void_p, ctypes.c_void_p]]) -> Any:
    return (ctypes.c_void_p * len(pairs))(*(buffer for _, buffer in pairs))


def _library_path() -> str:
    spec = find_spec("ai_edge_litert")
    folders = spec.submodule_search_locations if spec is not None else None
    if not folders:
        raise LiteRtError("ai-edge-litert is not installed: pip install regal[tflite]")
    return str(Path(folders[0], "libLiteRt.so"))
