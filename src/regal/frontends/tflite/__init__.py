"""Read .tflite files into graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from regal.errors import ModelError
from regal.frontends.tflite.convert import graphs_of
from regal.frontends.tflite.model import TfliteFile, parse_tflite
from regal.frontends.tflite.offline import offline_offsets
from regal.frontends.tflite.shapes import BoundShapes, bind_shapes
from regal.graph.check import require_valid_model
from regal.graph.types import LoadedModel

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from regal.graph.types import Graph

__all__ = ["TfliteSource", "load", "source_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TfliteSource:
    """What the backend needs to write the model back.

    `entries` are subgraph indices; `graphs` holds every subgraph's graph, by index.
    """

    file: TfliteFile
    entries: tuple[int, ...]
    shapes: BoundShapes
    graphs: tuple[Graph, ...]

    def offline_plan(self) -> list[int] | None:
        """Return the offset per tensor of all subgraphs that the file carries, if it does."""
        split = offline_offsets(self.file)
        return None if split is None else [offset for part in split for offset in part]


def load(path: Path, shapes: Mapping[str, tuple[int, ...]], dims: Mapping[str, int]) -> LoadedModel:
    """Return the entry graphs of a .tflite file: the main one, and those of other signatures.

    Memory follows TensorFlow Lite Micro: 16-byte alignment, bodies of control flow have their
    own copies of what they take and return, variables and weights are not counted.

    Args:
        path: the file.
        shapes: new shapes of inputs, by name; needs LiteRT to infer all other shapes.
        dims: single sizes, by "INPUT[AXIS]".

    Raises:
        ModelError: the file cannot be read, is broken, or leaves sizes open.
        UsageError: `shapes` or `dims` do not fit the model.

    Cost: linear in the size of the file, whatever it claims to hold.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read '{path}': {error.strerror or error}") from error
    file = parse_tflite(data)
    bound = bind_shapes(file, path, shapes, dims)
    entries, graphs = graphs_of(file, bound)
    main_graphs = tuple(graphs[index] for index in entries)
    return require_valid_model(
        LoadedModel(
            framework="tflite",
            entries=main_graphs,
            source=TfliteSource(file=file, entries=entries, shapes=bound, graphs=graphs),
        )
    )


def source_of(model: LoadedModel) -> TfliteSource:
    """Return the parsed file behind a model that `load` returned.

    Raises:
        ModelError: the model came from elsewhere.
    """
    if not isinstance(model.source, TfliteSource):
        raise ModelError(f"the model was read as '{model.framework}', not from a .tflite file")
    return model.source
