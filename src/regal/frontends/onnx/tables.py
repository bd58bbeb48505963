"""One table per graph and body: the type, shape and bytes of each of its values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import onnx

from regal.errors import ModelError
from regal.frontends.onnx.dims import MOST_DIMENSIONS, Bindings, tensor_type
from regal.frontends.onnx.kinds import dtype_name, tensor_bytes
from regal.frontends.onnx.shapes import declared_types, infer_types, shape_of
from regal.frontends.onnx.tidy import bodies_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from onnx import GraphProto, ModelProto, TypeProto

# (position of a node, position of its body), from the main graph inwards.
Place = tuple[tuple[int, int], ...]
LARGEST_VALUE = 1 << 56  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What is known of one value. `kind` is ONNX's element type."""

    kind: int
    shape: tuple[int, ...]
    bytes: int
    is_static: bool = True  # ONNX Runtime knows the shape before it runs
    container: str = ""  # "sequence" or "map": then `bytes` is an estimate

    @property
    def dtype(self) -> str:
        """Return the name of the type."""
        name = dtype_name(self.kind) or "unknown"
        return f"{self.container}({name})" if self.container else name


@dataclass(frozen=True, slots=True)
class Table:
    """The values of one graph: those with a size, and the types of those without."""

    values: dict[str, Value] = field(default_factory=dict)
    # Name -> element type and container, where the shape is not known.
    open: dict[str, tuple[int, str]] = field(default_factory=dict)


Tables = dict[Place, Table]


def graphs_of(graph: GraphProto, place: Place = ()) -> Iterator[tuple[Place, GraphProto]]:
    """Yield a graph and all its bodies, outer ones first, each with its place."""
    yield place, graph
    for position, node in enumerate(graph.node):
        for number, body in enumerate(bodies_of(node)):
            yield from graphs_of(body, (*place, (position, number)))


def static_tables(model: ModelProto, bindings: Bindings, known: Mapping[str, TypeProto]) -> Tables:
    """Return what ONNX's rules tell about the values of `model` and its bodies."""
    inferred = infer_types(model, bindings, known)
    tables: Tables = {}
    pairs = zip(graphs_of(model.graph), graphs_of(inferred.graph), strict=True)
    for (place, graph), (_, light) in pairs:
        table = Table()
        for tensor in graph.initializer:
            table.values[tensor.name] = _filled(tensor.name, tensor.data_type, tuple(tensor.dims))
        for sparse in graph.sparse_initializer:
            # ONNX Runtime unpacks it when it loads the model.
            values = sparse.values
            table.values[values.name] = _filled(values.name, values.data_type, tuple(sparse.dims))
        for name, kind in declared_types(light).items():
            note_type(table, name, kind, bindings.names)
        tables[place] = table
    return tables


def note_type(table: Table, name: str, kind: TypeProto, names: Mapping[str, int]) -> None:
    """Enter what `kind` tells about the value `name`, unless its size is known already."""
    if name in table.values:
        return
    container, inner = container_of(kind)
    tensor = tensor_type(inner)
    element = tensor.elem_type if tensor is not None else 0
    shape = shape_of(tensor, names) if tensor is not None and not container else None
    if shape is not None and dtype_name(element):
        value = dense(element, shape)
        if value is None:
            raise ModelError(f"value '{name}' has the impossible shape {shape[:8]}")
        table.values[name] = value
        table.open.pop(name, None)
    elif element or container:
        table.open[name] = (element, container)


def container_of(kind: TypeProto) -> tuple[str, TypeProto]:
    """Return "sequence", "map" or "", and the type of what it holds."""
    name = kind.WhichOneof("value")
    if name == "optional_type":
        return container_of(kind.optional_type.elem_type)
    if name == "sequence_type":
        return "sequence", container_of(kind.sequence_type.elem_type)[1]
    if name == "map_type":
        return "map", container_of(kind.map_type.value_type)[1]
    return "", kind


def dense(kind: int, shape: tuple[int, ...], *, is_static: bool = True) -> Value | None:
    """Return a tensor, or None if its shape is absurd or its type is none."""
    if not dtype_name(kind) or len(shape) > MOST_DIMENSIONS:
        return None
    if any(not 0 <= size <= LARGEST_VALUE for size in shape):
        return None
    size = tensor_bytes(kind, shape)
    if size > LARGEST_VALUE:
        return None
    return Value(kind=kind, shape=shape, bytes=size, is_static=is_static)


def type_of(value: Value) -> onnx.TypeProto:
    """Return the protobuf type of a dense value."""
    return onnx.helper.make_tensor_type_proto(value.kind, value.shape)


def _filled(name: str, kind: int, shape: tuple[int, ...]) -> Value:
    if not dtype_name(kind):
        raise ModelError(f"initializer '{name}' has the unknown element type {kind}")
    value = dense(kind, shape)
    if value is None:
        raise ModelError(f"initializer '{name}' has the impossible shape {shape[:8]}")
    return value
