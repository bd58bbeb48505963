"""What the ONNX backend needs of a model that the frontend read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from onnx import ModelProto


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxSource:
    """The model that was planned, as protobuf.

    Node i of a graph, or of a body, is op i of its `Graph`: local functions are inlined and
    nodes stand in an order that can run. Nobody changes `model`; the backend writes a copy.
    """

    model: ModelProto
    path: Path  # of the file: external data lies beside it
    # Input -> dimensions that the user fixed, None where the file leaves them free.
    fixed: Mapping[str, tuple[int | None, ...]]
    # Input -> all dimensions, as planned: a free batch is 1.
    shapes: Mapping[str, tuple[int, ...]]
    notes: tuple[str, ...]  # what was assumed or changed while reading, for people
