"""Weights that lie in files beside the model."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import onnx

from regal.errors import ModelError
from regal.frontends.onnx.kinds import dtype_name, tensor_bytes
from regal.frontends.onnx.parse import read_model
from regal.frontends.onnx.tidy import graphs_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onnx import ModelProto, TensorProto


def external_tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Yield every tensor of `model` whose data lie in another file."""
    for graph in graphs_in(model.graph):
        yield from filter(_is_external, graph.initializer)
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.TENSOR:
                    yield from filter(_is_external, [attribute.t])
                yield from filter(_is_external, attribute.tensors)


def location_of(tensor: TensorProto) -> str:
    """Return the file that holds the data of `tensor`, as written in the model."""
    return next((e.value for e in tensor.external_data if e.key == "location"), "")


def external_files(path: Path) -> list[Path]:
    """Return the files that hold weights of the model in the file `path`.

    Raises:
        ModelError: see `read_model`.
    """
    locations = {location_of(tensor) for tensor in external_tensors(read_model(path))}
    return [path.parent / location for location in sorted(locations)]


def require_external_data(model: ModelProto, path: Path) -> None:
    """Check that all external data are there, without reading them.

    Raises:
        ModelError: a file is missing, too short, or outside the model's folder.
    """
    sizes: dict[str, int] = {}
    for tensor in external_tensors(model):
        location = location_of(tensor)
        if location not in sizes:
            sizes[location] = _size_of(tensor, location, path)
        number = {e.key: e.value for e in tensor.external_data if e.key in ("offset", "length")}
        begin, length = (_number(tensor, key, number.get(key, "")) for key in ("offset", "length"))
        if not length and dtype_name(tensor.data_type):
            length = tensor_bytes(tensor.data_type, tensor.dims)
        if begin + length > sizes[location]:
            raise ModelError(
                f"tensor '{tensor.name}' needs bytes [{begin}, {begin + length}) of"
                f" '{location}', which has {sizes[location]}"
            )


def _is_external(tensor: TensorProto) -> bool:
    return bool(tensor.data_location == onnx.TensorProto.EXTERNAL)


def _size_of(tensor: TensorProto, location: str, path: Path) -> int:
    relative = PurePosixPath(location)
    if not location or "\0" in location or relative.is_absolute() or ".." in relative.parts:
        raise ModelError(
            f"tensor '{tensor.name}' lies in '{location}', which is not inside the model's folder"
        )
    try:
        return (path.parent / relative).stat().st_size
    except OSError as error:
        raise ModelError(
            f"tensor '{tensor.name}' lies in '{location}' beside the model:"
            f" {error.strerror or error}"
        ) from error


def _number(tensor: TensorProto, key: str, text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise ModelError(f"tensor '{tensor.name}' has the external {key} '{text}', no number")
    return int(text)
