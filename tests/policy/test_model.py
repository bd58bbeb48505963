"""Exported networks: wrong files are told in one line, right ones run the same each time."""

import json
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from regal.errors import UsageError
from regal.policy.inputs import node_feature_names, policy_inputs
from regal.policy.model import FORMAT, METADATA, PolicyNetwork, feature_names
from regal.search.devices.compact import compact_devices
from tests.policy.problems import TIME, random_problem


def network_bytes(about: object) -> bytes:
    """Return a network whose only output is twice the features of the ops."""
    shape: list[str | int | None] = ["ops", len(node_feature_names())]
    graph = helper.make_graph(
        [helper.make_node("Add", ["nodes", "nodes"], ["twice"])],
        "twice",
        [helper.make_tensor_value_info("nodes", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("twice", TensorProto.FLOAT, shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    if about is not None:
        helper.set_model_props(model, {METADATA: json.dumps(about)})
    onnx.checker.check_model(model)
    data: bytes = model.SerializeToString()
    return data


def about_of(**changes: Any) -> dict[str, Any]:
    return {"format": FORMAT, "kind": "paper", "features": feature_names(), **changes}


def test_outputs_come_by_name_for_graphs_of_any_size() -> None:
    network = PolicyNetwork(network_bytes(about_of()), "twice")
    assert network.kind == "paper"
    for ops in (1, 7):
        problem = random_problem(1, ops)
        inputs = policy_inputs(problem, compact_devices(problem), TIME)
        assert np.array_equal(network(inputs)["twice"], 2 * inputs.nodes)


@pytest.mark.parametrize(
    ("about", "message"),
    [
        (None, "without 'regal.policy': not a policy"),
        ([], "its 'regal.policy' is broken"),
        (about_of(kind=None), "its 'regal.policy' is broken"),
        (about_of(format=99), "has format 99; this version reads 1"),
        (about_of(features={**feature_names(), "edges": ["a"]}), "other features of edges"),
        (about_of(features=None), "other features of nodes"),
    ],
)
def test_a_wrong_file_is_told_in_one_line(about: object, message: str) -> None:
    with pytest.raises(UsageError, match=message) as error:
        PolicyNetwork(network_bytes(about), "wrong.onnx")
    assert "\n" not in str(error.value)


def test_a_file_whose_description_is_damaged_is_told_in_one_line() -> None:
    whole = network_bytes(about_of())
    assert whole.count(b'"duration"') == 1
    with pytest.raises(UsageError, match="is not an ONNX file that runs") as error:
        PolicyNetwork(whole.replace(b'"duration"', b'"d\xe0ration"'), "wrong.onnx")
    assert "\n" not in str(error.value)


def test_a_description_that_is_nested_too_deep_is_broken() -> None:
    model = onnx.load_from_string(network_bytes(None))
    helper.set_model_props(model, {METADATA: 100_000 * "["})
    with pytest.raises(UsageError, match=r"its 'regal.policy' is broken"):
        PolicyNetwork(model.SerializeToString(), "wrong.onnx")
