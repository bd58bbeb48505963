"""The attributes of a node that costs and features look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.frontends.tensorflow.ops import dtype_name

if TYPE_CHECKING:
    from regal.frontends.tensorflow.flat import Node
    from regal.frontends.tensorflow.schema import Proto
    from regal.graph.types import AttributeValue

# What decides about the work of a kernel; names are TensorFlow's.
_KEPT = (
    "T", "dtype", "SrcT", "DstT", "Tidx", "N", "adj_x", "adj_y", "axis", "block_size",
    "data_format", "depth_radius", "dilations", "direction", "epsilon", "equation",
    "explicit_paddings", "input_mode", "is_training", "keep_dims", "ksize", "num_groups",
    "num_split", "padding", "rates", "rnn_mode", "strides", "transpose_a", "transpose_b",
    "use_nesterov",
)  # fmt: skip
MOST_NUMBERS = 64


def attributes_of(node: Node) -> dict[str, AttributeValue]:
    """Return the attributes of `node` that matter for costs, and the device that it asks for."""
    found: dict[str, AttributeValue] = {}
    attributes = node.proto.attr
    for key in _KEPT:
        if key in attributes:
            value = _plain(attributes[key])
            if value is not None:
                found[key] = value
    if node.proto.device:
        found["_device"] = node.proto.device
    return found


def _plain(value: Proto) -> AttributeValue | None:
    what = value.WhichOneof("value")
    if what == "type":
        return dtype_name(value.type)
    if what == "s":
        return str(value.s.decode(errors="replace"))
    if what == "i":
        return int(value.i)
    if what == "b":
        return bool(value.b)
    if what == "f":
        return float(value.f)
    if what == "list" and value.list.i and len(value.list.i) <= MOST_NUMBERS:
        return tuple(value.list.i)
    return None
