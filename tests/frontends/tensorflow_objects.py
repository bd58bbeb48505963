"""What runs in a child: graphs taken from a TensorFlow that is running, as JSON files.

Usage: python -m tests.frontends.tensorflow_objects FOLDER
TensorFlow takes seconds to import and warns while it does: it stays out of the tests' process.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from regal.errors import UsageError
from regal.frontends.tensorflow import from_concrete_function, from_graph, from_keras_model
from regal.frontends.tensorflow.source import TensorFlowSource
from regal.graph.file import model_to_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from regal.graph.types import LoadedModel


def main() -> None:
    """Write one file per model, and facts.json with what JSON graphs do not hold."""
    folder = Path(sys.argv[1])
    keras.utils.set_random_seed(0)
    model = convolutional()
    models = {
        "inference": from_keras_model(model, dims={"batch": 2}),
        "training": from_concrete_function(training_step(model)),
        "recurrent": from_keras_model(recurrent()),
        "captures": from_concrete_function(with_captures(), name="captures"),
        "fetched": from_graph(static_graph(), fetches=["y:0", "update"]),
        "whole": from_graph(static_graph()),
    }
    for name, loaded in models.items():
        folder.joinpath(f"{name}.json").write_text(model_to_json(loaded))
    model.save(folder / "model.keras")
    tf.saved_model.save(model, folder / "saved")
    facts: dict[str, Any] = {
        "weights": sum(int(tf.size(v)) * 4 for v in model.variables),
        "notes": {name: notes(loaded) for name, loaded in models.items()},
        "refused": refusals(),
    }
    folder.joinpath("facts.json").write_text(json.dumps(facts))


def notes(model: LoadedModel) -> list[str]:
    return list(model.source.notes) if isinstance(model.source, TensorFlowSource) else []


def convolutional() -> keras.Model:
    x = keras.Input((16, 16, 3), name="image")
    a = keras.layers.Conv2D(8, 3, activation="relu")(x)
    b = keras.layers.Conv2D(8, 3, padding="same")(a)
    c = keras.layers.GlobalAveragePooling2D()(keras.layers.Add()([a, b]))
    return keras.Model(x, keras.layers.Dense(10)(c), name="small")


def recurrent() -> keras.Model:
    return keras.Sequential([keras.Input((12, 8)), keras.layers.LSTM(16), keras.layers.Dense(2)])


def training_step(model: keras.Model) -> Any:
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build(model.trainable_variables)

    def step(image: tf.Tensor, label: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            found = model(image, training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(label, found))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    return tf.function(step).get_concrete_function(
        tf.TensorSpec([4, 16, 16, 3], name="image"), tf.TensorSpec([4], tf.int32, name="label")
    )


def with_captures() -> Any:
    variable = tf.Variable(tf.zeros([3, 5]))
    constant = tf.constant([[1.0, 2.0, 3.0]])

    def call(x: tf.Tensor) -> tf.Tensor:
        y = tf.matmul(x + constant, variable)
        variable.assign_add(tf.ones([3, 5]))
        return y

    return tf.function(call).get_concrete_function(tf.TensorSpec([None, 3], name="x"))


def static_graph() -> tf.Graph:
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [None, 4], name="x")
        v = tf.Variable(tf.zeros([4, 4]), name="v")
        tf.tanh(tf.matmul(x, v), name="y")
        v.assign_add(tf.ones([4, 4]), name="update")
        tf.exp(x, name="other")
    return graph


def refusals() -> list[str]:
    found = []
    calls: list[Callable[[], LoadedModel]] = [
        lambda: from_concrete_function(tf.function(lambda x: x)),
        lambda: from_graph("text"),
        lambda: from_keras_model(keras.Sequential([keras.layers.Dense(2)])),
        lambda: from_concrete_function(with_captures(), shapes={"z": (1, 3)}),
    ]
    for call in calls:
        try:
            call()
        except UsageError as error:
            found.append(str(error))
    return found


if __name__ == "__main__":
    main()
