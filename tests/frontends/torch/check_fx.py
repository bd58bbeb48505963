"""Graphs of exported programs and of AOTAutograd's joint graphs."""

import pytest
import torch

from regal.errors import ModelError
from regal.frontends.torch.fx import graph_of
from regal.frontends.torch.trace import exported_graph, fake_module, joint_graph
from regal.graph.check import require_valid_graph
from regal.graph.types import Role


class Chain(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 4)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(1.0)
        return torch.relu_(self.layer(x))


def test_an_exported_program_knows_parameters_state_and_inputs() -> None:
    module, mode = fake_module(lambda: Chain().eval())
    with mode:
        x = torch.zeros(2, 3)
    graph = require_valid_graph(exported_graph(module, (x,), "g"))
    roles = {t.name: t.role for t in graph.tensors}
    assert roles["p_layer_weight"] is Role.PARAMETER
    assert roles["b_count"] is Role.STATE
    assert [graph.tensors[t].shape for t in graph.inputs] == [(2, 3)]
    assert [op.kind for op in graph.ops if "relu" in op.kind] == ["aten.relu_.default"]


class Branches(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda a: a.sin() + 1.0, lambda a: a.cos(), (x,))


def test_the_branches_of_a_condition_are_bodies() -> None:
    program = torch.export.export(Branches(), (torch.zeros(3),), strict=False)
    graph = require_valid_graph(graph_of(program.graph_module, "g"))
    (cond,) = [op for op in graph.ops if op.subgraphs]
    assert [len(body.ops) for body in cond.subgraphs] == [2, 1]
    assert {t.role for body in cond.subgraphs for t in body.tensors[:1]} == {Role.CAPTURED}


class Loss(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used = torch.nn.Parameter(torch.ones(3))
        self.unused = torch.nn.Parameter(torch.ones(3))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
        return ((x * self.used).sum(),)


def test_a_joint_graph_returns_the_loss_and_the_gradients_of_what_it_depends_on() -> None:
    module, mode = fake_module(Loss)
    with mode:
        x = torch.zeros(2, 3)
    graph = require_valid_graph(joint_graph(module, (x,), "g"))
    assert [graph.tensors[t].shape for t in graph.outputs] == [(), (3,)]
    assert [t.shape for t in graph.tensors if t.role is Role.PARAMETER] == [(3,), (3,)]


def test_a_module_with_calls_to_modules_is_refused() -> None:
    traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))
    with pytest.raises(ModelError, match="is a call_module; export it first"):
        graph_of(traced, "g")
