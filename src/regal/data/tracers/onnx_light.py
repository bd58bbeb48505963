"""The models that the onnx package ships for its tests: classic networks, weights left out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import onnx

from regal.data.items import Item
from regal.frontends import load

if TYPE_CHECKING:
    from regal.graph.types import Graph

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
FAMILIES = {
    "bvlc_alexnet": "vgg", "densenet121": "densenet", "inception_v1": "inception",
    "inception_v2": "inception", "resnet50": "resnet", "shufflenet": "mobilenet",
    "squeezenet": "squeezenet", "vgg19": "vgg", "zfnet512": "vgg",
}  # fmt: skip


def items() -> list[Item]:
    """Return one item per file."""
    return [
        Item(framework="onnx", source="onnx.light", family=family, architecture=name)
        for name, family in FAMILIES.items()
    ]


def trace(item: Item) -> Graph:
    """Return the graph in the file of an item."""
    return load(FOLDER / f"light_{item.architecture}.onnx").graph


def version() -> str:
    """Return the version of onnx."""
    return f"onnx {onnx.__version__}"
