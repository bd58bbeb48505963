"""ONNX files: write a plan into the model, and have ONNX Runtime judge it."""

from regal.backends.onnx.apply import apply, encoded, with_free_dimensions
from regal.backends.onnx.order import default_order
from regal.backends.onnx.partition import apply_schedule
from regal.backends.onnx.partition_verify import verify_schedule
from regal.backends.onnx.verify import verify

__all__ = [
    "apply",
    "apply_schedule",
    "default_order",
    "encoded",
    "refine",
    "verify",
    "verify_schedule",
    "with_free_dimensions",
]

refine = apply  # the runtime has one way to take a plan: the order of the nodes
