"""One module per source of architectures: which items there are, and how each is traced."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from regal.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
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


# Framework and source -> its module here, and the packages that this needs.
SOURCES: Final[Mapping[tuple[str, str], tuple[str, tuple[str, ...]]]] = {
    ("torch", "timm"): ("timm", ("torch", "torchvision", "timm")),
    ("torch", "torchvision"): ("torchvision", ("torch", "torchvision")),
    ("torch", "transformers"): ("transformers", ("torch", "torchvision", "transformers")),
    ("torch", "diffusers"): ("diffusers", ("torch", "torchvision", "diffusers")),
    ("torch", "zoo"): ("torch_zoo", ("torch",)),
    ("jax", "flax"): ("jax_zoo", ("jax", "flax")),
    ("tensorflow", "keras.applications"): ("keras", ("tensorflow", "keras")),
    ("tensorflow", "keras.layers"): ("keras_zoo", ("tensorflow", "keras")),
    ("tensorflow", "keras-hub"): ("keras_hub", ("tensorflow", "keras", "keras_hub")),
    ("onnx", "onnx.light"): ("onnx_light", ("onnx",)),
    ("onnx", "torch.onnx"): ("onnx_export", ("torch", "torchvision", "timm", "onnxscript")),
    ("tflite", "keras.applications"): ("tflite", ("tensorflow", "keras")),
    ("graph", "synthetic"): ("synthetic", ()),
}


def source_names() -> list[str]:
    """Return the names of all sources: "torch/timm" and so on."""
    return ["/".join(source) for source in SOURCES]


def tracer_of(framework: str, source: str) -> Tracer:
    """Return the tracer of a source; its packages are imported.

    Raises:
        UsageError: there is none.
    """
    module, _ = _known(framework, source)
    return cast("Tracer", import_module(f"{__name__}.{module}"))


def packages_of(framework: str, source: str) -> tuple[str, ...]:
    """Return the packages that the tracer of a source imports.

    Raises:
        UsageError: there is no such source.
    """
    return _known(framework, source)[1]


def _known(framework: str, source: str) -> tuple[str, tuple[str, ...]]:
    if (framework, source) not in SOURCES:
        known = ", ".join(source_names())
        raise UsageError(f"unknown source '{framework}/{source}'; known: {known}")
    return SOURCES[framework, source]
