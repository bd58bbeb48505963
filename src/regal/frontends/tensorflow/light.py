"""The graph as TensorFlow's inference gets it: no weights, no functions, no names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regal.frontends.tensorflow.functions import called
from regal.frontends.tensorflow.ops import HANDLES, INT64, base_type
from regal.frontends.tensorflow.roles import INPUTS, RETURN
from regal.frontends.tensorflow.schema import Proto, new
from regal.frontends.tensorflow.values import Partial, set_shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from regal.frontends.tensorflow.flat import Edge, Flat, Library, Node
    from regal.frontends.tensorflow.resources import Resource

MOST_BYTES = 1 << 22  # of a graph that is handed on as it is
LONGEST_CONSTANT = 1024  # bytes; longer ones steer no shapes
# What only matters when the graph runs.
_LEFT_OUT = frozenset({"_class", "_output_shapes", "_grappler_do_not_remove"})


@dataclass(frozen=True, slots=True)
class Bound:
    """What is known about a result besides what TensorFlow infers: its shape, or its values."""

    shape: Partial
    values: tuple[int, ...] | None = None


def light_graph(
    flat: Flat,
    library: Library,
    bound: Mapping[Edge, Bound],
    variables: Mapping[int, Resource],
    only: Iterable[int] | None = None,
    outside: Mapping[Edge, Bound] | None = None,
) -> Proto:
    """Return a GraphDef for inference; node i is called "n<i>" in it.

    Args:
        flat: the graph.
        library: what its nodes name.
        bound: results that are given instead of inferred.
        variables: arguments that are handles of variables.
        only: just these nodes.
        outside: what is known about results of other nodes.
    """
    outside = outside or {}
    graph = new("GraphDef")
    graph.versions.producer = library.producer
    chosen = range(len(flat.nodes)) if only is None else sorted(only)
    members = set(chosen)
    stand_ins: dict[Edge, str] = {}
    for position in chosen:
        node = flat.nodes[position]
        if position in variables:
            _add_variable(graph, f"n{position}", variables[position])
            continue
        if _is_left_out(node, library):
            continue
        proto = _copy(graph, position, node)
        for edge in node.inputs:
            source = flat.nodes[edge[0]]
            is_there = edge[0] in members and (
                edge[0] in variables or not _is_left_out(source, library)
            )
            if is_there and edge not in bound:
                proto.input.append(f"n{edge[0]}:{edge[1]}")
                continue
            if edge not in stand_ins:
                stand_ins[edge] = f"b{edge[0]}_{edge[1]}"
                given = bound.get(edge) or outside.get(edge)
                _add_stand_in(graph, stand_ins[edge], source.results[edge[1]], given)
            proto.input.append(stand_ins[edge])
    return graph


def without_weights(graph: Proto) -> Proto:
    """Return a GraphDef that can be imported if `graph` can, without its long constants."""
    if graph.ByteSize() <= MOST_BYTES:
        return graph
    light = new("GraphDef")
    light.versions.CopyFrom(graph.versions)
    light.library.CopyFrom(graph.library)
    for node in graph.node:
        is_long = node.op == "Const" and node.attr["value"].ByteSize() > LONGEST_CONSTANT
        if not is_long:
            light.node.append(node)
            continue
        proto = light.node.add(name=node.name, op="FakeParam")
        proto.attr["dtype"].CopyFrom(node.attr["dtype"])
        proto.attr["shape"].shape.CopyFrom(node.attr["value"].tensor.tensor_shape)
    return light


def original_names(message: str, flat: Flat) -> str:
    """Return a message of TensorFlow with the names of the file in it."""

    def name(found: re.Match[str]) -> str:
        position = int(found[1])
        return flat.nodes[position].name if position < len(flat.nodes) else found[0]

    return re.sub(r"\b[nb](\d{1,9})(?:_\d+)?\b", name, message)


def _is_left_out(node: Node, library: Library) -> bool:
    """Return whether nobody but us can say what a node yields."""
    is_known = node.kind in library.ops.defs
    is_outside = node.kind in INPUTS or node.kind == RETURN
    return is_outside or not is_known or bool(called(node, library))


def _copy(graph: Proto, position: int, node: Node) -> Proto:
    proto = graph.node.add(name=f"n{position}", op=node.kind)
    if node.kind == "Const" and node.proto.attr["value"].ByteSize() > LONGEST_CONSTANT:
        tensor = node.proto.attr["value"].tensor
        proto.op = "FakeParam"
        proto.attr["dtype"].type = node.results[0]
        proto.attr["shape"].shape.CopyFrom(tensor.tensor_shape)
        return proto
    for key, value in node.proto.attr.items():
        if key not in _LEFT_OUT:
            proto.attr[key].CopyFrom(value)
    if node.kind == "Const":
        # Without it, inference takes the value of a scalar for unknown; kernels do not.
        proto.attr["value"].tensor.tensor_shape.SetInParent()
    return proto


def _add_variable(graph: Proto, name: str, variable: Resource) -> None:
    """Add a handle of a variable, so that what is read from it has a shape."""
    proto = graph.node.add(name=name, op="VarHandleOp")
    proto.attr["dtype"].type = variable.dtype
    proto.attr["shared_name"].s = name.encode()
    if variable.shape is None:
        proto.attr["shape"].shape.unknown_rank = True
    else:
        proto.attr["shape"].shape.SetInParent()
        set_shape(proto.attr["shape"].shape, variable.shape)


def _add_stand_in(graph: Proto, name: str, dtype: int, bound: Bound | None) -> None:
    """Add a node that yields what is bound; without it, something of unknown shape."""
    dtype = base_type(dtype)
    if bound is not None and bound.values is not None:
        proto = graph.node.add(name=name, op="Const")
        tensor = proto.attr["value"].tensor
        tensor.dtype = dtype
        tensor.tensor_shape.SetInParent()  # without it, a scalar counts as unknown
        set_shape(tensor.tensor_shape, bound.shape)
        (tensor.int64_val if dtype == INT64 else tensor.int_val).extend(bound.values)
    else:
        # The one operator that may yield any type and any part of a shape.
        proto = graph.node.add(name=name, op="FakeParam")
        shape = proto.attr["shape"].shape
        shape.SetInParent()  # a scalar, unless more is said
        if dtype in HANDLES:
            pass
        elif bound is None:
            shape.unknown_rank = True
        else:
            set_shape(shape, bound.shape)
    proto.attr["dtype"].type = dtype
