"""What runs in a child process: TensorFlow's own graph code, which aborts on some bad graphs.

Usage: python -m regal.frontends.tensorflow.child, with frames on stdin and stdout. A request is
one letter, the length of its data in 8 bytes (little endian), and the data:

    O             all operators that TensorFlow knows -> OpList
    I GraphDef    shapes of all results by grappler's static inference -> Inferred
    C GraphDef    what TensorFlow's importer says against the graph, or nothing -> text

A reply is its length in 8 bytes, and the data.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import resource
import struct
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from regal.frontends.tensorflow.schema import Proto, new, parse

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_MEMORY = 16 << 30  # bytes of address space; a hostile graph could ask for any amount
REFUSALS = (RuntimeError, ValueError, TypeError, MemoryError)


class RefusedError(RuntimeError):
    """What TensorFlow's native code raises; it hands over (node, operator, message, ...)."""

    def __init__(self, node: object = None, op: object = None, text: str = "", *_: object) -> None:
        super().__init__(text or str(op or node))


def main() -> None:
    """Answer requests until stdin ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    # TensorFlow may print; replies keep a channel of their own.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    tensorflow = _native_modules()
    answers: dict[bytes, Callable[[bytes], bytes]] = {
        b"O": lambda _: _all_ops(tensorflow),
        b"I": lambda data: _infer(tensorflow, data),
        b"C": lambda data: _import_error(tensorflow, data),
    }
    while letter := sys.stdin.buffer.read(1):
        (length,) = struct.unpack("<q", _read(sys.stdin.buffer, 8))
        reply = answers[letter](_read(sys.stdin.buffer, length))
        replies.write(struct.pack("<q", len(reply)) + reply)
        replies.flush()
    # Tearing TensorFlow down takes time and may crash; everything is said by now.
    os._exit(0)


def _read(stream: BinaryIO, length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise EOFError("the parent is gone")
    return data


def _native_modules() -> types.SimpleNamespace:
    """Return the three native modules that are used.

    Importing tensorflow takes 3 to 8 seconds, nearly all of it for Python code that is not
    needed here; its native modules alone take 0.3. So its packages are replaced by empty ones
    with the same path. Should a version need its packages, the whole is imported.
    """
    try:
        _add_empty_packages()
        modules = _import_native()
        registry = importlib.import_module("tensorflow.python._pywrap_py_exception_registry")
        registry.PyExceptionRegistry_Init(dict.fromkeys(range(1, 17), RefusedError))
        modules.refusals = (*REFUSALS, RefusedError)
    except (ImportError, AttributeError):
        for name in [name for name in sys.modules if name.split(".")[0] == "tensorflow"]:
            del sys.modules[name]
        tensorflow = importlib.import_module("tensorflow")
        modules = _import_native()
        modules.refusals = (*REFUSALS, tensorflow.errors.OpError)
    return modules


def _add_empty_packages() -> None:
    spec = importlib.util.find_spec("tensorflow")
    if spec is None or spec.origin is None:
        raise ImportError("tensorflow is not installed")
    folder = Path(spec.origin).parent
    for name in ("tensorflow", "tensorflow.python"):
        package = types.ModuleType(name)
        package.__path__ = [str(folder.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = package


def _import_native() -> types.SimpleNamespace:
    return types.SimpleNamespace(
        session=importlib.import_module("tensorflow.python.client._pywrap_tf_session"),
        item=importlib.import_module("tensorflow.python.grappler._pywrap_tf_item"),
    )


def _all_ops(tensorflow: Any) -> bytes:
    data: bytes = tensorflow.session.TF_GetBuffer(tensorflow.session.TF_GetAllOpList())
    return data


def _infer(tensorflow: Any, data: bytes) -> bytes:
    graph = parse("GraphDef", data)
    meta = new("MetaGraphDef")
    meta.graph_def.CopyFrom(graph)
    # Grappler wants to know what is fetched; it keeps every node all the same.
    if graph.node:
        meta.collection_def["train_op"].node_list.value.append(graph.node[-1].name)
    result: Proto = new("Inferred")
    try:
        item = tensorflow.item.TF_NewItem(meta.SerializeToString(), True, True)
        for name, properties in tensorflow.item.TF_GetOpProperties(item).items():
            result.nodes[name].properties.extend(properties)
    except tensorflow.refusals as error:
        result.error = str(error) or type(error).__name__
    answer: bytes = result.SerializeToString()
    return answer


def _import_error(tensorflow: Any, data: bytes) -> bytes:
    session = tensorflow.session
    options = session.TF_NewImportGraphDefOptions()
    session.TF_ImportGraphDefOptionsSetValidateColocationConstraints(options, False)
    buffer = session.TF_NewBufferFromString(data)
    try:
        session.TF_GraphImportGraphDefWithResults(session.PyGraph(), buffer, options)
    except tensorflow.refusals as error:
        return str(error).encode()
    return b""


if __name__ == "__main__":
    main()
