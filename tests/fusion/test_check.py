"""The judge recomputes what it is told, and names the rule that a plan breaks."""

from dataclasses import replace

import pytest

from regal.errors import PlanError
from regal.fusion.check import check_fusion
from regal.fusion.types import FusionPlan, FusionProblem, Kernel, LayoutRule
from regal.graph.builder import GraphBuilder
from tests.fusion.problems import plain_problem


def diamond() -> FusionProblem:
    """Return x -> 0 -> (1, 2) -> 3; all may be fused, tensors have 4 bytes."""
    g = GraphBuilder()
    x = g.input("x", 4)
    (a,) = g.op("Conv", [x], [4], name="conv")
    (b,) = g.op("Relu", [a], [4], name="relu")
    (c,) = g.op("Exp", [a], [4], name="exp")
    (d,) = g.op("Add", [b, c], [4], name="add", in_place=[(0, 0)])
    return plain_problem(g.build(outputs=[d]), [(0, 1), (0, 2), (1, 3), (2, 3)])


def plan_of(*groups: tuple[int, ...], in_place: tuple[tuple[int, int], ...] = ()) -> FusionPlan:
    return FusionPlan(kernels=tuple(Kernel(ops=group) for group in groups), in_place=in_place)


def test_times_and_peak_of_a_hand_checked_plan() -> None:
    figures = check_fusion(diamond(), plan_of((0, 1, 2), (3,)))
    # launch 3 + max(work 3 x 2, read x 4 + write b, c 8), then add alone.
    assert figures.kernel_ns == (15, 10)
    assert figures.time_ns == 25
    assert figures.peak_bytes == (12,)  # x, b, c; then b, c, d


def test_one_kernel_keeps_its_inner_tensors_to_itself() -> None:
    figures = check_fusion(diamond(), plan_of((0, 1, 2, 3)))
    assert (figures.time_ns, figures.peak) == (3 + 8, 8)  # x and d alone


def test_a_kernel_of_one_op_may_write_over_an_input_that_dies() -> None:
    figures = check_fusion(diamond(), plan_of((0,), (1,), (2,), (3,), in_place=((2, 4),)))
    assert figures.peak == 12  # conv's output, relu's and exp's; add takes no more
    with pytest.raises(PlanError, match="cannot be written over"):
        check_fusion(diamond(), plan_of((0, 1, 2), (3,), in_place=((1, 2),)))
    with pytest.raises(PlanError, match="cannot be written over"):
        check_fusion(diamond(), plan_of((0, 1), (2, 3), in_place=((2, 4),)))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (((0,), (1,), (2,)), "op 'add' is in no kernel"),
        (((0, 1), (1, 2), (3,)), "op 'relu' is in two kernels"),
        (((0,), (2,), (3,), (1,)), "op 'add' runs in kernel 2, before 'relu'"),
        (((0, 1, 3), (2,)), "before 'exp'"),  # exp would have to interrupt the kernel
        (((0,), (1, 2), (3,)), "not connected"),
        (((1, 0), (2,), (3,)), "op 'relu' comes before 'conv'"),
        (((0,), (1,), (2,), (3,), (7,)), "no such op"),
    ],
)
def test_groups_that_are_none(groups: tuple[tuple[int, ...], ...], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        check_fusion(diamond(), plan_of(*groups))


def test_what_may_share_a_kernel_is_data_of_the_problem() -> None:
    problem = replace(diamond(), pairs=frozenset({(0, 1), (0, 2), (1, 3)}))
    with pytest.raises(PlanError, match="'exp' and 'add' cannot be fused"):
        check_fusion(problem, plan_of((0, 1, 2, 3)))
    with pytest.raises(PlanError, match="cannot share a kernel"):
        check_fusion(replace(diamond(), anchors=frozenset({0, 1})), plan_of((0, 1), (2,), (3,)))
    apart = replace(diamond(), anchors=frozenset({0}), not_with_anchors=frozenset({2}))
    with pytest.raises(PlanError, match="'conv' and 'exp' cannot share a kernel"):
        check_fusion(apart, plan_of((0, 2), (1,), (3,)))
    with pytest.raises(PlanError, match="4 ops; 3 at most"):
        check_fusion(replace(diamond(), most_ops=3), plan_of((0, 1, 2, 3)))


def laid_out() -> FusionProblem:
    """Return the diamond with two layouts of what conv makes, which is sensitive."""
    rules = (LayoutRule.SENSITIVE, *(LayoutRule.AGNOSTIC,) * 3)
    return replace(
        diamond(),
        layout_rules=rules,
        two_layouts=frozenset({1}),
        alone_ns=(((10, 4),), *(((10, 10),),) * 3),
    )


def test_a_copy_is_paid_once_for_all_its_readers() -> None:
    copy = Kernel(tensor=1, layout=0)
    conv = Kernel(ops=(0,), layout=1)
    rest = tuple(Kernel(ops=(i,)) for i in (1, 2, 3))
    figures = check_fusion(laid_out(), FusionPlan(kernels=(conv, copy, *rest)))
    assert figures.kernel_ns == (4, 11, 10, 10, 10)  # the copy: 3 + 2 x 4
    assert figures.peak == 12
    with pytest.raises(PlanError, match="tensor 1 is needed in both layouts and is not copied"):
        check_fusion(laid_out(), FusionPlan(kernels=(conv, *rest)))
    with pytest.raises(PlanError, match="copied twice"):
        check_fusion(laid_out(), FusionPlan(kernels=(conv, copy, copy, *rest)))
    with pytest.raises(PlanError, match="before the copy"):
        check_fusion(laid_out(), FusionPlan(kernels=(conv, rest[0], copy, *rest[1:])))
    with pytest.raises(PlanError, match="before it is made"):
        check_fusion(laid_out(), FusionPlan(kernels=(copy, conv, *rest)))
    with pytest.raises(PlanError, match="nobody asks for"):
        check_fusion(laid_out(), FusionPlan(kernels=(replace(conv, layout=0), copy, *rest)))


def test_an_op_that_is_fixed_is_contiguous() -> None:
    fixed = replace(laid_out(), layout_rules=(LayoutRule.FIXED,) * 4)
    kernels = tuple(Kernel(ops=(i,), layout=1) for i in range(4))
    with pytest.raises(PlanError, match="op 'conv' can only be contiguous"):
        check_fusion(fixed, FusionPlan(kernels=kernels))
