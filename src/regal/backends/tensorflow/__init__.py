"""TensorFlow files: write devices and an order into the graph, and have TensorFlow judge it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.backends.tensorflow.apply import apply, apply_schedule
from regal.backends.tensorflow.files import encoded
from regal.backends.tensorflow.verify import verify, verify_schedule

if TYPE_CHECKING:
    from regal.graph.types import LoadedModel

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

refine = apply  # the runtime has one way to take a plan: control edges


def default_order(model: LoadedModel) -> tuple[int, ...] | None:
    """Return None: TensorFlow runs what is ready, and says no order of its own."""
    return None


def with_free_dimensions(model: LoadedModel) -> LoadedModel | None:
    """Return None: dimensions of inputs are never written into the file."""
    return None
