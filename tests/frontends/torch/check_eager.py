"""Graphs of what eager PyTorch runs, of modules small enough to write their ops down."""

import torch

from regal.frontends.torch.eager import (
    adam,
    momentum,
    recorded_inference,
    recorded_step,
)
from regal.frontends.torch.trace import fake_module
from regal.graph.check import require_valid_graph
from regal.graph.types import Graph, Role


def inference(make: type, *shapes: tuple[int, ...]) -> Graph:
    module, mode = fake_module(lambda: make().eval())
    with mode:
        args = tuple(torch.zeros(shape) for shape in shapes)
    return require_valid_graph(recorded_inference(module, mode, args, "g"))


def kinds(graph: Graph) -> list[str]:
    return [op.kind.removeprefix("aten.") for op in graph.ops]


class InPlace(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + 1.0
        z = y * 2.0  # reads y before it changes
        y.relu_()
        return y + z


def test_an_in_place_op_comes_after_earlier_readers_and_before_later_ones() -> None:
    graph = inference(InPlace, (2, 3))
    assert kinds(graph) == ["add.Tensor", "mul.Tensor", "relu_.default", "add.Tensor"]
    add, mul, relu, last = range(4)
    assert graph.ops[relu].control_inputs == (add, mul)
    assert relu in graph.ops[last].control_inputs
    # y and relu_(y) are one piece of memory, of 24 bytes.
    y, changed = graph.ops[add].outputs[0], graph.ops[relu].outputs[0]
    assert graph.tensors[y].storage == graph.tensors[changed].storage
    assert graph.tensors[y].bytes == 24


class Views(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * 2.0).view(6)[2:4].clone()


def test_views_lie_in_the_storage_of_what_they_view_at_their_offset() -> None:
    graph = inference(Views, (2, 3))
    assert kinds(graph) == ["mul.Tensor", "view.default", "slice.Tensor", "clone.default"]
    product, flat, part, copy = (graph.tensors[op.outputs[0]] for op in graph.ops)
    assert product.storage == flat.storage == part.storage
    assert (flat.storage_offset, part.storage_offset, part.bytes) == (0, 8, 8)
    assert copy.storage != product.storage
    assert copy.role is Role.OUTPUT


class Tied(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(3, 3, bias=False)
        self.second = torch.nn.Linear(3, 3, bias=False)
        self.second.weight = self.first.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))


def test_tied_weights_are_one_parameter() -> None:
    graph = inference(Tied, (2, 3))
    held = [t for t in graph.tensors if t.role is Role.PARAMETER]
    assert [t.bytes for t in held] == [36]


class Noisy(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = torch.rand_like(x)
        b = torch.bernoulli(x)
        return a + b


def test_random_ops_keep_their_order() -> None:
    graph = inference(Noisy, (4,))
    assert kinds(graph) == ["rand_like.default", "bernoulli.default", "add.Tensor"]
    assert graph.ops[1].control_inputs == (0,)
    assert graph.ops[2].control_inputs == ()


class Loss(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
        return ((x * self.weight).sum(),)


def test_a_training_step_updates_its_state_after_the_gradients() -> None:
    module, mode = fake_module(Loss)
    with mode:
        x = torch.zeros(2, 3)
    graph = require_valid_graph(recorded_step(module, mode, (x,), "g", momentum, ("velocity",)))
    assert kinds(graph)[:2] == ["mul.Tensor", "sum.default"]
    assert kinds(graph)[-3:] == ["mul_.Tensor", "add_.Tensor", "add_.Tensor"]
    state = [t.name for t in graph.tensors if t.role is Role.STATE]
    assert state == ["weight", "velocity"]
    assert [graph.tensors[t].role for t in graph.outputs] == [Role.OUTPUT]
    # The update of the weight comes after the op that read it for the forward pass.
    assert 0 in graph.ops[-1].control_inputs


def test_adam_has_eight_ops_per_parameter() -> None:
    module, mode = fake_module(Loss)
    with mode:
        x = torch.zeros(2, 3)
    plain = recorded_step(module, mode, (x,), "g", lambda parameters, state: None)
    module, mode = fake_module(Loss)
    with mode:
        x = torch.zeros(2, 3)
    graph = recorded_step(module, mode, (x,), "g", adam, ("mean", "square"))
    assert len(graph.ops) == len(plain.ops) + 8


def test_batch_statistics_are_state_when_training_and_parameters_when_not() -> None:
    def roles(is_training: bool) -> set[Role]:
        module, mode = fake_module(lambda: torch.nn.BatchNorm2d(4).train(is_training))
        with mode:
            x = torch.zeros(2, 4, 3, 3)
        graph = require_valid_graph(recorded_inference(module, mode, (x,), "g"))
        return {t.role for t in graph.tensors if "running" in t.name}

    assert roles(is_training=True) == {Role.STATE}
    assert roles(is_training=False) == {Role.PARAMETER}


def test_two_recordings_of_one_module_are_equal() -> None:
    assert inference(InPlace, (2, 3)) == inference(InPlace, (2, 3))


def test_operations_are_counted_while_recording() -> None:
    graph = inference(Tied, (2, 3))
    products = [op.flops for op in graph.ops if "mm" in op.kind]
    assert products == [2 * 2 * 3 * 3] * 2
