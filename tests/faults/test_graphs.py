"""Shapes of graphs on which other planners failed (docs/known_faults.md), as plain graphs."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from regal.errors import PlanError
from regal.graph.builder import GraphBuilder
from regal.graph.types import Graph, Role
from regal.plan.check import require_valid_plan
from regal.search.offsets import allocate, greedy_by_size
from regal.search.packing import plan_of_order
from tests.faults.clobber import planned, require_no_clobber, shares_bytes


def body(name: str, sizes: list[int], *, inner: Graph | None = None) -> Graph:
    """A branch: one op per size, each reading the one before; `inner` is a nested If."""
    g = GraphBuilder(name)
    value = g.input("p", sizes[0])
    for size in sizes:
        (value,) = g.op("Op", [value], [size])
    if inner is not None:
        (value,) = g.op("If", [value], [sizes[-1]], subgraphs=[inner, inner])
    return g.build(outputs=[value])


def test_a_branch_never_lies_on_a_value_that_is_read_after_the_if() -> None:
    """tensorflow/tflite-micro #853."""
    g = GraphBuilder()
    x, z = g.input("x", 16), g.input("z", 16)
    (c,) = g.op("Less", [x, z], [1])
    branches = [body("then", [16, 48, 16]), body("else", [16, 32, 16])]
    r = g.op("If", [c, x, z], [16], subgraphs=branches)
    graph = g.build(outputs=g.op("Add", [*r, z], [16]))
    plan = planned(graph)
    block = plan.workspaces[1]
    assert block.bytes >= max(each.arena_bytes for each in plan.bodies[1]) >= 64
    moved = replace(block, offset=plan.offsets[z].offset)
    clashing = replace(plan, workspaces={1: moved}, arena_bytes=1000)
    with pytest.raises(PlanError, match=r"'workspace of 1:If' at bytes .* overlaps"):
        require_valid_plan(graph, clashing)


def test_an_output_that_nobody_reads_is_live_in_the_step_that_writes_it() -> None:
    """tensorflow/tflite-micro #712, microsoft/onnxruntime #21019."""
    g = GraphBuilder()
    a, unused = g.op("LSTM", [g.input("x", 8)], [8, 8])
    (b,) = g.op("Op", [a], [8])
    graph = g.build(outputs=g.op("Op", [b], [8]))
    plan = planned(graph)
    place = plan.offsets[unused]
    assert (place.first_step, place.last_step, place.bytes) == (0, 0, 8)
    assert not shares_bytes(plan, unused, a)
    assert not shares_bytes(plan, unused, 0)  # x is read in that step
    moved = replace(place, offset=plan.offsets[a].offset)
    clashing = replace(plan, offsets={**plan.offsets, unused: moved})
    with pytest.raises(PlanError, match="overlaps"):
        require_valid_plan(graph, clashing)


def test_a_view_keeps_the_bytes_for_a_later_reader_of_its_source() -> None:
    """google-ai-edge/LiteRT #8889: RMSNorm over a reshaped value, then MUL with the source."""
    g = GraphBuilder()
    (source,) = g.op("Op", [g.input("x", 32)], [32])
    view = g.view("RESHAPE", source)
    (square,) = g.op("MUL", [view, view], [32], in_place=[(0, 0)])
    (mean,) = g.op("MEAN", [square], [4])
    (scale,) = g.op("RSQRT", [mean], [4], in_place=[(0, 0)])
    graph = g.build(outputs=g.op("MUL", [source, scale], [32], in_place=[(0, 0)]))
    plan = planned(graph)
    assert plan.offsets[source].last_step == 5
    assert (view, square) not in plan.in_place
    assert not shares_bytes(plan, source, square)


def test_the_storage_of_a_live_alias_is_not_reused() -> None:
    """apache/tvm #20190: left is an alias of src; right must not land on src."""
    g = GraphBuilder()
    x = g.input("x", 160)
    (src,) = g.op("add", [x], [160])
    left = g.view("match_cast", src)
    (right,) = g.op("add", [x], [160], in_place=[(0, 0)])
    graph = g.build(outputs=g.op("add", [left, right], [160], in_place=[(0, 0), (1, 0)]))
    plan = planned(graph)
    assert not shares_bytes(plan, src, right)
    assert plan.peak_bytes == 320


def test_an_op_writes_in_place_only_if_it_reads_last_in_every_order() -> None:
    """microsoft/onnxruntime #7633: one value, two branches, one reader could run in place."""
    g = GraphBuilder()
    (shared,) = g.op("Shape", [g.input("x", 8)], [8])
    first = g.op("Cast", [shared], [8], in_place=[(0, 0)])
    second = g.op("Slice", [shared], [8])
    graph = g.build(outputs=g.op("Pad", [*first, *second], [16]))
    for order in permutations(range(4)):
        if order[0] != 0 or order[3] != 3:
            continue
        plan = plan_of_order(graph, order, {}, peak_bound=0)
        require_no_clobber(graph, plan)
        assert bool(plan.in_place) == (order == (0, 2, 1, 3))
    too_early = replace(plan_of_order(graph, (0, 1, 2, 3), {}, peak_bound=0),
                        in_place=((shared, first[0]),))  # fmt: skip
    with pytest.raises(PlanError, match="in place is too early: op '2:Slice' still reads it"):
        require_valid_plan(graph, too_early)


def test_conditions_in_a_row_never_overwrite_results_that_stay_live() -> None:
    """pytorch/executorch #21490: branches of one cond share, conds in a row do not."""
    g = GraphBuilder()
    val, state = g.input("val", 32), g.input("state", 32)
    (pred,) = g.op("Pred", [val], [1])
    (copy,) = g.op("Clone", [val], [32])
    pair = [body("then", [32, 32]), body("else", [32, 32])]
    (r1,) = g.op("Cond", [pred, copy, state], [32], subgraphs=pair)
    nested = [body("then2", [32, 32], inner=pair[0]), body("else2", [32, 32])]
    (r2,) = g.op("Cond", [pred, r1], [32], subgraphs=nested)
    graph = g.build(outputs=[*g.op("Add", [r1, r2], [32]), r2])
    plan = planned(graph)
    assert not shares_bytes(plan, r1, r2)
    sizes = [each.arena_bytes for each in plan.bodies[3]]
    assert plan.workspaces[3].bytes == max(sizes) < sum(sizes)


def test_a_tensor_that_a_concatenation_takes_twice_lies_in_one_place() -> None:
    """pytorch/executorch #16091: cat([a, b, a]) without copies; the second a is one."""
    g = GraphBuilder()
    x = g.input("x", 8)
    a, b = g.op("Op", [x], [8]), g.op("Op", [x], [8])
    cat = g.op("Cat", [*a, *b, *a], [24], parts=[(0, 0), (1, 8), (2, 16)])
    graph = g.build(outputs=cat)
    plan = planned(graph)
    assert plan.sub_buffers
    assert len({inner for inner, _, _ in plan.sub_buffers}) == len(plan.sub_buffers)
    twice = replace(plan, sub_buffers=((a[0], cat[0], 0), (a[0], cat[0], 16)))
    with pytest.raises(PlanError, match="but places it elsewhere too"):
        require_valid_plan(graph, twice)


def test_a_tensor_that_two_concatenations_take_lies_in_one_of_them() -> None:
    """apache/tvm #15428."""
    g = GraphBuilder()
    x = g.input("x", 8)
    a, b, c = (g.op("Op", [x], [8])[0] for _ in range(3))
    first = g.op("Cat", [a, b], [16], parts=[(0, 0), (1, 8)])
    second = g.op("Cat", [a, c], [16], parts=[(0, 0), (1, 8)])
    plan = planned(g.build(outputs=[*first, *second]))
    assert [inner for inner, _, _ in plan.sub_buffers].count(a) <= 1
    assert plan.sub_buffers


def test_a_capacity_that_the_first_layout_misses_is_found() -> None:
    """apache/tvm #13369: 3@0, 2@0-1, 1@1-2, 4@2 fits into 5 bytes; largest first takes 6."""
    first, last, size = (np.array(row) for row in ([0, 0, 1, 2], [0, 1, 2, 2], [3, 2, 1, 4]))
    assert greedy_by_size(first, last, size).arena_bytes == 6
    found = allocate(first, last, size, capacity=5)
    assert found.is_placed
    assert found.arena_bytes == 5
    assert not allocate(first, last, size, capacity=4).is_placed


def test_calls_with_several_results_are_ordered() -> None:
    """openxla/xla #9065: two large inputs, calls to small computations, a tuple of four."""
    g = GraphBuilder()
    size = 4 * 256 * 256 * 4
    p0, p1 = g.input("p0", size), g.input("p1", size)
    add = body("add", [4])
    done = [g.op("call", pair, [size], subgraphs=[add])[0] for pair in ([p0, p1], [p1, p0])]
    done += [g.op("all-gather", [value], [size], subgraphs=[add])[0] for value in done]
    done += g.op("call", [done[2], done[3]], [size], subgraphs=[add])
    graph = g.build(outputs=[done[0], done[1], done[3], done[4]])
    plan = planned(graph)
    assert sorted(plan.order) == list(range(5))
    assert plan.peak_bound == plan.peak_bytes


def test_a_given_value_that_a_loop_only_reads_is_updated_in_its_own_bytes() -> None:
    """openxla/xla #45912: exp, a loop that reads the result, an update: one buffer."""
    inner = GraphBuilder("while")
    step = inner.input("i", 4)
    captured = inner.tensor("x1", 1000, Role.CAPTURED)
    loop = inner.build(outputs=inner.op("Add", [step, captured], [4]))
    g = GraphBuilder()
    x = g.input("x", 1000)
    (x1,) = g.op("exp", [x], [1000], in_place=[(0, 0)])
    (total,) = g.op("while", [g.input("i", 4), x1], [4], subgraphs=[loop], captures=1)
    (out,) = g.op("update", [x1, total], [1000], in_place=[(0, 0)])
    plan = planned(g.build(outputs=[out]))
    assert plan.in_place == ((x, x1), (x1, out))
    assert plan.offsets[x].offset == plan.offsets[out].offset
    assert plan.peak_bytes <= 1000 + 16
