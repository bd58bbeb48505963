"""Write the default method's policy as ONNX."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from regal.errors import ModelError
from regal.learning.prior_network import PARTS, STATE
from regal.policy.model import FORMAT, METADATA, PRIOR, PolicyNetwork, feature_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor, nn

    from regal.learning.prior_network import PriorNetwork

OPSET = 18


def prior_onnx(network: PriorNetwork, notes: Mapping[str, Any]) -> bytes:
    """Return the network as an ONNX file: a state in; logits of arms and modes, and a step, out.

    Args:
        network: what is exported.
        notes: what a model card says: data, seed, results. JSON values.
    """
    graph = _Graph()
    seen, of_modes = graph.trunk(network.trunk), graph.trunk(network.mode_trunk)
    bent = graph.linear(seen, network.arms)
    graph.node("Add", [bent, graph.linear("state", network.straight)], "arms")
    outputs = {"arms": network.arms.out_features, "log_step": 1}
    for part in PARTS:
        head = network.modes[part]
        raw = graph.linear(of_modes, head)
        bonus = graph.constant(getattr(network, f"{part}_bonus"))
        graph.node("Add", [raw, bonus], f"{part}_modes")
        graph.node("Identity", [graph.constant(getattr(network, f"{part}_means"))], f"{part}_means")
        outputs[f"{part}_modes"] = head.out_features
    graph.node("Identity", [graph.linear(of_modes, network.step)], "log_step")
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["states", size])
        for name, size in outputs.items()
    ]
    values += [
        helper.make_tensor_value_info(
            f"{part}_means", TensorProto.FLOAT, list(getattr(network, f"{part}_means").shape)
        )
        for part in PARTS
    ]
    state = helper.make_tensor_value_info("state", TensorProto.FLOAT, ["states", STATE])
    model = helper.make_model(
        helper.make_graph(graph.nodes, "policy", [state], values, graph.initializers),
        opset_imports=[helper.make_opsetid("", OPSET)],
        producer_name="regal",
        ir_version=9,
    )
    about = {
        "format": FORMAT,
        "kind": PRIOR,
        "features": feature_names(PRIOR),
        "notes": dict(notes),
    }
    helper.set_model_props(model, {METADATA: json.dumps(about, separators=(",", ":"))})
    onnx.checker.check_model(model)
    return model.SerializeToString(deterministic=True)


def require_prior_parity(network: PriorNetwork, data: bytes, tolerance: float = 1e-4) -> float:
    """Return the largest difference between the network and its exported form.

    Raises:
        ModelError: it is above `tolerance`.
    """
    states = np.random.default_rng(0).normal(size=(8, STATE)).astype(np.float32)
    found = PolicyNetwork(data, "exported network").run({"state": states})
    with torch.no_grad():
        said = network(torch.as_tensor(states))
    wanted = {"arms": said.arms, "log_step": said.log_step}
    wanted |= {f"{part}_modes": said.modes[part] for part in PARTS}
    worst = max(float(np.abs(found[name] - wanted[name].numpy()).max()) for name in wanted)
    if not worst <= tolerance:
        raise ModelError(f"exported network differs by {worst:.2g} from the one that was trained")
    return worst


class _Graph:
    """Nodes and constants, as they are added."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def constant(self, values: Tensor) -> str:
        name = f"constant_{len(self.initializers)}"
        array = values.detach().numpy()
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def node(self, kind: str, inputs: list[str], output: str) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output]))
        return output

    def linear(self, value: str, layer: nn.Linear) -> str:
        weight, bias = self.constant(layer.weight.T.contiguous()), self.constant(layer.bias)
        product = self.node("MatMul", [value, weight], f"product_{len(self.nodes)}")
        return self.node("Add", [product, bias], f"sum_{len(self.nodes)}")

    def trunk(self, layers: nn.Sequential) -> str:
        value = "state"
        for layer in (layers[0], layers[2]):
            value = self.node("Tanh", [self.linear(value, layer)], f"tanh_{len(self.nodes)}")
        return value
