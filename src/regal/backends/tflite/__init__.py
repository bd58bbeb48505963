"""Apply plans to .tflite files, for TensorFlow Lite Micro and LiteRT, and verify them there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.backends.tflite.apply import apply
from regal.backends.tflite.verify import verify

if TYPE_CHECKING:
    from regal.graph.types import LoadedModel

__all__ = ["apply", "default_order", "verify"]


def default_order(model: LoadedModel) -> tuple[int, ...] | None:
    """Return None: TFLite Micro and LiteRT run a file in its own order."""
    return None
