"""What all TensorFlow sources share: functions to graphs, one step of gradient descent."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from regal.cost.work import op_flops
from regal.frontends.tensorflow.dims import Wishes
from regal.frontends.tensorflow.load import model_of
from regal.frontends.tensorflow.read import GraphFile
from regal.frontends.tensorflow.schema import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from regal.graph.types import Graph

RATE = 0.01


def graph_of_function(
    function: Callable[..., Any], inputs: Sequence[tf.TensorSpec], name: str
) -> Graph:
    """Return the graph of a function of tensors, its variables as variables, calls inlined."""
    concrete = tf.function(function, autograph=False).get_concrete_function(*inputs)
    ends = [*(tensor.op for tensor in concrete.outputs), *concrete.graph.control_outputs]
    message = _needed(concrete.graph.as_graph_def(), [op.name for op in ends])
    shapes = {variable.handle.ref(): variable for variable in concrete.graph.variables}
    nodes = {node.name: node for node in message.node}
    for outer, inner in concrete.graph.captures:
        variable = shapes.get(outer.ref())
        if variable is not None and inner.op.name in nodes:
            _make_variable(nodes[inner.op.name], variable)
    proto = parse("GraphDef", message.SerializeToString())
    graph = model_of(GraphFile("GraphDef", proto, proto, {}), name, None, Wishes({}, {})).graph
    return with_flops(graph)


def sgd_step(model: Any, loss: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that computes a loss and its gradients, and updates the weights."""
    weights = [weight.value for weight in model.trainable_variables]

    def step(*args: Any) -> Any:
        with tf.GradientTape() as tape:
            value = loss(*args)
        for weight, slope in zip(weights, tape.gradient(value, weights), strict=True):
            if isinstance(slope, tf.IndexedSlices):
                slope = tf.convert_to_tensor(slope)
            if slope is not None:
                tf.raw_ops.ResourceApplyGradientDescent(var=weight.handle, alpha=RATE, delta=slope)
        return value

    return step


def with_flops(graph: Graph) -> Graph:
    """Return `graph` with the operations of every op noted in it."""
    ops = [replace(op, flops=op_flops(op, graph.tensors, graph.framework)) for op in graph.ops]
    return replace(graph, ops=tuple(ops))


def _needed(message: Any, ends: Sequence[str]) -> Any:
    """Return a graph message with the nodes that `ends` need: TensorFlow runs no others."""
    nodes = {node.name: node for node in message.node}
    wanted: set[str] = set()
    pending = list(ends)
    while pending:
        name = pending.pop()
        if name not in wanted:
            wanted.add(name)
            pending += [edge.lstrip("^").partition(":")[0] for edge in nodes[name].input]
    kept = [node for node in message.node if node.name in wanted]
    result = type(message)(versions=message.versions, library=message.library)
    result.node.extend(kept)
    return result


def _make_variable(node: Any, variable: Any) -> None:
    """Turn the placeholder of a captured handle into the variable itself."""
    name, dtype = node.name, variable.dtype.as_datatype_enum
    node.Clear()
    node.name, node.op = name, "VarHandleOp"
    node.attr["dtype"].type = dtype
    node.attr["shape"].shape.CopyFrom(variable.shape.as_proto())
    node.attr["shared_name"].s = variable.name.encode()
    node.attr["container"].s = b""
