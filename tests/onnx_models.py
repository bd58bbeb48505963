"""Small ONNX models for tests, built by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import onnx
from onnx import GraphProto, TensorProto, helper

from regal.frontends.onnx.source import OnnxSource

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray
    from onnx import ModelProto, NodeProto, ValueInfoProto

    from regal.graph.types import LoadedModel

FLOAT = TensorProto.FLOAT
Attribute = int | Sequence[int] | TensorProto | GraphProto


def tensor(name: str, shape: Sequence[int | str | None], kind: int = FLOAT) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def node(
    kind: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    name: str = "",
    domain: str = "",
    **attributes: Attribute,
) -> NodeProto:
    made = helper.make_node(kind, inputs, outputs, name=name, domain=domain)
    made.attribute.extend(helper.make_attribute(k, v) for k, v in sorted(attributes.items()))
    return made


def graph(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[str],
    weights: Mapping[str, NDArray[np.generic]] | None = None,
    kind: int = FLOAT,
) -> GraphProto:
    return helper.make_graph(
        nodes,
        "g",
        inputs,
        [helper.make_tensor_value_info(name, kind, None) for name in outputs],
        [onnx.numpy_helper.from_array(v, k) for k, v in (weights or {}).items()],
    )


def model(main: GraphProto, opset: int = 17, *domains: str) -> ModelProto:
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_model(main, opset_imports=imports, ir_version=8)


def branches(width: int = 4, size: int = 1024) -> ModelProto:
    """Return `width` branches that grow and shrink again before they meet.

    Run one after the other they need little; run side by side they need it all at once.
    """
    nodes = []
    for i in range(width):
        nodes.append(node("Concat", ["x"] * 8, [f"wide{i}"], axis=0))
    for i in range(width):
        nodes.append(node("ReduceMax", [f"wide{i}"], [f"small{i}"], axes=[0], keepdims=1))
    nodes.append(node("Concat", [f"small{i}" for i in range(width)], ["y"], axis=0))
    return model(graph(nodes, [tensor("x", [size, 4])], ["y"]))


def save(proto: ModelProto, path: Path) -> Path:
    path.write_bytes(proto.SerializeToString())
    return path


def source_of(loaded: LoadedModel) -> OnnxSource:
    assert isinstance(loaded.source, OnnxSource)
    return loaded.source
