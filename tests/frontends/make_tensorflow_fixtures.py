"""Write the .pbtxt files in tensorflow_fixtures/, with TensorFlow's own ways of making graphs.

Usage: python -m tests.frontends.make_tensorflow_fixtures
"""

from pathlib import Path

import tensorflow as tf
from google.protobuf import text_format

FOLDER = Path(__file__).with_name("tensorflow_fixtures")
tf1 = tf.compat.v1


def write(name: str, graph: tf.Graph) -> None:
    FOLDER.joinpath(f"{name}.pbtxt").write_text(text_format.MessageToString(graph.as_graph_def()))


def control_flow_v1() -> tf.Graph:
    """Return a loop in a loop, and a branch, in frames and switches."""
    with tf.Graph().as_default() as graph:
        tf1.disable_control_flow_v2()
        x = tf1.placeholder(tf.float32, [4, 4], name="x")
        go = tf1.placeholder(tf.bool, [], name="go")

        def inner(i: tf.Tensor, v: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            return i + 1, tf.tanh(v)

        def outer(i: tf.Tensor, v: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            _, v = tf1.while_loop(lambda j, _: j < 2, inner, [0, v], name="inner")
            return i + 1, tf.matmul(v, x)

        _, y = tf1.while_loop(lambda i, _: i < 3, outer, [0, x], name="outer")
        tf1.cond(go, lambda: tf.exp(y), lambda: tf.nn.relu(y), name="branch")
    return graph


def training_v1() -> tf.Graph:
    """Return a training step of TensorFlow 1: references, gradients, momentum, a saver."""
    with tf.Graph().as_default() as graph:
        tf1.disable_resource_variables()
        x = tf1.placeholder(tf.float32, [None, 3], name="x")
        w = tf1.get_variable("w", [3, 2], initializer=tf1.zeros_initializer())
        b = tf1.get_variable("b", [2], initializer=tf1.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b), name="loss")
        tf1.train.MomentumOptimizer(0.1, 0.9).minimize(loss, name="train")
        tf1.global_variables_initializer()
        tf1.train.Saver()
    return graph


def functions_v2() -> tf.Graph:
    """Return a function of TensorFlow 2 with a While, an If and a call that is made twice."""
    tf1.enable_control_flow_v2()

    def doubled(v: tf.Tensor) -> tf.Tensor:
        return tf.nn.relu(v + v)

    twice = tf.function(doubled, experimental_attributes={"_noinline": True})

    def step(x: tf.Tensor, go: tf.Tensor) -> tf.Tensor:
        _, y = tf.while_loop(lambda i, _: i < 7, lambda i, v: (i + 1, tf.tanh(v)), [0, x])
        y = tf.cond(go, lambda: tf.exp(y), lambda: y)
        return twice(twice(y))

    concrete = tf.function(step).get_concrete_function(
        tf.TensorSpec([None, 8], name="x"), tf.TensorSpec([], tf.bool, name="go")
    )
    return concrete.graph


def main() -> None:
    for make in (control_flow_v1, training_v1, functions_v2):
        write(make.__name__, make())


if __name__ == "__main__":
    main()
