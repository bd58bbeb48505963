"""Turn a fitted float network into an ONNX model: NCHW, float32, opset 17."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from tools.models.network import same_padding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx import ModelProto, NodeProto, ValueInfoProto

    from tools.models.fit import FittedNetwork
    from tools.models.network import Node, Shape
    from tools.models.random_numbers import Array

OPSET = 17
IR_VERSION = 8
_ONNX_AXIS = {0: 0, 1: 2, 2: 3, 3: 1, -1: 1}  # NHWC axis -> NCHW axis

Attributes = dict[str, "int | float | str | Sequence[int]"]


def write_onnx(fitted: FittedNetwork, order: Sequence[Node]) -> ModelProto:
    """Return the float model whose nodes stand in `order`.

    Raises:
        ValueError: the network has state variables, which ONNX does not.
    """
    network = fitted.network
    if network.variables:
        raise ValueError(f"network {network.name}: has state, ONNX files do not")
    graph = _Graph(fitted)
    for node in order:
        graph.write(node)
    proto = helper.make_graph(
        graph.nodes,
        network.name,
        [_value_info(network.input, network.shapes[network.input])],
        [_value_info(network.output, network.shapes[network.output])],
        initializer=graph.initializers,
    )
    opset = helper.make_opsetid("", OPSET)
    return helper.make_model(proto, opset_imports=[opset], ir_version=IR_VERSION)


def channels_first(shape: Shape) -> Shape:
    """Return the shape with batch 1 and, where it has rows and columns, channels first."""
    return (1, shape[2], shape[0], shape[1]) if len(shape) == 3 else (1, *shape)


def _value_info(name: str, shape: Shape) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, channels_first(shape))


@dataclass(slots=True)
class _Graph:
    """The nodes and initializers while they are written."""

    fitted: FittedNetwork
    nodes: list[NodeProto] = field(default_factory=list)
    initializers: list[TensorProto] = field(default_factory=list)

    def write(self, node: Node) -> None:
        """Add the ONNX nodes of one layer: itself, then its fused ReLU."""
        makers = {
            "conv": self._conv, "depthwise": self._conv, "dense": self._dense,
            "avg_pool": self._pool, "max_pool": self._pool, "upsample": self._upsample,
            "pad": self._pad, "slice": self._slice, "split": self._split,
        }  # fmt: skip
        output = node.outputs[0] if not node.relu else f"{node.outputs[0]}/before_relu"
        if node.kind in makers:
            makers[node.kind](node, output)
        elif node.kind == "mean":
            self._node("GlobalAveragePool", node, [f"{output}/pooled"], node.inputs, {})
            self._node("Flatten", node, [output], [f"{output}/pooled"], {"axis": 1})
        else:
            kind, attributes = _PLAIN_KINDS[node.kind]
            if node.kind == "concat":
                attributes = {"axis": _ONNX_AXIS[node.axis]}
            self._node(kind, node, [output], node.inputs, attributes)
        if node.relu:
            self._node("Relu", node, [node.outputs[0]], [output], {})

    def _node(
        self,
        kind: str,
        node: Node,
        outputs: Sequence[str],
        inputs: Sequence[str],
        attributes: Attributes,
    ) -> None:
        proto = helper.make_node(kind, list(inputs), list(outputs), f"{node.name}/{kind}")
        # Sorted: the same bytes whatever the order of the dictionary.
        for name in sorted(attributes):
            proto.attribute.append(helper.make_attribute(name, attributes[name]))
        self.nodes.append(proto)

    def _constant(self, name: str, data: Array, dtype: str = "float32") -> str:
        array = np.ascontiguousarray(data, dtype=dtype)
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def _integers(self, name: str, data: Sequence[int]) -> str:
        return self._constant(name, np.asarray(data), "int64")

    def _window(self, node: Node) -> Attributes:
        shape = self.fitted.network.shapes[node.inputs[0]]
        rows, columns = (0, 0), (0, 0)
        if node.padding == "same":
            rows = same_padding(shape[0], node.kernel[0], node.stride)
            columns = same_padding(shape[1], node.kernel[1], node.stride)
        return {
            "kernel_shape": node.kernel,
            "strides": (node.stride, node.stride),
            "pads": (rows[0], columns[0], rows[1], columns[1]),
        }

    def _conv(self, node: Node, output: str) -> None:
        weight, bias = self.fitted.weights[node.name]
        attributes = self._window(node)
        if node.kind == "depthwise":
            stored = weight.transpose(2, 0, 1)[:, np.newaxis]
            attributes["group"] = weight.shape[-1]
        else:
            stored = weight.transpose(3, 2, 0, 1)
        inputs = [node.inputs[0], self._constant(f"{node.name}/weight", stored)]
        if node.normalize:
            inputs.append(self._constant(f"{node.name}/bias", bias))
        self._node("Conv", node, [output], inputs, attributes)

    def _dense(self, node: Node, output: str) -> None:
        weight, bias = self.fitted.weights[node.name]
        inputs = [
            node.inputs[0],
            self._constant(f"{node.name}/weight", weight.T),
            self._constant(f"{node.name}/bias", bias),
        ]
        self._node("Gemm", node, [output], inputs, {"transB": 1})

    def _pool(self, node: Node, output: str) -> None:
        kind = "MaxPool" if node.kind == "max_pool" else "AveragePool"
        self._node(kind, node, [output], node.inputs, self._window(node))

    def _upsample(self, node: Node, output: str) -> None:
        scales = self._constant(f"{node.name}/scales", np.array([1.0, 1.0, 2.0, 2.0]))
        attributes: Attributes = {
            "mode": "nearest", "nearest_mode": "floor",
            "coordinate_transformation_mode": "asymmetric",
        }  # fmt: skip
        self._node("Resize", node, [output], [node.inputs[0], "", scales], attributes)

    def _pad(self, node: Node, output: str) -> None:
        pads = self._integers(f"{node.name}/pads", (0, 0, *node.before, 0, 0, *node.after))
        self._node("Pad", node, [output], [node.inputs[0], pads], {"mode": "constant"})

    def _slice(self, node: Node, output: str) -> None:
        starts = self._integers(f"{node.name}/starts", channels_first(node.begin)[1:])
        ends = self._integers(f"{node.name}/ends", channels_first(node.end)[1:])
        axes = self._integers(f"{node.name}/axes", (1, 2, 3))
        self._node("Slice", node, [output], [node.inputs[0], starts, ends, axes], {})

    def _split(self, node: Node, output: str) -> None:
        attributes: Attributes = {"axis": _ONNX_AXIS[node.axis]}
        self._node("Split", node, node.outputs, node.inputs, attributes)


_PLAIN_KINDS: dict[str, tuple[str, Attributes]] = {
    "add": ("Add", {}),
    "concat": ("Concat", {}),
    "relu": ("Relu", {}),
    "softmax": ("Softmax", {"axis": -1}),
    "logistic": ("Sigmoid", {}),
}
