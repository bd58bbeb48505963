"""Names in a model must be text: protobuf hands out other bytes as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.errors import ModelError
from regal.frontends.onnx.tidy import graphs_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onnx import GraphProto, ModelProto, NodeProto, TypeProto


def require_text_names(model: ModelProto) -> None:
    """Check that every name in `model` is UTF-8 text.

    Raises:
        ModelError: one is not.
    """
    for name in _names(model):
        if not isinstance(name, str):
            raise ModelError(f"the model is corrupt: the name {name!r:.60} is no UTF-8 text")


def _names(model: ModelProto) -> Iterator[object]:
    for entry in model.opset_import:
        yield entry.domain
    for function in model.functions:
        yield from (function.name, function.domain, *function.input, *function.output)
        yield from function.attribute
        for entry in function.opset_import:
            yield entry.domain
        for node in function.node:
            yield from _node_names(node)
    for graph in graphs_in(model.graph):
        yield from _graph_names(graph)


def _graph_names(graph: GraphProto) -> Iterator[object]:
    yield graph.name
    for value in (*graph.input, *graph.output, *graph.value_info):
        yield value.name
        yield from _type_names(value.type)
    tensors = [*graph.initializer, *(sparse.values for sparse in graph.sparse_initializer)]
    for tensor in tensors:
        yield tensor.name
        for entry in tensor.external_data:
            yield from (entry.key, entry.value)
    for node in graph.node:
        yield from _node_names(node)


def _node_names(node: NodeProto) -> Iterator[object]:
    yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
    for attribute in node.attribute:
        yield from (attribute.name, attribute.ref_attr_name)
        for tensor in (attribute.t, *attribute.tensors):
            for entry in tensor.external_data:
                yield from (entry.key, entry.value)


def _type_names(kind: TypeProto) -> Iterator[object]:
    name = kind.WhichOneof("value")
    if name == "tensor_type":
        for dimension in kind.tensor_type.shape.dim:
            yield dimension.dim_param
    elif name in ("sequence_type", "optional_type"):
        yield from _type_names(getattr(kind, name).elem_type)
