"""One module per source of architectures: which items there are, and how each is traced."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from regal.errors import UsageError

if TYPE_CHECKING:
    from typing import Protocol

    from regal.data.items import Item
    from regal.graph.types import Graph

    class Tracer(Protocol):
        """A module that knows one source."""

        def items(self) -> list[Item]:
            """Return all items of the source, in a fixed order."""

        def trace(self, item: Item) -> Graph:
            """Return the graph of one item."""

        def version(self) -> str:
            """Return name and version of the packages that define the architectures."""


# Framework and source -> module.
TRACERS = {
    ("torch", "timm"): "regal.data.tracers.timm",
    ("torch", "torchvision"): "regal.data.tracers.torchvision",
    ("torch", "transformers"): "regal.data.tracers.transformers",
    ("torch", "diffusers"): "regal.data.tracers.diffusers",
    ("torch", "zoo"): "regal.data.tracers.torch_zoo",
    ("jax", "flax"): "regal.data.tracers.jax_zoo",
    ("tensorflow", "keras.applications"): "regal.data.tracers.keras",
    ("tensorflow", "keras.layers"): "regal.data.tracers.keras_zoo",
    ("tensorflow", "keras-hub"): "regal.data.tracers.keras_hub",
    ("onnx", "onnx.light"): "regal.data.tracers.onnx_light",
    ("onnx", "torch.onnx"): "regal.data.tracers.onnx_export",
    ("tflite", "keras.applications"): "regal.data.tracers.tflite",
    ("graph", "synthetic"): "regal.data.tracers.synthetic",
}
# Framework and source -> packages that it needs.
NEEDS = {
    ("torch", "timm"): ("torch", "torchvision", "timm"),
    ("torch", "torchvision"): ("torch", "torchvision"),
    ("torch", "transformers"): ("torch", "torchvision", "transformers"),
    ("torch", "diffusers"): ("torch", "torchvision", "diffusers"),
    ("torch", "zoo"): ("torch",),
    ("jax", "flax"): ("jax", "flax"),
    ("tensorflow", "keras.applications"): ("tensorflow", "keras"),
    ("tensorflow", "keras.layers"): ("tensorflow", "keras"),
    ("tensorflow", "keras-hub"): ("tensorflow", "keras", "keras_hub"),
    ("onnx", "onnx.light"): ("onnx",),
    ("onnx", "torch.onnx"): ("torch", "torchvision", "timm", "onnxscript"),
    ("tflite", "keras.applications"): ("tensorflow", "keras"),
    ("graph", "synthetic"): (),
}


def source_names() -> list[str]:
    """Return the names of all sources: "torch/timm" and so on."""
    return ["/".join(source) for source in TRACERS]


def tracer_of(framework: str, source: str) -> Tracer:
    """Return the tracer of a source.

    Raises:
        UsageError: there is none.
    """
    if (framework, source) not in TRACERS:
        known = ", ".join(source_names())
        raise UsageError(f"unknown source '{framework}/{source}'; known: {known}")
    return cast("Tracer", import_module(TRACERS[framework, source]))
