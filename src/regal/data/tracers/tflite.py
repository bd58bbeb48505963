"""Small models of keras.applications as TensorFlow Lite files."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import keras
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from regal.data.items import Item
from regal.data.tracers.keras import FAMILIES
from regal.frontends import load

if TYPE_CHECKING:
    from regal.graph.types import Graph

# Those that convert in seconds.
NAMES = (
    "MobileNet", "MobileNetV2", "MobileNetV3Small", "MobileNetV3Large", "NASNetMobile",
    "EfficientNetB0", "EfficientNetV2B0", "DenseNet121", "InceptionV3", "Xception", "ResNet50",
    "ResNet50V2", "InceptionResNetV2", "EfficientNetV2B3", "DenseNet201", "ConvNeXtTiny",
)  # fmt: skip


def items() -> list[Item]:
    """Return one inference item per model."""
    return [
        Item(
            framework="tflite",
            source="keras.applications",
            family=FAMILIES[name],
            architecture=name,
        )
        for name in NAMES
    ]


def trace(item: Item) -> Graph:
    """Return the graph of an item, converted and read back."""
    keras.backend.clear_session()
    model = getattr(keras.applications, item.architecture)(weights=None)
    shape = (item.batch, *model.input_shape[1:])
    function = tf.function(lambda x: model(x, training=False))
    concrete = function.get_concrete_function(tf.TensorSpec(shape, tf.float32))
    frozen = convert_variables_to_constants_v2(concrete)
    data = tf.lite.TFLiteConverter.from_concrete_functions([frozen]).convert()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        path.write_bytes(data)
        return load(path).graph


def version() -> str:
    """Return the versions of keras and tensorflow."""
    return f"keras {keras.__version__}, tensorflow {tf.__version__}"
