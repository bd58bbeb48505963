"""Ask TensorFlow's native code, which runs in a child process: it aborts on some bad graphs."""

from __future__ import annotations

import importlib.util
import re
import signal
import struct
import subprocess
import tempfile
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from regal.child import child_environment, end_of, module_command
from regal.errors import BackendError, ModelError
from regal.frontends.tensorflow.schema import Proto, parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LONGEST_ANSWER = 120.0  # seconds; inference takes 0.02 per thousand nodes
MOST_CHARACTERS = 300  # of what TensorFlow says


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


@contextmanager
def native_tensorflow(timeout_s: float = LONGEST_ANSWER) -> Iterator[NativeTensorFlow]:
    """Yield TensorFlow in a child process, which ends with the block.

    Args:
        timeout_s: wall time for one answer.

    Raises:
        BackendError: tensorflow is not installed.

    Cost: 0.3 s.
    """
    require_tensorflow()
    command = module_command("regal.frontends.tensorflow.child")
    environment = child_environment() | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    pipe = subprocess.PIPE
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=log) as child,
    ):
        if child.stdin is None or child.stdout is None:
            raise BackendError("the child process of TensorFlow has no pipes")
        try:
            yield NativeTensorFlow(child, child.stdin, child.stdout, log, timeout_s)
        finally:
            # Whatever happens at its end is nobody's business.
            child.kill()


@dataclass(frozen=True, slots=True)
class NativeTensorFlow:
    """A child process that answers questions about graphs.

    A crash or a time-out is a `ModelError`: a graph that TensorFlow cannot survive is broken.
    """

    process: subprocess.Popen[bytes]
    requests: IO[bytes]
    replies: IO[bytes]
    log: IO[bytes]
    timeout_s: float
    known_ops: dict[str, Proto] = field(default_factory=dict)

    def op_defs(self) -> Mapping[str, Proto]:
        """Return the definition of every operator that TensorFlow knows."""
        if not self.known_ops:
            found = parse("OpList", self._ask(b"O", b"")).op
            self.known_ops.update({op.name: op for op in found})
        return self.known_ops

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

    def import_error(self, graph: Proto, timeout_s: float | None = None) -> str:
        """Return what TensorFlow's importer says against `graph`; "" if it takes it.

        Functions cost it time that doubles with every level of calls.
        """
        answer = self._ask(b"C", graph.SerializeToString(), timeout_s)
        return one_line(answer.decode(errors="replace"))

    def _ask(self, letter: bytes, data: bytes, timeout_s: float | None = None) -> bytes:
        timeout_s = timeout_s or self.timeout_s
        is_late = threading.Event()

        def stop() -> None:
            is_late.set()
            self.process.kill()

        watch = threading.Timer(timeout_s, stop)
        watch.daemon = True  # after Ctrl-C nothing waits for it
        try:
            watch.start()
            self.requests.write(letter + struct.pack("<q", len(data)) + data)
            self.requests.flush()
            head = self.replies.read(8)
            length = struct.unpack("<q", head)[0] if len(head) == 8 else 0
            reply = self.replies.read(length)
            if len(head) == 8 and len(reply) == length:
                return reply
        except BrokenPipeError:
            pass  # it died before it could read
        finally:
            watch.cancel()
        end = self._end()
        if is_late.is_set():
            end = f"did not answer within {timeout_s:g} s"
        raise ModelError(f"TensorFlow {end} while reading the graph")

    def _end(self) -> str:
        """Return in words how the process ended, with what it said last."""
        status = self.process.wait()
        self.log.seek(0)
        lines = self.log.read().decode(errors="replace").splitlines()
        # A failed check begins with F; a Python error stands in the last line.
        said = [line for line in lines if re.match(r"F\d{4} ", line)] or lines[-1:]
        reason = re.sub(r"^F\d+ \S+ +\d+ ", "", said[0]) if said else ""
        if not reason or re.match(r"[IW]\d{4} ", reason) or status == -signal.SIGKILL:
            return end_of(status) or "ended"
        return f"{end_of(status) or 'ended'} ({one_line(reason)})"


def one_line(text: str) -> str:
    """Return a message of TensorFlow without line breaks, cut where it gets long."""
    return " ".join(text.split())[:MOST_CHARACTERS]
