"""Apply plans to .tflite files, for TensorFlow Lite Micro and LiteRT, and verify them there."""

from regal.backends.tflite.apply import apply
from regal.backends.tflite.verify import verify

__all__ = ["apply", "verify"]
