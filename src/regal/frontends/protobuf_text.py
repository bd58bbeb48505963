"""Tell whose graph a protobuf text is: endings such as .pbtxt are TensorFlow's and ONNX's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

TEXT_SUFFIXES = frozenset({".pbtxt", ".txtpb", ".textproto", ".prototxt"})
HEAD_BYTES = 1 << 16
# The fields with which a text may begin -> TensorFlow's message that has them.
TENSORFLOW_FIELDS = {
    "node": "GraphDef",
    "library": "GraphDef",
    "versions": "GraphDef",
    "version": "GraphDef",
    "debug_info": "GraphDef",
    "meta_info_def": "MetaGraphDef",
    "graph_def": "MetaGraphDef",
    "saver_def": "MetaGraphDef",
    "collection_def": "MetaGraphDef",
    "signature_def": "MetaGraphDef",
    "asset_file_def": "MetaGraphDef",
    "object_graph_def": "MetaGraphDef",
    "saved_model_schema_version": "SavedModel",
    "meta_graphs": "SavedModel",
}
ONNX_FIELDS = frozenset(
    {
        "ir_version",
        "producer_name",
        "producer_version",
        "domain",
        "model_version",
        "doc_string",
        "graph",
        "opset_import",
        "metadata_props",
        "training_info",
        "functions",
        "configuration",
    }
)
_FIRST_FIELD = re.compile(r"(?:\ufeff|\s|#[^\n]*(?:\n|$))*([A-Za-z_]\w*)?")


def first_field(text: str) -> tuple[str, int]:
    """Return the name with which a protobuf text begins, or "", and its line from 1 on."""
    found = _FIRST_FIELD.match(text)
    if found is None:
        return "", 1
    return found[1] or "", text[: found.end()].count("\n") + 1


def may_be_onnx(path: Path) -> bool:
    """Return whether a file with an ending of protobuf text begins as ONNX's do.

    Binary content is left to ONNX's reader, which knows what to say about it.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    field, _ = first_field(head.decode(errors="replace"))
    return field in ONNX_FIELDS or (field not in TENSORFLOW_FIELDS and is_binary(head))


def is_binary(data: bytes) -> bool:
    """Return whether the content of a file is no text."""
    return any(byte < 9 or 13 < byte < 32 for byte in data[:4096])
