"""Find the type and shape of every value of a model, without running it."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING

import onnx
import onnx.shape_inference

from regal.frontends.onnx.dims import MOST_DIMENSIONS, Bindings, bound_size, set_shape, tensor_type
from regal.frontends.onnx.parse import STANDARD_DOMAINS
from regal.frontends.onnx.tidy import bodies_of, graphs_in, is_standard

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto

# Weights above this size say nothing about shapes; they are left out of the copy that is
# inferred. The longest constant that steers a shape has one number per dimension.
LONGEST_SHAPE_DATA = 1024  # bytes
# Concat doubles the values that inference carries along; above this many it works without.
MOST_CARRIED_VALUES = 4096
# Operators whose rules compute values, not only shapes.
CARRYING = frozenset(
    {"Add", "Cast", "Gather", "Identity", "Mul", "Slice", "Squeeze", "Sub", "Unsqueeze"}
)
# A standard node with more numbers in an attribute steers no sensible shape.
MOST_ATTRIBUTE_NUMBERS = 1024
STRIPPED = "regal.stripped"  # the domain of nodes that stand for a constant with no data


def infer_types(
    model: ModelProto, bindings: Bindings, known: Mapping[str, TypeProto]
) -> ModelProto:
    """Return a copy of `model` without weights, with the types that ONNX's rules infer.

    The copy has the same nodes in the same places, so that bodies can be walked side by side.

    Args:
        model: sorted and without functions.
        bindings: numbers for the dimensions of its inputs.
        known: types of values of the main graph that inference cannot find itself.
    """
    light = _light_copy(model, bindings, known)
    carried = _carried_values(light.graph) <= MOST_CARRIED_VALUES
    data = light.SerializeToString()
    for data_prop in (True, False) if carried else (False,):
        try:
            # Not strict: an operator that onnx does not know only leaves its results open.
            return onnx.shape_inference.infer_shapes(data, data_prop=data_prop)
        except (onnx.shape_inference.InferenceError, RuntimeError, ValueError):
            continue
    return light


def contradiction(model: ModelProto, bindings: Bindings, known: Mapping[str, TypeProto]) -> str:
    """Return the first contradiction between the shapes of `model`, or ""."""
    data = _light_copy(model, bindings, known).SerializeToString()
    try:
        onnx.shape_inference.infer_shapes(data, strict_mode=True)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError) as error:
        found = re.search(r"\(op_type:(.*?), node name: (.*?)\): \[\w+\] (.*)", str(error))
        if found is None:
            return " ".join(str(error).split())[:200]
        kind, name, reason = found.groups()
        return f"node '{name}' ({kind}): {reason}"
    return ""


def _light_copy(
    model: ModelProto, bindings: Bindings, known: Mapping[str, TypeProto]
) -> ModelProto:
    light = onnx.ModelProto(ir_version=model.ir_version)
    light.opset_import.extend(model.opset_import)
    _copy_light(model.graph, light.graph)
    # A domain without a version would end the inference of the whole graph.
    imported = {entry.domain for entry in model.opset_import}
    used = {node.domain for graph in graphs_in(light.graph) for node in graph.node}
    for domain in sorted(used - imported - set(STANDARD_DOMAINS)):
        light.opset_import.add(domain=domain, version=1)
    for value in light.graph.input:
        tensor = tensor_type(value.type)
        if tensor is not None and value.name in bindings.shapes:
            set_shape(tensor.shape, bindings.shapes[value.name])
    for name, type_proto in known.items():
        light.graph.value_info.add(name=name).type.CopyFrom(type_proto)
    return light


def declared_types(graph: GraphProto) -> dict[str, TypeProto]:
    """Return the types that a graph states for its values."""
    values = (*graph.value_info, *graph.output, *graph.input)
    return {value.name: value.type for value in values if value.HasField("type")}


def shape_of(tensor: TypeProto.Tensor, names: Mapping[str, int]) -> tuple[int, ...] | None:
    """Return the shape of a tensor type if every dimension has a number."""
    if not tensor.HasField("shape"):
        return None
    sizes = [bound_size(dimension, names) for dimension in tensor.shape.dim]
    known = tuple(size for size in sizes if size is not None)
    return known if len(known) == len(sizes) else None


def _copy_light(graph: GraphProto, light: GraphProto) -> None:
    """Fill `light` with the nodes of `graph`, leaving out weights and stated types.

    What the file states about inner values may be for other input shapes, so it is not used.
    """
    light.name = graph.name
    light.input.extend(graph.input)
    for value in graph.output:
        light.output.add(name=value.name)
    for tensor in graph.initializer:
        if _is_short(tensor):
            light.initializer.append(tensor)
        else:
            _state_tensor(light, tensor.name, tensor.data_type, tuple(tensor.dims))
    for sparse in graph.sparse_initializer:
        _state_tensor(light, sparse.values.name, sparse.values.data_type, tuple(sparse.dims))
    for node in graph.node:
        copy = light.node.add(op_type=node.op_type, domain=node.domain, name=node.name)
        copy.input.extend(node.input)
        copy.output.extend(node.output)
        if _is_long_constant(node):
            tensor = node.attribute[0].t
            copy.domain = STRIPPED
            _state_tensor(light, node.output[0], tensor.data_type, tuple(tensor.dims))
            continue
        if _has_long_attribute(node):
            copy.domain = STRIPPED
            continue
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                made = copy.attribute.add(name=attribute.name, type=attribute.type)
                _copy_light(attribute.g, made.g)
            elif attribute.type == onnx.AttributeProto.GRAPHS:
                made = copy.attribute.add(name=attribute.name, type=attribute.type)
                for body in attribute.graphs:
                    _copy_light(body, made.graphs.add())
            else:
                copy.attribute.append(attribute)


def _is_short(tensor: TensorProto) -> bool:
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return False
    return int(tensor.ByteSize()) <= LONGEST_SHAPE_DATA


def _is_long_constant(node: NodeProto) -> bool:
    return (
        is_standard(node, "Constant")
        and len(node.output) == 1
        and len(node.attribute) == 1
        and node.attribute[0].type == onnx.AttributeProto.TENSOR
        and not _is_short(node.attribute[0].t)
    )


def _has_long_attribute(node: NodeProto) -> bool:
    """Return whether a standard node carries more numbers than any shape needs."""
    return node.domain in STANDARD_DOMAINS and any(
        len(attribute.ints) > MOST_ATTRIBUTE_NUMBERS for attribute in node.attribute
    )


def _state_tensor(graph: GraphProto, name: str, kind: int, shape: tuple[int, ...]) -> None:
    tensor = graph.value_info.add(name=name).type.tensor_type
    tensor.elem_type = kind
    for size in shape:
        tensor.shape.dim.add(dim_value=size)


def _carried_values(graph: GraphProto) -> int:
    """Return a bound on the numbers that inference carries in one value, of this graph alone."""
    sizes = {t.name: prod(t.dims) for t in graph.initializer if _is_short(t)}
    most = 0
    for node in graph.node:
        carried = [sizes.get(name, 0) for name in node.input]
        if node.op_type == "Concat":
            result = sum(carried)
        elif node.op_type == "Constant":
            result = 0 if _is_long_constant(node) else node.ByteSize()
        elif node.op_type in CARRYING:
            result = max(carried, default=0)
        else:
            result = MOST_DIMENSIONS if node.op_type == "Shape" else 0
        for name in node.output:
            sizes[name] = result
        most = max(most, result, *(_carried_values(body) for body in bodies_of(node)))
    return most
