"""Read an ONNX file into a graph: the order of the steps, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.errors import ModelError
from regal.frontends.onnx.build import build_graph
from regal.frontends.onnx.dims import bind
from regal.frontends.onnx.external import require_external_data
from regal.frontends.onnx.parse import read_model
from regal.frontends.onnx.sizes import complete_tables
from regal.frontends.onnx.source import OnnxSource
from regal.frontends.onnx.text import require_text_names
from regal.frontends.onnx.tidy import tidy
from regal.graph.check import require_valid_model
from regal.graph.types import LoadedModel

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def load(path: Path, shapes: Mapping[str, tuple[int, ...]], dims: Mapping[str, int]) -> LoadedModel:
    """Return the model in the ONNX file `path`.

    Args:
        path: binary, or text if it ends in .textproto, .prototxt, .pbtxt or .txtpb.
        shapes: input -> all its dimensions.
        dims: name of a dimension -> its size. A free first dimension is a batch of 1.

    Raises:
        ModelError: the file is broken, or its dimensions are not all known.
        UsageError: `shapes` or `dims` name something that the model does not have.

    Cost: a few passes over the nodes. Where shapes depend on data, one run of the model.
    """
    try:
        return _load(path, shapes, dims)
    except RecursionError as error:
        raise ModelError(f"'{path}' is nested too deep") from error


def _load(
    path: Path, shapes: Mapping[str, tuple[int, ...]], dims: Mapping[str, int]
) -> LoadedModel:
    model = read_model(path)
    require_text_names(model)
    require_external_data(model, path)
    bindings = bind(model, shapes, dims)
    model, changes = tidy(model)
    tables, guesses = complete_tables(model, path, bindings)
    source = OnnxSource(
        model=model,
        path=path,
        fixed=bindings.fixed,
        shapes=bindings.shapes,
        notes=(*bindings.notes, *changes, *guesses),
    )
    graph = build_graph(model, tables)
    return require_valid_model(LoadedModel(framework="onnx", entries=(graph,), source=source))
