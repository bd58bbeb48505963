"""Models of keras layers: inference and training steps as TensorFlow graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from regal.data.items import INFERENCE, Item, items_of
from regal.data.tracers.keras_models import RECIPES
from regal.data.tracers.tensorflow_common import graph_of_function, sgd_step

if TYPE_CHECKING:
    from regal.graph.types import Graph

TRAINING_BATCH = 8


def items() -> list[Item]:
    """Return inference and training items of every recipe."""
    families = {name: family for name, (family, _) in RECIPES.items()}
    return items_of("tensorflow", "keras.layers", families, training_batch=TRAINING_BATCH)


def trace(item: Item) -> Graph:
    """Return the graph of an item: results, or one step of gradient descent on their mean."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(0)  # layers draw names and seeds
    model = RECIPES[item.architecture][1]()
    inputs = [tf.TensorSpec((item.batch, *x.shape[1:]), x.dtype) for x in model.inputs]
    if item.mode == INFERENCE:
        return graph_of_function(lambda *a: _called(model, a, training=False), inputs, item.key)

    def loss(*given: Any) -> Any:
        return tf.reduce_mean(tf.square(_called(model, given, training=True)))

    return graph_of_function(sgd_step(model, loss), inputs, item.key)


def version() -> str:
    """Return the versions of keras and tensorflow."""
    return f"keras {keras.__version__}, tensorflow {tf.__version__}"


def _called(model: Any, given: tuple[Any, ...], *, training: bool) -> Any:
    return model(given[0] if len(given) == 1 else list(given), training=training)
