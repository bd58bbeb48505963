"""The forms of TensorFlow's files: which message is in them, as bytes or text, packed or not."""

from __future__ import annotations

import gzip
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from regal.errors import BackendError
from regal.frontends.tensorflow.schema import new, parse
from regal.frontends.tensorflow.source import TensorFlowSource

if TYPE_CHECKING:
    from pathlib import Path

    from regal.frontends.tensorflow.schema import Proto
    from regal.graph.types import LoadedModel

TEXT_SUFFIXES = frozenset({".pbtxt", ".textproto", ".prototxt", ".txtpb"})
SERVING = "serve"  # the tag of the graph that is read if a SavedModel has several
_PARTS = ("variables", "assets", "assets.extra", "keras_metadata.pb")  # of a SavedModel folder
# A file of either kind begins with a field that the other does not have, or has as a message.
_KINDS = ("GraphDef", "MetaGraphDef", "SavedModel")


def source_of(model: LoadedModel) -> TensorFlowSource:
    """Return what the frontend left for this backend.

    Raises:
        BackendError: the model is no TensorFlow model.
    """
    if not isinstance(model.source, TensorFlowSource):
        raise BackendError(f"a {model.framework} model cannot be written as TensorFlow")
    return model.source


def copy_of(source: TensorFlowSource) -> Proto:
    """Return a copy of the file's message, free to be changed."""
    message = new(_kind_of(source))
    message.CopyFrom(source.message)
    return message


def graph_of(source: TensorFlowSource, message: Proto) -> Proto:
    """Return the GraphDef in a message of the source's kind."""
    return graph_in(_kind_of(source), message)


def meta_graph_of(source: TensorFlowSource) -> Proto | None:
    """Return the MetaGraphDef of a file, with signatures and collections; None: there is none."""
    return _meta_graph_in(_kind_of(source), source.message)


def graph_in(kind: str, message: Proto) -> Proto:
    """Return the GraphDef in a message: in a SavedModel, that of the graph for serving."""
    meta = _meta_graph_in(kind, message)
    return message if meta is None else meta.graph_def


def _meta_graph_in(kind: str, message: Proto) -> Proto | None:
    if kind == "SavedModel":
        metas = list(message.meta_graphs)
        tagged = [meta for meta in metas if SERVING in meta.meta_info_def.tags]
        return (tagged or metas)[0]
    return message if kind == "MetaGraphDef" else None


def beside(source: TensorFlowSource) -> dict[str, bytes]:
    """Return what lies beside the graph of a SavedModel, by its path in the folder.

    These are variables and assets. The fingerprint is left out: it is that of the old graph.

    Raises:
        BackendError: one cannot be read.
    """
    folder = source.path
    if source.kind != "SavedModel" or folder is None:
        return {}
    if not folder.is_dir():
        folder = folder.parent
    try:
        return {
            str(PurePosixPath(path.relative_to(folder))): path.read_bytes()
            for name in _PARTS
            for path in sorted([folder / name, *(folder / name).rglob("*")])
            if path.is_file()
        }
    except OSError as error:
        raise BackendError(f"cannot read what lies beside the model: {error}") from error


def encoded(data: bytes, out: Path) -> bytes:
    """Return a serialized model in the form that the name of `out` asks for.

    Text for .pbtxt, .textproto, .prototxt and .txtpb; packed if .gz follows.
    """
    suffixes = [suffix.lower() for suffix in out.suffixes]
    is_packed = suffixes[-1:] == [".gz"]
    form = suffixes[:-1] if is_packed else suffixes
    if form and form[-1] in TEXT_SUFFIXES:
        data = text_format.MessageToString(_message_in(data)).encode()
    # Without a time, so that equal models are equal files.
    return gzip.compress(data, mtime=0) if is_packed else data


def _message_in(data: bytes) -> Proto:
    for kind in _KINDS:
        try:
            message = parse(kind, data)
            graph = graph_in(kind, message)
        except (DecodeError, IndexError):
            continue
        if graph.node and all(node.name and node.op.isidentifier() for node in graph.node[:64]):
            return message
    raise BackendError(f"{len(data)} bytes are no TensorFlow graph")


def _kind_of(source: TensorFlowSource) -> str:
    # A Keras model or a function was turned into a GraphDef.
    return source.kind if source.kind in _KINDS else "GraphDef"
