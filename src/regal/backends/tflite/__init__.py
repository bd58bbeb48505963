"""Apply plans to .tflite files, for TensorFlow Lite Micro and LiteRT, and verify them there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.backends.tflite.apply import apply
from regal.backends.tflite.c_header import c_header
from regal.backends.tflite.refine import refine
from regal.backends.tflite.verify import verify

if TYPE_CHECKING:
    from pathlib import Path

    from regal.graph.types import LoadedModel

__all__ = [
    "apply",
    "c_header",
    "default_order",
    "encoded",
    "refine",
    "verify",
    "with_free_dimensions",
]


def with_free_dimensions(model: LoadedModel) -> LoadedModel | None:
    """Return None: dimensions of the user are never written into the file."""
    return None


def encoded(data: bytes, out: Path) -> bytes:
    """Return `data`: there is one form."""
    return data


def default_order(model: LoadedModel) -> tuple[int, ...] | None:
    """Return None: TFLite Micro and LiteRT run a file in its own order."""
    return None
