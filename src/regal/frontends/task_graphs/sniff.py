"""Tell task graphs in protobuf form from the models that have the same endings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from regal.frontends.task_graphs.wire import holds_hlo_module

if TYPE_CHECKING:
    from pathlib import Path

HEAD_BYTES = 100_000  # enough to see a node
TEXT_ENDINGS = frozenset({".pbtxt", ".txtpb", ".textproto", ".prototxt"})

NODE = re.compile(rb"^\s*node\s*:?\s*[{<]", re.MULTILINE)
COSTS = re.compile(rb"\b(compute_cost|preceding_node|output_info|control_input)\s*[:{<]")
FRAMEWORK = re.compile(rb"\b(op|op_type|ir_version|input_arg)\s*:\s*[\"'\d]")


def holds_task_graph(path: Path) -> bool:
    """Return whether a file with an ending of another framework is a task graph all the same.

    Raises:
        OSError: the file cannot be read.
    """
    suffix = path.suffix.lower()
    if suffix not in TEXT_ENDINGS and suffix != ".pb":
        return False
    with path.open("rb") as file:
        return is_cost_graph(head := file.read(HEAD_BYTES)) or (
            suffix == ".pb" and holds_hlo_module(head + file.read())
        )


def is_cost_graph(head: bytes) -> bool:
    """Return whether protobuf text is a CostGraphDef, and not a TensorFlow or ONNX graph.

    The nodes of all three have names; those of TensorFlow and ONNX graphs name their op.
    """
    return bool(NODE.search(head) and COSTS.search(head) and not FRAMEWORK.search(head))
