"""Turn the bytes of a file into a graph message, whatever its name says."""

from __future__ import annotations

import gzip
import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from regal.errors import ModelError
from regal.frontends.protobuf_text import TENSORFLOW_FIELDS, first_field, is_binary
from regal.frontends.tensorflow.schema import parse
from regal.frontends.tensorflow.text import parse_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from regal.frontends.tensorflow.schema import Proto

# A protobuf message cannot be longer.
LONGEST_FILE = (1 << 31) - 1
SAVED_MODEL_FILES = ("saved_model.pb", "saved_model.pbtxt")
_KINDS = ("SavedModel", "MetaGraphDef", "GraphDef")
_OP = re.compile(r"[A-Za-z_>][\w.>-]*")
_GZIP = b"\x1f\x8b"
# Where this package keeps the targets of functions in a MetaGraph that it makes.
TARGETS = "regal.targets"
WITH_TARGETS = frozenset({"Keras", "Function"})
_SERVING = "serve"  # the tag of the graph that is for inference


@dataclass(frozen=True, slots=True)
class GraphFile:
    """A file's message and the parts of it that make a graph."""

    kind: str  # "SavedModel", "MetaGraphDef" or "GraphDef"; "Keras", "Function": a MetaGraphDef
    message: Proto
    graph: Proto  # the GraphDef in it
    signatures: Mapping[str, Proto]
    targets: tuple[str, ...] = ()  # nodes that run with every signature
    notes: tuple[str, ...] = ()


def read_graph_file(path: Path) -> GraphFile:
    """Return what is in a GraphDef, MetaGraph or SavedModel file, or in a SavedModel folder.

    Binary or text, and compressed or not, is told by the content.

    Raises:
        ModelError: it cannot be read, or is none of these.
    """
    if path.is_dir():
        inside = [path / name for name in SAVED_MODEL_FILES if (path / name).is_file()]
        if not inside:
            raise ModelError(
                f"folder '{path}' is no SavedModel: it has no {' or '.join(SAVED_MODEL_FILES)}"
            )
        return read_graph_file(inside[0])
    data = _bytes_of(path)
    if not data:
        raise ModelError(f"'{path}' is empty")
    try:
        if not is_binary(data):
            return _from_text(path, data.decode())
        return _from_binary(path, data)
    except RecursionError as error:
        raise ModelError(f"'{path}' is nested too deep") from error
    except UnicodeDecodeError as error:
        raise ModelError(
            f"'{path}' is no TensorFlow graph: byte {error.start} is no UTF-8 text"
        ) from None


def _bytes_of(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > LONGEST_FILE:
            raise ModelError(f"'{path}' has {size} bytes; a graph file has at most {LONGEST_FILE}")
        data = path.read_bytes()
        if not data.startswith(_GZIP):
            return data
        with gzip.open(path) as file:
            data = file.read(LONGEST_FILE + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ModelError(f"'{path}' cannot be unpacked: {error}") from None
    except OSError as error:
        raise ModelError(f"cannot read '{path}': {error.strerror or error}") from None
    if len(data) > LONGEST_FILE:
        raise ModelError(f"'{path}' unpacks to more than {LONGEST_FILE} bytes")
    return data


def _from_text(path: Path, text: str) -> GraphFile:
    name, line = first_field(text)
    kind = TENSORFLOW_FIELDS.get(name)
    if kind is None:
        raise ModelError(
            f"'{path}' is no graph as text: line {line} begins with '{name}', which is no field of"
            " a GraphDef, MetaGraphDef, SavedModel or ONNX model"
        )
    try:
        return _graph_file(path, kind, parse_text(kind, text))
    except text_format.ParseError as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelError(f"'{path}' is no {kind} as text: {reason}") from None


def _from_binary(path: Path, data: bytes) -> GraphFile:
    """Return the message in `data`; only one kind makes sense of it."""
    for kind in reversed(_KINDS):
        try:
            message = parse(kind, data)
        except DecodeError:
            continue
        graph = _graph_in(kind, message)
        if graph is not None and _is_plausible(graph):
            return _graph_file(path, kind, message)
    raise ModelError(
        f"'{path}' is no TensorFlow graph: its {len(data)} bytes are no GraphDef, MetaGraphDef"
        " or SavedModel (truncated, corrupt or another format)"
    )


def _is_plausible(graph: Proto) -> bool:
    return bool(graph.node) and all(
        node.name.isprintable() and node.name and _OP.fullmatch(node.op) for node in graph.node[:64]
    )


def _graph_file(path: Path, kind: str, message: Proto) -> GraphFile:
    graph = _graph_in(kind, message)
    if graph is None or not graph.node:
        raise ModelError(f"'{path}' holds a {kind} without nodes")
    return graph_file_of(kind, message)


def graph_file_of(kind: str, message: Proto) -> GraphFile:
    """Return a message that holds a graph, taken apart."""
    if kind == "GraphDef":
        return GraphFile(kind, message, message, {})
    meta = _meta_graph(message) if kind == "SavedModel" else message
    notes: tuple[str, ...] = ()
    if kind == "SavedModel" and len(message.meta_graphs) > 1:
        tags = " ".join(meta.meta_info_def.tags)
        notes = (f"of {len(message.meta_graphs)} graphs, the one with the tags '{tags}' is read",)
    targets: tuple[str, ...] = ()
    if kind in WITH_TARGETS and TARGETS in meta.collection_def:
        targets = tuple(meta.collection_def[TARGETS].node_list.value)
    return GraphFile(kind, message, meta.graph_def, dict(meta.signature_def), targets, notes)


def _graph_in(kind: str, message: Proto) -> Proto | None:
    if kind == "GraphDef":
        return message
    if kind == "MetaGraphDef":
        return message.graph_def
    return _meta_graph(message).graph_def if message.meta_graphs else None


def _meta_graph(saved: Proto) -> Proto:
    tagged = [m for m in saved.meta_graphs if _SERVING in m.meta_info_def.tags]
    return (tagged or list(saved.meta_graphs))[0]
