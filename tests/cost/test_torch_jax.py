"""Operations of ATen operators and JAX primitives, counted by hand."""

from collections import Counter

import pytest

from regal.cost import jax, torch
from regal.cost.roofline import graph_cost
from regal.cost.torch import bare_name
from regal.cost.work import op_flops, work_of
from regal.devices.kinds import OP_KINDS
from regal.devices.presets import system_named
from regal.graph.types import AttributeValue
from tests.cost.ops import Shape, single

Case = tuple[str, str, list[Shape | None], list[Shape], dict[str, AttributeValue], int]
CASES: list[Case] = [
    # 2 x outputs x channels in x window
    ("torch", "aten.convolution.default", [(1, 3, 8, 8), (4, 3, 3, 3), (4,)], [(1, 4, 6, 6)],
     {"groups": 1, "transposed": False}, 2 * 144 * 27),
    ("torch", "aten.convolution.default", [(1, 4, 8, 8), (4, 1, 3, 3)], [(1, 4, 8, 8)],
     {"groups": 4}, 2 * 256 * 9),
    # transposed: every input element meets 3 channels x 2 x 2
    ("torch", "aten.convolution.default", [(1, 2, 4, 4), (2, 3, 2, 2)], [(1, 3, 8, 8)],
     {"transposed": True}, 2 * 32 * 12),
    ("torch", "aten.conv2d.default", [(1, 3, 8, 8), (4, 3, 3, 3)], [(1, 4, 6, 6)], {},
     2 * 144 * 27),
    ("torch", "aten.conv_transpose2d.input", [(1, 2, 4, 4), (2, 3, 2, 2)], [(1, 3, 8, 8)], {},
     2 * 32 * 12),
    # both gradients, each as dear as the forward pass; then that of the weights alone
    ("torch", "aten.convolution_backward.default",
     [(1, 4, 6, 6), (1, 3, 8, 8), (4, 3, 3, 3)], [(1, 3, 8, 8), (4, 3, 3, 3), (4,)], {},
     2 * 2 * 144 * 27),
    ("torch", "aten.convolution_backward.default",
     [(1, 4, 6, 6), (1, 3, 8, 8), (4, 3, 3, 3)], [(4, 3, 3, 3)], {}, 2 * 144 * 27),
    ("torch", "aten.mm.default", [(4, 5), (5, 6)], [(4, 6)], {}, 2 * 24 * 5),
    ("torch", "aten.addmm.default", [(6,), (4, 5), (5, 6)], [(4, 6)], {}, 2 * 24 * 5),
    ("torch", "aten.bmm.default", [(2, 4, 5), (2, 5, 6)], [(2, 4, 6)], {}, 2 * 48 * 5),
    ("torch", "aten.baddbmm.default", [(2, 4, 6), (2, 4, 5), (2, 5, 6)], [(2, 4, 6)], {},
     2 * 48 * 5),
    ("torch", "aten.linear.default", [(3, 4, 5), (6, 5), (6,)], [(3, 4, 6)], {}, 2 * 72 * 5),
    ("torch", "aten.dot.default", [(5,), (5,)], [()], {}, 2 * 5),
    ("torch", "aten.einsum.default", [(2, 3, 4), (2, 4, 5)], [(2, 3, 5)],
     {"equation": "bij,bjk->bik"}, 2 * 2 * 3 * 4 * 5),
    # batch x heads x rows x columns x channels: scores and values, 2 each
    ("torch", "aten._scaled_dot_product_flash_attention_for_cpu.default",
     [(2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 4)], [(2, 3, 5, 4), (2, 3, 5)], {},
     4 * 2 * 3 * 5 * 7 * 4),
    ("torch", "aten._scaled_dot_product_flash_attention_for_cpu_backward.default",
     [(2, 3, 5, 4), (2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 4)],
     [(2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 4)], {}, 10 * 2 * 3 * 5 * 7 * 4),
    # 6 x 2 rows meet W of 12 x 5 and R of 12 x 3
    ("torch", "aten.lstm.input", [(6, 2, 5), (12, 5), (12, 3), (12,), (12,)], [(6, 2, 3)], {},
     2 * 12 * (60 + 36)),
    ("torch", "aten.max_pool2d_with_indices.default", [(1, 3, 8, 8)], [(1, 3, 4, 4)],
     {"kernel_size": (3, 3)}, 48 * 9),
    ("torch", "aten.max_pool2d.default", [(1, 3, 8, 8)], [(1, 3, 4, 4)], {"kernel_size": 3},
     48 * 9),
    ("torch", "aten.avg_pool2d_backward.default", [(1, 3, 4, 4), (1, 3, 8, 8)], [(1, 3, 8, 8)],
     {"kernel_size": (2, 2)}, 48 * 4),
    ("torch", "aten._adaptive_avg_pool2d.default", [(1, 3, 8, 8)], [(1, 3, 1, 1)], {}, 192),
    ("torch", "aten.native_layer_norm.default", [(2, 8), (8,), (8,)], [(2, 8), (2, 1)], {},
     8 * 16),
    ("torch", "aten._native_batch_norm_legit_no_training.default", [(2, 8)], [(2, 8)], {}, 32),
    ("torch", "aten.native_batch_norm.default", [(2, 8)], [(2, 8)], {}, 4 * 16),
    ("torch", "aten._softmax.default", [(2, 7)], [(2, 7)], {}, 70),
    ("torch", "aten.sum.dim_IntList", [(3, 8)], [(3,)], {}, 21),
    ("torch", "aten.mean.dim", [(3, 8)], [(3,)], {}, 24),
    ("torch", "aten.add_.Tensor", [(2, 1), (1, 3)], [(2, 3)], {}, 6),
    ("torch", "aten.addcdiv_.default", [(6,), (6,), (6,)], [(6,)], {}, 18),
    ("torch", "aten.view.default", [(3, 8)], [(24,)], {}, 0),
    ("torch", "aten.cat.default", [(2, 3), (2, 3)], [(2, 6)], {}, 0),
    ("torch", "aten.upsample_nearest2d.vec", [(1, 1, 2, 2)], [(1, 1, 4, 4)], {}, 0),
    ("torch", "aten.upsample_bilinear2d.vec", [(1, 1, 2, 2)], [(1, 1, 4, 4)], {}, 7 * 16),
    ("torch", "aten.sort.default", [(3, 8)], [(3, 8), (3, 8)], {}, 24 * 3),
    ("jax", "dot_general", [(4, 5), (5, 6)], [(4, 6)], {"lhs_contracting": (1,)}, 2 * 24 * 5),
    ("jax", "dot_general", [(2, 5, 4), (2, 5, 6)], [(2, 4, 6)], {"lhs_contracting": (1,)},
     2 * 48 * 5),
    ("jax", "conv_general_dilated", [(1, 8, 8, 3), (3, 3, 3, 4)], [(1, 6, 6, 4)],
     {"rhs_out_axis": 3}, 2 * 144 * 27),
    # zeros between the elements are no work: as the transposed convolution above
    ("jax", "conv_general_dilated", [(1, 4, 4, 2), (2, 2, 2, 3)], [(1, 8, 8, 3)],
     {"rhs_out_axis": 3, "lhs_dilation": (2, 2)}, 2 * 192 * 8 // 4),
    ("jax", "reduce_window_max", [(1, 8, 8, 3)], [(1, 4, 4, 3)],
     {"window_dimensions": (1, 2, 2, 1)}, 48 * 4),
    ("jax", "select_and_scatter_add", [(1, 4, 4, 3), (1, 8, 8, 3)], [(1, 8, 8, 3)],
     {"window_dimensions": (1, 2, 2, 1)}, 48 * 4),
    ("jax", "reduce_sum", [(3, 8)], [(3,)], {}, 21),
    ("jax", "mul", [(3, 8), None], [(3, 8)], {}, 24),
    ("jax", "cumsum", [(3, 8)], [(3, 8)], {}, 24),
    ("jax", "broadcast_in_dim", [(8,)], [(3, 8)], {}, 0),
    ("jax", "reshape", [(3, 8)], [(24,)], {}, 0),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[f"{c[0]}-{c[1]}-{i}" for i, c in enumerate(CASES)])
def test_operations_are_those_counted_by_hand(case: Case) -> None:
    framework, kind, inputs, outputs, attributes, expected = case
    graph = single(framework, kind, inputs, outputs, attributes)
    assert op_flops(graph.ops[0], graph.tensors, framework) == expected
    assert work_of(graph.ops[0], graph.tensors, framework).is_known


@pytest.mark.parametrize(
    ("kind", "bare"),
    [
        ("aten.add_.Tensor", "add"),
        ("aten._softmax.default", "softmax"),
        ("aten.__and__.Scalar", "and"),
        ("torchvision.nms.default", "nms"),
        ("cond", "cond"),
    ],
)
def test_bare_names_have_no_namespace_overload_or_outer_underscores(kind: str, bare: str) -> None:
    assert bare_name(kind) == bare


@pytest.mark.parametrize("table", [torch.KINDS, jax.KINDS], ids=["torch", "jax"])
def test_every_operator_is_of_one_known_kind(table: dict[str, str]) -> None:
    assert set(table) <= set(OP_KINDS)
    counts = Counter(name for names in table.values() for name in names.split())
    assert [name for name, n in counts.items() if n > 1] == []


@pytest.mark.parametrize("rules", [torch, jax])
def test_every_rule_is_of_an_operator_with_a_kind(rules: object) -> None:
    names = {name for names in rules.KINDS.values() for name in names.split()}  # type: ignore[attr-defined]
    assert set(rules.FLOPS) <= names  # type: ignore[attr-defined]


def test_an_in_place_sum_moves_its_operands_once_and_a_view_moves_nothing() -> None:
    graph = single("torch", "aten.add_.Tensor", [(4,), (4,)], [(4,)])
    assert work_of(graph.ops[0], graph.tensors, "torch").bytes == 3 * 16
    graph = single("torch", "aten.t.default", [(4, 2)], [(2, 4)])
    assert work_of(graph.ops[0], graph.tensors, "torch").bytes == 0


@pytest.mark.parametrize(
    ("framework", "kind"), [("torch", "aten.mm.default"), ("jax", "dot_general")]
)
def test_a_roofline_prices_ops_of_both_frameworks(framework: str, kind: str) -> None:
    attributes: dict[str, AttributeValue] = {"lhs_contracting": (1,)}
    graph = single(framework, kind, [(512, 512), (512, 512)], [(512, 512)], attributes)
    cost = graph_cost(graph, system_named("1"))
    assert cost.sources == ("roofline",)
    assert cost.op_ns[0][0] > 1
