"""Write a plan into an ONNX model: its nodes in the planned order, all else as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import onnx
from google.protobuf import text_format

from regal.backends.onnx.order import executed_order
from regal.backends.types import AppliedModel
from regal.errors import BackendError, PlanError
from regal.frontends.onnx.dims import set_shape, tensor_type
from regal.frontends.onnx.external import external_tensors, location_of
from regal.frontends.onnx.parse import is_text
from regal.frontends.onnx.source import OnnxSource
from regal.frontends.onnx.tidy import bodies_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from onnx import GraphProto, ModelProto, TensorProto

    from regal.graph.types import Graph, LoadedModel
    from regal.plan.types import ModelPlan, Plan


def apply(model: LoadedModel, plan: ModelPlan) -> AppliedModel:
    """Return the model with its nodes, and those of its bodies, in the planned order.

    Weights, metadata and names stay as they are. Input dimensions that the user fixed are
    fixed in the file; a batch that only defaulted to 1 stays free. External data come along
    as files beside the model.

    Raises:
        PlanError: the plan is not one of this model.
        BackendError: external data cannot be read.
    """
    source = model.source
    if not isinstance(source, OnnxSource):
        raise BackendError(f"a {model.framework} model cannot be written as ONNX")
    copy = onnx.ModelProto()
    copy.CopyFrom(source.model)
    planned = plan.plans[0]
    reorder(copy.graph, model.graph, planned.order, planned.bodies)
    fixed = fix_dimensions(copy, source)
    files = external_files(copy, source.path)
    notes = list(source.notes)
    notes.append("runs as planned in regal.onnxruntime.session: the default order ignores the file")
    if fixed:
        notes.append(f"fixed the dimensions of {', '.join(fixed)}")
    if files:
        notes.append(f"copied the external data: {', '.join(files)}")
    return AppliedModel(files={"": copy.SerializeToString(), **files}, notes=tuple(notes))


def with_free_dimensions(model: LoadedModel) -> LoadedModel | None:
    """Return a model that applies with the free dimensions of the file left free.

    Sizes that replace those of the file stay. None: nothing would be left free.
    """
    source = model.source
    if not isinstance(source, OnnxSource):
        return None
    fixed: dict[str, tuple[int | None, ...]] = {}
    for value in source.model.graph.input:
        tensor, row = tensor_type(value.type), source.fixed.get(value.name)
        if tensor is not None and row is not None and len(row) == len(tensor.shape.dim):
            stated = [dimension.HasField("dim_value") for dimension in tensor.shape.dim]
            fixed[value.name] = tuple(
                size if known else None for size, known in zip(row, stated, strict=True)
            )
    if fixed == dict(source.fixed):
        return None
    return replace(model, source=replace(source, fixed=fixed))


def encoded(data: bytes, output: Path) -> bytes:
    """Return a serialized model in the form that the name of `output` asks for.

    Text for .textproto, .prototxt, .pbtxt and .txtpb, else the binary form as it is.
    """
    if not is_text(output):
        return data
    return text_format.MessageToString(onnx.ModelProto.FromString(data)).encode()


def reorder(
    proto: GraphProto,
    graph: Graph,
    order: Sequence[int],
    bodies: Mapping[int, tuple[Plan, ...]],
) -> None:
    """Put the nodes of `proto`, whose node i is op i of `graph`, and of its bodies in order.

    Raises:
        PlanError: the plan is not one of this graph.
    """
    if sorted(order) != list(range(len(proto.node))):
        raise PlanError(
            f"the plan of '{graph.name}' orders {len(order)} ops; the file has"
            f" {len(proto.node)} nodes"
        )
    for position, node in enumerate(proto.node):
        planned = bodies.get(position, ())
        rows = zip(bodies_of(node), graph.ops[position].subgraphs, planned, strict=False)
        for body, body_graph, plan in rows:
            reorder(body, body_graph, plan.order, plan.bodies)
    nodes = [proto.node[op].SerializeToString() for op in executed_order(graph, order)]
    del proto.node[:]
    proto.node.extend(onnx.NodeProto.FromString(node) for node in nodes)


def fix_dimensions(model: ModelProto, source: OnnxSource) -> list[str]:
    """Write the fixed dimensions of the inputs into `model`; return the changed inputs."""
    changed = []
    for value in model.graph.input:
        tensor = tensor_type(value.type)
        sizes = source.fixed.get(value.name)
        if tensor is None or sizes is None:
            continue
        before = tensor.shape.SerializeToString()
        set_shape(tensor.shape, sizes)
        if tensor.shape.SerializeToString() != before:
            changed.append(value.name)
    return changed


def external_files(model: ModelProto, path: Path) -> dict[str, bytes]:
    """Return the external data of `model`, and let it refer to files beside itself."""
    name_of: dict[str, str] = {}
    for tensor in external_tensors(model):
        location = location_of(tensor)
        if location not in name_of:
            name = PurePosixPath(location).name
            while name in name_of.values():
                name = f"_{name}"
            name_of[location] = name
        _set_location(tensor, name_of[location])
    try:
        return {name: (path.parent / location).read_bytes() for location, name in name_of.items()}
    except OSError as error:
        raise BackendError(f"cannot read external data: {error}") from error


def _set_location(tensor: TensorProto, name: str) -> None:
    for entry in tensor.external_data:
        if entry.key == "location":
            entry.value = name
