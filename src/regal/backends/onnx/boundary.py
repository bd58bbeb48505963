"""The types of values that cross from one part of a model to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx

from regal.errors import BackendError
from regal.frontends.onnx.dims import Bindings, tensor_type
from regal.frontends.onnx.kinds import NAMES
from regal.frontends.onnx.shapes import declared_types, infer_types

if TYPE_CHECKING:
    from onnx import ModelProto, TypeProto

    from regal.frontends.onnx.source import OnnxSource
    from regal.graph.types import Graph, Tensor

KIND_OF = {name: kind for kind, name in NAMES.items()}


def crossing_types(
    model: ModelProto, source: OnnxSource, graph: Graph, names: set[str]
) -> dict[str, TypeProto]:
    """Return the type of each value in `names`, all of them results of nodes.

    Shapes are what ONNX infers while free dimensions stay free; where it infers none, the
    planned one, or, if the model has free dimensions, its rank alone.

    Args:
        model: with the dimensions of its inputs fixed as far as they are.
        source: what was planned.
        graph: the planned sizes.
        names: values of the main graph that nodes make.

    Raises:
        BackendError: a value has a type that a file cannot state.
    """
    shapes = {
        name: tuple(size for size in row if size is not None)
        for name, row in source.fixed.items()
        if None not in row
    }
    free = Bindings(names={}, shapes=shapes, fixed={}, notes=())
    inferred = declared_types(infer_types(model, free, {}).graph)
    stated = declared_types(model.graph)
    is_free = len(shapes) < len(source.fixed)
    planned = {tensor.name: tensor for tensor in graph.tensors}
    return {
        name: _type_of(planned[name], inferred.get(name), stated.get(name), is_free=is_free)
        for name in sorted(names)
    }


def _type_of(
    tensor: Tensor, inferred: TypeProto | None, stated: TypeProto | None, *, is_free: bool
) -> TypeProto:
    for found in (inferred, stated):
        if found is not None and is_complete(found):
            return found
    container, _, rest = tensor.dtype.rpartition("(")
    kind = KIND_OF.get(rest.removesuffix(")"))
    if kind is None or container not in ("", "sequence"):
        raise BackendError(
            f"value '{tensor.name}' has the type {tensor.dtype}, which cannot go from one"
            " device to another; place its ops on one device"
        )
    if container:
        element = onnx.helper.make_tensor_type_proto(kind, None)
        return onnx.helper.make_sequence_type_proto(element)
    shape: tuple[int | None, ...] = (None,) * len(tensor.shape) if is_free else tensor.shape
    return onnx.helper.make_tensor_type_proto(kind, shape)


def is_complete(kind: TypeProto) -> bool:
    """Return whether a file may state this type for an input or output: a tensor needs a shape."""
    if kind.WhichOneof("value") == "sequence_type":
        inner = kind.sequence_type.elem_type
        return inner.WhichOneof("value") != "tensor_type" or inner.tensor_type.elem_type != 0
    tensor = tensor_type(kind)
    if tensor is None:
        return kind.WhichOneof("value") is not None
    return tensor.elem_type != 0 and tensor.HasField("shape")
