"""Print what TensorFlow publishes of some ops, as JSON. A process of its own: see the test."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
from tensorflow.python.framework import ops as framework_ops
from tensorflow.python.profiler.internal import flops_registry  # noqa: F401  registers itself

from regal.graph.types import AttributeValue

raw = tf.raw_ops
Build = Callable[[Callable[..., Any]], Any]  # takes `x(shape)`, returns a tensor of the op

CASES: dict[str, Build] = {
    "Conv2D": lambda x: raw.Conv2D(
        input=x(2, 8, 6, 3), filter=x(3, 2, 3, 5), strides=[1, 2, 2, 1], padding="SAME"
    ),
    "Conv2D of two groups": lambda x: raw.Conv2D(
        input=x(2, 8, 6, 4), filter=x(3, 3, 2, 6), strides=[1, 1, 1, 1], padding="VALID"
    ),
    "Conv3D": lambda x: raw.Conv3D(
        input=x(1, 4, 4, 4, 2), filter=x(2, 2, 2, 2, 3), strides=[1] * 5, padding="SAME"
    ),
    "DepthwiseConv2dNative": lambda x: raw.DepthwiseConv2dNative(
        input=x(1, 8, 8, 3), filter=x(3, 3, 3, 2), strides=[1, 1, 1, 1], padding="SAME"
    ),
    "Dilation2D": lambda x: raw.Dilation2D(
        input=x(1, 8, 8, 3), filter=x(3, 2, 3), strides=[1] * 4, rates=[1] * 4, padding="SAME"
    ),
    "Conv2DBackpropInput": lambda x: raw.Conv2DBackpropInput(
        input_sizes=[2, 8, 8, 3], filter=x(3, 3, 3, 5), out_backprop=x(2, 4, 4, 5),
        strides=[1, 2, 2, 1], padding="SAME",
    ),
    "Conv2DBackpropFilter": lambda x: raw.Conv2DBackpropFilter(
        input=x(2, 8, 8, 3), filter_sizes=[3, 3, 3, 5], out_backprop=x(2, 4, 4, 5),
        strides=[1, 2, 2, 1], padding="SAME",
    ),
    "MatMul": lambda x: raw.MatMul(a=x(4, 5), b=x(5, 6)),
    "MatMul with a transposed left side": lambda x: raw.MatMul(
        a=x(5, 4), b=x(5, 6), transpose_a=True
    ),
    "MatMul with a transposed right side": lambda x: raw.MatMul(
        a=x(4, 5), b=x(6, 5), transpose_b=True
    ),
    "BatchMatMulV2": lambda x: raw.BatchMatMulV2(x=x(2, 3, 4, 5), y=x(3, 5, 6)),
    "AvgPool": lambda x: raw.AvgPool(
        value=x(1, 8, 8, 3), ksize=[1, 3, 2, 1], strides=[1, 2, 2, 1], padding="SAME"
    ),
    "MaxPool": lambda x: raw.MaxPool(
        input=x(1, 8, 8, 3), ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"
    ),
    "AvgPoolGrad": lambda x: raw.AvgPoolGrad(
        orig_input_shape=[1, 8, 8, 3], grad=x(1, 4, 4, 3), ksize=[1, 2, 2, 1],
        strides=[1, 2, 2, 1], padding="VALID",
    ),
    "MaxPoolGrad": lambda x: raw.MaxPoolGrad(
        orig_input=x(1, 8, 8, 3), orig_output=x(1, 4, 4, 3), grad=x(1, 4, 4, 3),
        ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID",
    ),
    "BiasAdd": lambda x: raw.BiasAdd(value=x(2, 3, 4), bias=x(4)),
    "BiasAddGrad": lambda x: raw.BiasAddGrad(out_backprop=x(2, 3, 4)),
    "Softmax": lambda x: raw.Softmax(logits=x(2, 7)),
    "L2Loss": lambda x: raw.L2Loss(t=x(3, 4)),
    "AddN": lambda x: raw.AddN(inputs=[x(2, 3), x(2, 3), x(2, 3)]),
    "Sum": lambda x: raw.Sum(input=x(4, 5), axis=[1]),
    "Mean": lambda x: raw.Mean(input=x(4, 5), axis=[0]),
    "ArgMax": lambda x: raw.ArgMax(input=x(4, 5), dimension=1),
    "Rsqrt": lambda x: raw.Rsqrt(x=x(3, 3)),
    "RsqrtGrad": lambda x: raw.RsqrtGrad(y=x(3, 3), dy=x(3, 3)),
    "SquaredDifference": lambda x: raw.SquaredDifference(x=x(3, 1), y=x(1, 4)),
    "Neg": lambda x: raw.Neg(x=x(3, 3)),
    "Square": lambda x: raw.Square(x=x(3, 3)),
    "Reciprocal": lambda x: raw.Reciprocal(x=x(3, 3)),
    "Log": lambda x: raw.Log(x=x(3, 3)),
    "AddV2": lambda x: raw.AddV2(x=x(3, 1), y=x(1, 4)),
    "Mul": lambda x: raw.Mul(x=x(3, 1), y=x(4)),
    "RealDiv": lambda x: raw.RealDiv(x=x(3, 4), y=x(3, 4)),
    "Maximum": lambda x: raw.Maximum(x=x(3, 4), y=x(1)),
    "Pow": lambda x: raw.Pow(x=x(3, 4), y=x(1)),
    "Less": lambda x: raw.Less(x=x(3, 4), y=x(4)),
    "Equal": lambda x: raw.Equal(x=x(3, 4), y=x(4)),
}  # fmt: skip


def published(name: str) -> dict[str, Any]:
    """Return kind, shapes, attributes and operations of one case."""
    with tf.Graph().as_default() as graph:
        placeholder = tf.compat.v1.placeholder
        op = CASES[name](lambda *shape: placeholder(tf.float32, shape)).op
        stats = framework_ops.get_stats_for_node_def(graph, op.node_def, "flops")
    return {
        "kind": op.type,
        "inputs": [tensor.shape.as_list() for tensor in op.inputs],
        "outputs": [tensor.shape.as_list() for tensor in op.outputs],
        "attributes": plain_attributes(op),
        "flops": int(stats.value),
    }


def plain_attributes(op: Any) -> dict[str, AttributeValue]:
    """Return the attributes as plain values, as the frontend keeps them."""
    values: dict[str, AttributeValue] = {}
    for name, attribute in op.node_def.attr.items():
        field = attribute.WhichOneof("value")
        if field in ("i", "f", "b"):
            values[name] = getattr(attribute, field)
        elif field == "s":
            values[name] = attribute.s.decode()
        elif field == "list" and attribute.list.i:
            values[name] = tuple(attribute.list.i)
    return values


if __name__ == "__main__":
    json.dump({name: published(name) for name in CASES}, sys.stdout)
