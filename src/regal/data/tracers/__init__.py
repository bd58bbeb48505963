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


TRACERS = {
    "timm": "regal.data.tracers.timm",
    "transformers": "regal.data.tracers.transformers",
    "diffusers": "regal.data.tracers.diffusers",
    "zoo": "regal.data.tracers.torch_zoo",
    "flax": "regal.data.tracers.jax_zoo",
    "keras.applications": "regal.data.tracers.keras",
}


def tracer_of(source: str) -> Tracer:
    """Return the tracer of a source.

    Raises:
        UsageError: there is none.
    """
    if source not in TRACERS:
        raise UsageError(f"unknown source '{source}'; known: {', '.join(TRACERS)}")
    return cast("Tracer", import_module(TRACERS[source]))
