"""Image models of keras.applications: inference and training steps as TensorFlow graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from regal.data.items import INFERENCE, TRAINING, Item
from regal.data.tracers.tensorflow_common import graph_of_function, sgd_step

if TYPE_CHECKING:
    from regal.graph.types import Graph

TRAINING_BATCH = 4
SIDE = 224  # of images, where a model leaves that open
# Constructor -> family, those left out take gigabytes for their weights alone.
FAMILIES = {
    "MobileNet": "mobilenet", "MobileNetV2": "mobilenet", "MobileNetV3Small": "mobilenet",
    "MobileNetV3Large": "mobilenet", "NASNetMobile": "nasnet", "EfficientNetB0": "mobilenet",
    "EfficientNetV2B0": "mobilenet", "DenseNet121": "densenet", "ResNet50": "resnet",
    "ResNet50V2": "resnet", "InceptionV3": "inception", "Xception": "xception", "VGG16": "vgg",
    "ConvNeXtTiny": "convnext", "InceptionResNetV2": "inception", "EfficientNetB1": "mobilenet",
    "EfficientNetB2": "mobilenet", "EfficientNetB3": "mobilenet", "EfficientNetV2B1": "mobilenet",
    "EfficientNetV2B2": "mobilenet", "EfficientNetV2B3": "mobilenet", "DenseNet169": "densenet",
    "DenseNet201": "densenet", "ResNet101": "resnet", "ResNet101V2": "resnet",
    "ResNet152": "resnet", "ResNet152V2": "resnet", "VGG19": "vgg", "ConvNeXtSmall": "convnext",
    "NASNetLarge": "nasnet", "EfficientNetV2S": "mobilenet", "EfficientNetB4": "mobilenet",
    "EfficientNetV2M": "mobilenet", "EfficientNetB5": "mobilenet", "ConvNeXtBase": "convnext",
    "EfficientNetB6": "mobilenet",
}  # fmt: skip


def items() -> list[Item]:
    """Return inference and training items of every constructor."""
    return [
        Item(
            framework="tensorflow",
            source="keras.applications",
            family=family,
            architecture=name,
            mode=mode,
            batch=1 if mode == INFERENCE else TRAINING_BATCH,
        )
        for name, family in FAMILIES.items()
        for mode in (INFERENCE, TRAINING)
    ]


def trace(item: Item) -> Graph:
    """Return the graph of an item: scores, or one step of gradient descent."""
    keras.backend.clear_session()
    model = getattr(keras.applications, item.architecture)(weights=None)
    shape = (SIDE if size is None else size for size in model.input_shape[1:])
    x = tf.TensorSpec((item.batch, *shape), tf.float32)
    if item.mode == INFERENCE:
        return graph_of_function(lambda a: model(a, training=False), (x,), item.key)

    def loss(a: Any, b: Any) -> Any:
        scores = model(a, training=True)
        return tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(b, scores))

    y = tf.TensorSpec((item.batch,), tf.int32)
    return graph_of_function(sgd_step(model, loss), (x, y), item.key)


def version() -> str:
    """Return the versions of keras and tensorflow."""
    return f"keras {keras.__version__}, tensorflow {tf.__version__}"
