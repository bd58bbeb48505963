"""Ask TensorFlow's native code, which runs in a child process: it aborts on some bad graphs."""

from __future__ import annotations

import importlib.util
import re
import struct
import subprocess
import tempfile
import threading
from typing import IO, TYPE_CHECKING, Self

from regal.child import child_environment, end_of, module_command
from regal.errors import BackendError, ModelError
from regal.frontends.tensorflow.schema import Proto, parse

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

LONGEST_ANSWER = 120.0  # seconds; inference takes 0.02 per thousand nodes


def require_tensorflow() -> None:
    """Raise unless tensorflow is installed; it is not imported.

    Raises:
        BackendError: names the extra to install.
    """
    if importlib.util.find_spec("tensorflow") is None:
        raise BackendError(
            "TensorFlow files need tensorflow, which is not installed"
            " - pip install 'regal[tensorflow]'"
        )


class NativeTensorFlow:
    """A child process that answers questions about graphs; use it in a `with` statement.

    A crash or a time-out is a `ModelError`: a graph that TensorFlow cannot survive is broken.
    """

    def __init__(self, timeout_s: float = LONGEST_ANSWER) -> None:
        require_tensorflow()
        self._timeout_s = timeout_s
        self._log = tempfile.TemporaryFile()
        environment = child_environment() | {"TF_CPP_MIN_LOG_LEVEL": "3"}
        self._process = subprocess.Popen(
            module_command("regal.frontends.tensorflow.child"),
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )

    def __enter__(self) -> Self:
        """Return this process."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process; a crash at its end is nobody's business."""
        self._process.kill()
        self._process.communicate()
        self._log.close()

    def op_defs(self) -> Mapping[str, Proto]:
        """Return the definition of every operator that TensorFlow knows."""
        return {op.name: op for op in parse("OpList", self._ask(b"O", b"")).op}

    def infer(self, graph: Proto) -> Mapping[str, list[Proto]]:
        """Return node -> properties of its results: dtype, shape, and value if it is known.

        Args:
            graph: a GraphDef without functions; its shapes are TensorFlow's to find.

        Raises:
            ModelError: TensorFlow refuses the graph.

        Cost: 0.1 s for 6,000 nodes.
        """
        reply = parse("Inferred", self._ask(b"I", graph.SerializeToString()))
        if reply.error:
            raise ModelError(f"TensorFlow refuses the graph: {one_line(reply.error)}")
        return {
            name: [parse("TensorProperties", data) for data in outputs.properties]
            for name, outputs in reply.nodes.items()
        }

    def import_error(self, graph: Proto) -> str:
        """Return what TensorFlow's importer says against `graph`; "" if it takes it."""
        return one_line(self._ask(b"C", graph.SerializeToString()).decode(errors="replace"))

    def _ask(self, letter: bytes, data: bytes) -> bytes:
        watch = threading.Timer(self._timeout_s, self._process.kill)
        watch.start()
        try:
            assert_pipe(self._process.stdin).write(letter + struct.pack("<q", len(data)) + data)
            assert_pipe(self._process.stdin).flush()
            output = assert_pipe(self._process.stdout)
            head = output.read(8)
            length = struct.unpack("<q", head)[0] if len(head) == 8 else 0
            reply = output.read(length)
            if len(head) == 8 and len(reply) == length:
                return reply
        except BrokenPipeError:
            pass  # it died before it could read
        finally:
            watch.cancel()
            late = watch.finished.is_set() and not watch.is_alive()
        raise ModelError(f"TensorFlow {self._end(late=late)} while reading the graph")

    def _end(self, *, late: bool) -> str:
        status = self._process.wait()
        if late and status == -9:
            return f"did not answer within {self._timeout_s:g} s"
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").splitlines()
        # A failed check begins with F; a Python error stands in the last line.
        said = [line for line in lines if re.match(r"F\d{4} ", line)] or lines[-1:]
        reason = one_line(re.sub(r"^F\d+ \S+ +\d+ ", "", said[0])) if said else ""
        return (end_of(status) or "ended") + (f" ({reason})" if reason else "")


def assert_pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    """Return a pipe of the child, which was asked for."""
    if pipe is None:
        raise BackendError("the child process of TensorFlow has no pipe")
    return pipe


def one_line(text: str) -> str:
    """Return a message of TensorFlow without line breaks, cut where it gets long."""
    return " ".join(text.split())[:300]
