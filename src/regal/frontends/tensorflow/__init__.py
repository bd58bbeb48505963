"""TensorFlow files and functions: read with every tensor's size into the project's graphs."""

from regal.frontends.tensorflow.loading import load
from regal.frontends.tensorflow.objects import from_concrete_function, from_graph, from_keras_model

__all__ = ["from_concrete_function", "from_graph", "from_keras_model", "load"]
