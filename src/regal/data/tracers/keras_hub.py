"""Backbones of keras-hub, small ones, as TensorFlow graphs: inference and training steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import keras_hub
import tensorflow as tf

from regal.data.items import INFERENCE, TRAINING, Item
from regal.data.tracers.keras_hub_models import RECIPES, SAMPLES, SIDE, TOKENS
from regal.data.tracers.tensorflow_common import adam_step, graph_of_function

if TYPE_CHECKING:
    from regal.graph.types import Graph

TRAINING_BATCH = 4


def items() -> list[Item]:
    """Return inference and training items of every recipe."""
    return [
        Item(
            framework="tensorflow",
            source="keras-hub",
            family=family,
            architecture=name,
            mode=mode,
            batch=1 if mode == INFERENCE else TRAINING_BATCH,
        )
        for name, (family, _) in RECIPES.items()
        for mode in (INFERENCE, TRAINING)
    ]


def trace(item: Item) -> Graph:
    """Return the graph of an item: its features, or one step of Adam on their mean square."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(0)  # layers draw names and seeds
    model = RECIPES[item.architecture][1]()
    names = sorted(model.input) if isinstance(model.input, dict) else []
    sources = [model.input[name] for name in names] or list(model.inputs)
    specs = [tf.TensorSpec(_full(x.shape, item.batch), x.dtype) for x in sources]

    def called(given: tuple[Any, ...], *, training: bool) -> list[Any]:
        arguments = dict(zip(names, given, strict=True)) if names else given[0]
        return tf.nest.flatten(model(arguments, training=training))

    if item.mode == INFERENCE:
        return graph_of_function(lambda *a: called(a, training=False), specs, item.key)

    def loss(*given: Any) -> Any:
        found = [x for x in called(given, training=True) if x.dtype.is_floating]
        return tf.add_n([tf.reduce_mean(tf.square(tf.cast(x, tf.float32))) for x in found])

    return graph_of_function(adam_step(model, loss), specs, item.key)


def version() -> str:
    """Return the versions of keras-hub, keras and tensorflow."""
    return (
        f"keras-hub {keras_hub.__version__}, keras {keras.__version__}, tensorflow {tf.__version__}"
    )


def _full(shape: tuple[int | None, ...], batch: int) -> tuple[int, ...]:
    """Return a shape with its open axes: the batch, then sides of an image, samples, or tokens."""
    is_sound = len(shape) == 3 and shape[-1] == 1
    size = SIDE if len(shape) == 4 else SAMPLES if is_sound else TOKENS
    return (batch, *(size if n is None else n for n in shape[1:]))
