"""Decoded plans are legal, and worth what the decoder says; the judge recomputes both."""

from random import Random

import numpy as np
import pytest

from regal import _native
from regal.fusion.bounds import time_bound
from regal.fusion.check import Judge, check_fusion
from regal.fusion.numbers import fusion_numbers
from regal.fusion.types import FusionPlan, FusionProblem, Kernel, LayoutRule
from regal.graph.builder import GraphBuilder
from tests.fusion.problems import every_order, every_plan, plain_problem, random_problem

UNLIMITED = 2**63 - 1
NEUTRAL = 1 << 31


def decoded(
    problem: FusionProblem, genes: np.ndarray[tuple[int], np.dtype[np.uint32]]
) -> tuple[FusionPlan, _native.DeviceScore]:
    native = fusion_numbers(problem)
    kernels, order, numbers, pairs, score, _, _ = _native.decode_fusion(
        native, 1.0, 1.0, UNLIMITED, genes
    )
    rows = [Kernel(ops=tuple(ops), tensor=t, layout=layout) for ops, t, layout in kernels]
    happened = _native.simulate(numbers, order).in_place.reshape(-1, 3).tolist()
    tensors = {tuple(row[:3]): (row[3], row[4]) for row in pairs}
    return (
        FusionPlan(
            kernels=tuple(rows[k] for k in order),
            in_place=tuple(tensors[tuple(row)] for row in happened),
        ),
        score,
    )


def random_genes(
    rng: np.random.Generator, problem: FusionProblem
) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    genes = _native.fusion_genes(fusion_numbers(problem))
    return rng.integers(0, 1 << 32, size=genes.size, dtype=np.uint32)


@pytest.mark.parametrize("n_ops", [1, 3, 6, 12, 25])
def test_what_keys_decode_to_is_legal_and_costs_what_the_decoder_says(n_ops: int) -> None:
    rng, keys = Random(n_ops), np.random.default_rng(n_ops)
    fused = copies = overwrites = 0
    for _ in range(150):
        problem = random_problem(rng, n_ops)
        plan, score = decoded(problem, random_genes(keys, problem))
        figures = check_fusion(problem, plan)
        assert (figures.time_ns, figures.peak) == (score.time, score.peak)
        fused += sum(len(kernel.ops) > 1 for kernel in plan.kernels)
        copies += sum(kernel.is_copy for kernel in plan.kernels)
        overwrites += len(plan.in_place)
    assert n_ops == 1 or min(fused, copies, overwrites) > 20


def test_the_cheapest_layouts_are_those_of_a_search_over_all() -> None:
    rng = Random(1)
    for _ in range(200):
        problem = random_problem(rng, rng.randint(1, 6))
        n = len(problem.graph.ops)
        prices = np.array([rng.randint(0, 9) for _ in range(2 * n)], dtype=np.int64)
        layouts, cost = _native.cheapest_layouts(fusion_numbers(problem), prices)
        best = min(
            _layout_cost(problem, prices, [number >> i & 1 for i in range(n)])
            for number in range(1 << n)
        )
        assert cost == best == _layout_cost(problem, prices, layouts.tolist())


def _layout_cost(
    problem: FusionProblem, prices: np.ndarray[tuple[int], np.dtype[np.int64]], layouts: list[int]
) -> float:
    graph = problem.graph
    made: dict[int, int] = {}
    for i, op in enumerate(graph.ops):
        if layouts[i] and problem.layout_rules[i] is LayoutRule.FIXED:
            return float("inf")
        made |= dict.fromkeys(op.outputs, layouts[i])
    asked = {(t, layouts[i]) for i, op in enumerate(graph.ops) for t in op.inputs}
    asked |= set(zip(graph.outputs, problem.output_layouts, strict=True))
    copied = {
        t
        for t, layout in asked
        if t in problem.two_layouts and layout >= 0 and layout != made.get(t, 0)
    }
    ops = sum(int(prices[2 * i + layout]) for i, layout in enumerate(layouts))
    return ops + sum(problem.convert_ns[t][0] for t in copied)


def test_no_plan_is_faster_than_the_bound_or_than_the_best_of_all_plans() -> None:
    rng, keys = Random(3), np.random.default_rng(3)
    reached = tight = 0
    for _ in range(40):
        problem = random_problem(rng, 4)
        plans = list(every_plan(problem))
        times = [sum(Judge(problem, plan).kernel_ns(k) for k in plan.kernels) for plan in plans]
        found = [decoded(problem, random_genes(keys, problem))[1].time for _ in range(60)]
        bound = time_bound(problem)
        assert bound <= min(times) <= min(found)
        reached += min(times) == min(found)
        tight += bound == min(times)
    assert reached >= 36
    assert tight >= 3


def test_no_order_of_the_kernels_needs_less_memory_than_the_best_of_all_plans() -> None:
    rng, keys = Random(4), np.random.default_rng(4)
    reached = 0
    for _ in range(12):
        problem = random_problem(rng, 3)
        peaks = [
            Judge(problem, order).peak_bytes()
            for plan in every_plan(problem)
            for order in every_order(problem, plan)
        ]
        found = [decoded(problem, random_genes(keys, problem)) for _ in range(60)]
        alone = [Judge(problem, FusionPlan(kernels=plan.kernels)).peak_bytes() for plan, _ in found]
        assert min(peaks) <= min(alone)
        reached += min(peaks) == min(alone)
    assert reached >= 10


def test_a_chain_of_pointwise_ops_becomes_one_kernel_by_neutral_keys() -> None:
    g = GraphBuilder()
    tensors = [g.input("x", 8)]
    for _ in range(3):
        tensors += g.op("Relu", tensors[-1:], [8])
    problem = plain_problem(g.build(outputs=tensors[-1:]), [(0, 1), (1, 2)])
    genes = _native.fusion_genes(fusion_numbers(problem))
    plan, score = decoded(problem, np.full(genes.size, NEUTRAL, dtype=np.uint32))
    assert plan.groups == ((0, 1, 2),)
    # launch 3 + max(work 3 x 2, reads 8 and writes 8); input and output live at once.
    assert (score.time, score.peak) == (3 + 16, 16)


def test_a_group_that_a_third_op_would_have_to_interrupt_stays_apart() -> None:
    g = GraphBuilder()
    x = g.input("x", 4)
    (a,) = g.op("Relu", [x], [4])
    (b,) = g.op("Sort", [a], [4])
    (c,) = g.op("Add", [a, b], [4])
    problem = plain_problem(g.build(outputs=[c]), [(0, 2)])
    genes = _native.fusion_genes(fusion_numbers(problem))
    plan, _ = decoded(problem, np.full(genes.size, (1 << 32) - 1, dtype=np.uint32))
    assert plan.groups == ((0,), (1,), (2,))
