"""Write a network as ONNX, for `regal.policy.model`, and compare the two."""

from __future__ import annotations

import io
import json
import logging
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import torch
from torch import Tensor, nn

from regal.errors import ModelError
from regal.learning.network import GraphTensors, PaperNetwork, graph_tensors
from regal.policy.model import FORMAT, METADATA, PolicyNetwork, feature_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from regal.policy.inputs import PolicyInputs

OPSET = 18
DYNAMIC: Mapping[str, dict[int, str]] = {
    "nodes": {0: "ops"},
    "sources": {0: "edges"},
    "targets": {0: "edges"},
    "edges": {0: "edges"},
    "context": {},
    "devices": {0: "devices"},
    "groups": {0: "ops"},
    "group_sizes": {0: "groups"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What a network is exported as."""

    kind: str  # "paper": what its outputs mean
    outputs: tuple[str, ...]
    forward: Callable[[GraphTensors], tuple[Tensor, ...]]


def paper_export(network: PaperNetwork) -> Exported:
    """Return the paper's policy: logits per gene, and the embeddings."""

    def forward(graph: GraphTensors) -> tuple[Tensor, ...]:
        embedded, proposed = network(graph)
        return (*proposed, embedded.nodes, embedded.graph)

    names = ("priority", "affinity", "transfer", "node_embedding", "graph_embedding")
    return Exported(kind="paper", outputs=names, forward=forward)


def onnx_bytes(
    network: nn.Module, exported: Exported, example: PolicyInputs, notes: Mapping[str, Any]
) -> bytes:
    """Return `network` as an ONNX file that takes graphs of any size.

    Args:
        network: whose weights `exported.forward` uses.
        exported: what it computes.
        example: any inputs of at least 2 ops and 2 edges; nothing of it is kept.
        notes: what a model card says: data, seed, results. JSON values.
    """
    module = _Wrapped(network, exported.forward).eval()
    if len(example.devices) == 1:  # a size of 1 would be taken for one that is fixed
        example = replace(example, devices=np.repeat(example.devices, 2, axis=0))
    tensors = graph_tensors(example)
    dimensions = {name: torch.export.Dim(name, min=2) for name in ("ops", "devices", "groups")}
    half = torch.export.Dim("half", min=2)
    shapes = []
    for name in GraphTensors._fields:
        axes = DYNAMIC[name]
        shapes.append(
            {axis: 2 * half if dim == "edges" else dimensions[dim] for axis, dim in axes.items()}
        )
    buffer = io.BytesIO()
    quiet = logging.getLogger("torch.onnx")
    level = quiet.level
    quiet.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                module,
                tuple(tensors),
                input_names=list(GraphTensors._fields),
                output_names=list(exported.outputs),
                dynamic_shapes=tuple(shapes),
                opset_version=OPSET,
                dynamo=True,
                verbose=False,
            )
            program.save(buffer)
    finally:
        quiet.setLevel(level)
    model = onnx.load_from_string(buffer.getvalue())
    model.producer_name, model.producer_version, model.doc_string = "regal", "", ""
    for node in model.graph.node:
        del node.metadata_props[:]  # stack traces with paths of the machine
        node.doc_string = ""
    for value in (*model.graph.value_info, *model.graph.input, *model.graph.output):
        del value.metadata_props[:]
    del model.graph.metadata_props[:]
    onnx.helper.set_model_props(model, {METADATA: about_text(exported.kind, notes)})
    return model.SerializeToString(deterministic=True)


def about_text(kind: str, notes: Mapping[str, Any]) -> str:
    """Return what a file says of itself; `regal.policy.model` reads it."""
    about = {
        "format": FORMAT,
        "kind": kind,
        "features": feature_names(kind),
        "notes": dict(notes),
    }
    return json.dumps(about, separators=(",", ":"))


class _Wrapped(nn.Module):
    """A module whose forward takes the fields of `GraphTensors` one by one."""

    def __init__(
        self, network: nn.Module, forward: Callable[[GraphTensors], tuple[Tensor, ...]]
    ) -> None:
        super().__init__()
        self.network = network
        self._forward = forward

    def forward(
        self,
        nodes: Tensor,
        sources: Tensor,
        targets: Tensor,
        edges: Tensor,
        context: Tensor,
        devices: Tensor,
        groups: Tensor,
        group_sizes: Tensor,
    ) -> tuple[Tensor, ...]:
        return self._forward(
            GraphTensors(nodes, sources, targets, edges, context, devices, groups, group_sizes)
        )


def require_parity(
    exported: Exported, data: bytes, samples: Sequence[PolicyInputs], tolerance: float = 1e-3
) -> float:
    """Return the largest difference between the network and its exported form.

    Raises:
        ModelError: it is above `tolerance`.
    """
    running = PolicyNetwork(data, "exported network")
    worst = 0.0
    for inputs in samples:
        with torch.no_grad():
            wanted = exported.forward(graph_tensors(inputs))
        found = running(inputs)
        for name, tensor in zip(exported.outputs, wanted, strict=True):
            worst = max(worst, float(np.abs(found[name] - tensor.numpy()).max(initial=0.0)))
    if not worst <= tolerance:
        raise ModelError(
            f"exported network differs by {worst:.2g} from the one that was trained;"
            f" {tolerance:.2g} at most"
        )
    return worst
