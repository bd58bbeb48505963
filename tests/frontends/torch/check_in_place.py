"""Which results may take the memory of an argument, and what waits for numbers."""

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from regal.frontends.torch.fx import graph_of
from regal.frontends.torch.in_place import way_of
from regal.graph.types import Graph

aten = torch.ops.aten


def graph(function: object, *args: torch.Tensor) -> Graph:
    return graph_of(make_fx(function, tracing_mode="fake")(*args), "g", in_place=True)


def in_place(function: object, *args: torch.Tensor) -> dict[str, tuple[tuple[int, int], ...]]:
    return {op.name: op.in_place for op in graph(function, *args).ops if op.in_place}


@pytest.mark.parametrize(
    ("target", "position", "way"),
    [
        (aten.relu.default, 0, (aten.relu_.default, "")),
        (aten.add.Tensor, 1, (aten.add.out, "out")),
        (aten.threshold_backward.default, 1, (aten.threshold_backward.grad_input, "grad_input")),
        (aten.rsub.Scalar, 0, None),  # its kernel is generated: it computes elsewhere and copies
        (aten._softmax.default, 0, None),  # looks at whole rows
        (aten.view.default, 0, None),  # a view
        (aten.relu_.default, 0, None),  # overwrites anyhow
    ],
)
def test_kernels_that_write_over_an_argument_are_known(
    target: torch._ops.OpOverload, position: int, way: object
) -> None:
    assert way_of(target, position) == way


def test_what_the_caller_gives_is_never_overwritten() -> None:
    assert in_place(lambda x: x.relu(), torch.zeros(4)) == {}


def test_a_result_may_take_the_memory_of_an_argument_of_its_shape_and_type() -> None:
    found = in_place(lambda x: ((x + 1).relu() > 0).sum(), torch.zeros(4))
    assert found == {"relu": ((0, 0),)}  # not the comparison: bytes over floats


def test_a_matrix_product_is_not_written_over_what_it_multiplies() -> None:
    def square(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        return torch.addmm(y, y, y)

    assert in_place(square, torch.zeros(4, 4)) == {}


def test_an_expanded_view_takes_no_more_than_what_it_lies_in() -> None:
    expanded = graph(lambda x: (x + 1).expand(100, 4), torch.zeros(4))
    assert [tensor.bytes for tensor in expanded.tensors] == [16, 16, 16]


def test_what_reads_a_number_waits_for_the_op_that_makes_it() -> None:
    def fill(x: torch.Tensor) -> torch.Tensor:
        return torch.full((4,), 1.0) * x.sum().item()

    module = make_fx(fill, tracing_mode="symbolic")(torch.ones(3))
    found = graph_of(module, "g", number_of=lambda size: 3 if not isinstance(size, int) else size)
    ops = {op.kind: (i, op) for i, op in enumerate(found.ops)}
    made, _ = ops["aten._local_scalar_dense.default"]
    _, product = ops["aten.mul.Tensor"]
    assert made in product.control_inputs
