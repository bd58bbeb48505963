"""Write the default method's policy as ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from regal.errors import ModelError
from regal.learning.export import about_text
from regal.learning.prior_network import ASKED, LONGEST, OBJECTIVES, PARTS, SPENT, STATE
from regal.policy.inputs import CONTEXT
from regal.policy.model import METADATA, PRIOR, PolicyNetwork
from regal.search.devices.guide import ARMS

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
    seen = graph.node("Mul", ["state", graph.constant(network.get_buffer("seen"))], "seen")
    of_modes = graph.trunk(seen, network.mode_trunk)
    graph.arms(seen, network)
    outputs = {"arms": len(ARMS), "log_step": 1}
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
    helper.set_model_props(model, {METADATA: about_text(PRIOR, notes)})
    onnx.checker.check_model(model)
    return model.SerializeToString(deterministic=True)


def require_prior_parity(network: PriorNetwork, data: bytes, tolerance: float = 1e-4) -> float:
    """Return the largest difference between the network and its exported form.

    Raises:
        ModelError: it is above `tolerance`.
    """
    states = np.random.default_rng(0).normal(size=(9, STATE)).astype(np.float32)
    states[:, CONTEXT.index("time_weight")] = np.repeat((1.0, 0.0, 0.5), 3)
    states[:, CONTEXT.index("is_balanced")] = np.repeat((0.0, 0.0, 1.0), 3)
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
        return self.product(value, layer.weight, layer.bias)

    def product(self, value: str, weight: Tensor, bias: Tensor) -> str:
        names = self.constant(weight.T.contiguous()), self.constant(bias)
        product = self.node("MatMul", [value, names[0]], f"product_{len(self.nodes)}")
        return self.node("Add", [product, names[1]], f"sum_{len(self.nodes)}")

    def arms(self, seen: str, network: PriorNetwork) -> None:
        """Add the arms of all objectives, each times whether it is asked for and guided so far."""
        places = [*(CONTEXT.index(name) for name in ASKED), SPENT]
        picked = [self.constant(torch.eye(STATE)[:, place : place + 1]) for place in places]
        weight, balanced, spent = (
            self.node("MatMul", ["state", one], f"asked_{i}") for i, one in enumerate(picked)
        )
        timed = self.node("Sign", [weight], "counts_time")
        one = self.constant(torch.ones(1))
        asked = {
            "time": self.node("Sub", [timed, balanced], "is_time"),
            "memory": self.node("Sub", [one, timed], "is_memory"),
            "balanced": balanced,
        }
        parts = []
        for i, name in enumerate(OBJECTIVES):
            head = network.arms[name]
            bent = self.linear(self.trunk(seen, head.trunk), head.bent)
            line = self.product(seen, *head.line())
            worth = self.node("Add", [bent, line], f"worth_{name}")
            until = self.constant(LONGEST * network.get_buffer("guides")[i : i + 1])
            is_before = self.node("Less", [spent, until], f"is_before_{name}")
            is_guided = f"is_guided_{name}"
            self.nodes.append(
                helper.make_node("Cast", [is_before], [is_guided], to=TensorProto.FLOAT)
            )
            share = self.node("Mul", [asked[name], is_guided], f"share_{name}")
            parts.append(self.node("Mul", [worth, share], f"arms_{name}"))
        self.node("Sum", parts, "arms")

    def trunk(self, value: str, layers: nn.Sequential) -> str:
        for layer in (layers[0], layers[2]):
            value = self.node("Tanh", [self.linear(value, layer)], f"tanh_{len(self.nodes)}")
        return value
