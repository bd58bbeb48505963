"""TensorFlow files and functions: `load` reads a file, with every tensor's size, into graphs."""

from regal.frontends.tensorflow.load import load

__all__ = ["load"]
