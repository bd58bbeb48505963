"""Turn the bytes of a file into a model protobuf that this package can work with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx
from google.protobuf import text_format
from google.protobuf.message import DecodeError

from regal.errors import ModelError

if TYPE_CHECKING:
    from pathlib import Path

TEXT_SUFFIXES = frozenset({".textproto", ".prototxt", ".pbtxt", ".txtpb"})
# A protobuf message cannot be longer; larger models keep their weights in external files.
LONGEST_FILE = (1 << 31) - 1
# The two names of the standard operators.
STANDARD_DOMAINS = ("", "ai.onnx")


def is_text(path: Path) -> bool:
    """Return whether the name of a model file says that it is text."""
    return path.suffix.lower() in TEXT_SUFFIXES


def read_model(path: Path) -> onnx.ModelProto:
    """Return the model in the file `path`: binary, or text if its suffix says so.

    External data is not read.

    Raises:
        ModelError: the file cannot be read, is no ONNX model, or needs a newer onnx.
    """
    try:
        size = path.stat().st_size
        if size > LONGEST_FILE:
            raise ModelError(f"'{path}' has {size} bytes; a model file has at most {LONGEST_FILE}")
        data = path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read '{path}': {error.strerror or error}") from error
    model = _parse_text(path, data) if is_text(path) else _parse(path, data)
    _require_graph(path, model)
    _require_versions(path, model)
    return model


def _parse(path: Path, data: bytes) -> onnx.ModelProto:
    try:
        model: onnx.ModelProto = onnx.ModelProto.FromString(data)
    except DecodeError as error:
        raise ModelError(
            f"'{path}' is not an ONNX model: its {len(data)} bytes are no model protobuf"
            " (truncated, corrupt or another format)"
        ) from error
    return model


def _parse_text(path: Path, data: bytes) -> onnx.ModelProto:
    try:
        model: onnx.ModelProto = text_format.Parse(data.decode(), onnx.ModelProto())
    except (text_format.ParseError, UnicodeDecodeError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelError(f"'{path}' is not an ONNX model as text: {reason}") from error
    return model


def _require_graph(path: Path, model: onnx.ModelProto) -> None:
    if not model.HasField("graph"):
        raise ModelError(f"'{path}' is not an ONNX model: it holds no graph")
    graph = model.graph
    if not (graph.node or graph.output or graph.input or graph.initializer):
        raise ModelError(f"'{path}' is not an ONNX model: its graph is empty")


def _require_versions(path: Path, model: onnx.ModelProto) -> None:
    newest = onnx.defs.onnx_opset_version()
    if model.ir_version > onnx.IR_VERSION:
        raise ModelError(
            f"'{path}' has IR version {model.ir_version}; onnx {onnx.__version__} reads up to"
            f" {onnx.IR_VERSION} - export with an older IR version"
        )
    if not model.opset_import:
        raise ModelError(
            f"'{path}' imports no operator set, so its operators have no meaning"
            " - add an opset_import of ai.onnx"
        )
    for entry in model.opset_import:
        if entry.domain in STANDARD_DOMAINS and not 1 <= entry.version <= newest:
            raise ModelError(
                f"'{path}' imports opset {entry.version} of ai.onnx; onnx {onnx.__version__}"
                f" knows 1 to {newest} - export with a known opset"
            )
