"""What all TensorFlow sources share: functions to graphs, one step of gradient descent."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from regal.cost.work import op_flops
from regal.frontends.tensorflow import from_concrete_function

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from regal.graph.types import Graph

RATE = 0.01
SLOWER, SLOWEST, LEAST = 0.9, 0.999, 1e-8  # of Adam


def graph_of_function(
    function: Callable[..., Any], inputs: Sequence[tf.TensorSpec], name: str
) -> Graph:
    """Return the graph of a function of tensors, its variables as state, calls inlined."""
    concrete = tf.function(function, autograph=False).get_concrete_function(*inputs)
    return with_flops(from_concrete_function(concrete, name=name).graph)


def sgd_step(model: Any, loss: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that computes a loss and its gradients, and updates the weights."""
    weights = [weight.value for weight in model.trainable_variables]

    def step(*args: Any) -> Any:
        with tf.GradientTape() as tape:
            value = loss(*args)
        for weight, slope in zip(weights, tape.gradient(value, weights), strict=True):
            if slope is not None:
                tf.raw_ops.ResourceApplyGradientDescent(
                    var=weight.handle, alpha=RATE, delta=tf.convert_to_tensor(slope)
                )
        return value

    return step


def adam_step(model: Any, loss: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that computes a loss and its gradients, and updates weights by Adam."""
    weights = [weight.value for weight in model.trainable_variables]
    means = [tf.Variable(tf.zeros_like(weight)) for weight in weights]
    squares = [tf.Variable(tf.zeros_like(weight)) for weight in weights]

    def step(*args: Any) -> Any:
        with tf.GradientTape() as tape:
            value = loss(*args)
        rows = zip(weights, means, squares, tape.gradient(value, weights), strict=True)
        for weight, mean, square, slope in rows:
            if slope is not None:
                tf.raw_ops.ResourceApplyAdam(
                    var=weight.handle, m=mean.handle, v=square.handle, beta1_power=SLOWER,
                    beta2_power=SLOWEST, lr=RATE, beta1=SLOWER, beta2=SLOWEST, epsilon=LEAST,
                    grad=tf.convert_to_tensor(slope),
                )  # fmt: skip
        return value

    return step


def with_flops(graph: Graph) -> Graph:
    """Return `graph` with the operations of every op noted in it."""
    ops = [replace(op, flops=op_flops(op, graph.tensors, graph.framework)) for op in graph.ops]
    return replace(graph, ops=tuple(ops))
