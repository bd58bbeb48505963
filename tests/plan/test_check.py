import random
from dataclasses import replace

import numpy as np
import pytest

from regal._native import OffsetFault, check_offsets
from regal.errors import PlanError
from regal.graph.builder import GraphBuilder
from regal.graph.types import Graph
from regal.plan.check import require_valid_plan
from regal.plan.types import Allocation, Plan
from regal.search.packing import before_plan


def two_branches() -> Graph:
    """Return x -> A -> c, x -> B -> d, Add(c, d): 8 bytes each but A and B make 16."""
    g = GraphBuilder("branches")
    x = g.input("x", 8)
    a = g.op("A", [x], [16], name="a")
    b = g.op("B", [x], [16], name="b")
    c = g.op("C", a, [8], name="c")
    d = g.op("D", b, [8], name="d")
    y = g.op("Add", [*c, *d], [8], name="add", in_place=[(0, 0)])
    return g.build(outputs=y)


def at(offset: int, size: int, first: int, last: int) -> Allocation:
    return Allocation(offset=offset, bytes=size, first_step=first, last_step=last)


# Order a c b d add. Step: live bytes
#   0 a: x8 a16 = 24    1 c: x8 a16 c8 = 32    2 b: x8 c8 b16 = 32
#   3 d: c8 b16 d8 = 32    4 add: c8 d8 (y over c) = 16
GOOD = Plan(
    order=(0, 2, 1, 3, 4),
    in_place=((3, 5),),
    offsets={
        0: at(0, 8, 0, 2),
        1: at(16, 16, 0, 1),
        2: at(16, 16, 2, 3),
        3: at(8, 8, 1, 4),
        4: at(0, 8, 3, 4),
        5: at(8, 8, 4, 4),
    },
    peak_bytes=32,
    arena_bytes=32,
    peak_bound=24,
    arena_bound=32,
)


def message_of(plan: Plan) -> str:
    with pytest.raises(PlanError) as error:
        require_valid_plan(two_branches(), plan)
    return str(error.value)


def moved(storage: int, offset: int) -> Plan:
    return replace(
        GOOD,
        offsets={**GOOD.offsets, storage: replace(GOOD.offsets[storage], offset=offset)},
    )


def test_the_hand_made_plan_is_valid() -> None:
    assert require_valid_plan(two_branches(), GOOD) is GOOD


def test_a_reader_before_its_writer_is_named() -> None:
    assert message_of(replace(GOOD, order=(2, 0, 1, 3, 4))) == (
        "op 'c' runs before op 'a', which it depends on"
    )


def test_a_missing_op_is_refused() -> None:
    assert "order of 'branches' has 4 steps for 5 ops" in message_of(
        replace(GOOD, order=(0, 2, 1, 3))
    )
    assert "misses or repeats one: see op 'a'" in message_of(replace(GOOD, order=(0, 0, 1, 3, 4)))


def test_a_peak_that_is_not_true_is_refused() -> None:
    assert message_of(replace(GOOD, peak_bytes=31)) == (
        "plan of 'branches' claims a peak of 31 bytes; it is 32"
    )


def test_overlapping_buffers_are_named_with_their_steps() -> None:
    assert message_of(moved(2, 8)) == (
        "buffer '2:C.0' at bytes [8, 16) overlaps 'b.0' at bytes [8, 24) during steps 2-3"
    ).replace("2:C.0", "c.0")


def test_a_buffer_past_the_arena_is_refused() -> None:
    assert message_of(replace(GOOD, arena_bytes=31)) == (
        "buffer 'a.0' at bytes [16, 32) ends after the arena of 31 bytes"
    )


def test_in_place_needs_a_pair_that_an_op_allows() -> None:
    assert message_of(replace(GOOD, in_place=((4, 5),))) == (
        "plan of 'branches' writes 'add.0' over 'd.0' in place; no op allows that"
    )


def test_in_place_partners_must_have_the_same_offset() -> None:
    assert message_of(moved(5, 24)) == (
        "buffers 'c.0' and 'add.0' share bytes in place but have offsets 8 and 24"
    )


def test_in_place_over_a_buffer_that_is_read_later_is_refused() -> None:
    g = GraphBuilder("late")
    x = g.input("x", 4)
    a = g.op("A", [x], [4], name="a")
    b = g.op("Relu", a, [4], name="b", in_place=[(0, 0)])
    y = g.op("Add", [*a, *b], [4], name="c")
    graph = g.build(outputs=y)
    plan = Plan(
        order=(0, 1, 2),
        in_place=((1, 2),),
        offsets={},
        peak_bytes=12,
        arena_bytes=12,
        peak_bound=0,
        arena_bound=0,
    )
    with pytest.raises(PlanError) as error:
        require_valid_plan(graph, plan)
    assert str(error.value) == (
        "'b.0' over 'a.0' in place is too early: op 'c' still reads it later"
    )


def test_a_buffer_without_offset_and_one_too_many_are_refused() -> None:
    rest = {s: a for s, a in GOOD.offsets.items() if s != 3}
    assert message_of(replace(GOOD, offsets=rest)) == "buffer 'c.0' has no offset"
    assert message_of(replace(GOOD, offsets={**GOOD.offsets, 9: at(0, 1, 0, 0)})) == (
        "plan places storage 9, which is not in use"
    )


def test_misaligned_offsets_are_refused() -> None:
    graph = replace(two_branches(), alignment=16)
    with pytest.raises(PlanError, match="is not aligned to 16 bytes"):
        require_valid_plan(graph, GOOD)


def test_workspace_needs_a_block_and_counts_in_the_peak() -> None:
    g = GraphBuilder("scratch")
    x = g.input("x", 4)
    y = g.op("Conv", [x], [4], name="conv", workspace=10)
    graph = g.build(outputs=y)
    plan = Plan(
        order=(0,),
        in_place=(),
        offsets={0: at(0, 4, 0, 0), 1: at(4, 4, 0, 0)},
        workspaces={0: at(8, 10, 0, 0)},
        peak_bytes=18,
        arena_bytes=18,
        peak_bound=18,
        arena_bound=18,
    )
    require_valid_plan(graph, plan)
    with pytest.raises(PlanError) as error:
        require_valid_plan(graph, replace(plan, workspaces={}))
    assert str(error.value) == (
        "op 'conv' needs a block of 10 bytes for its bodies and scratch, the plan gives 0"
    )


def test_a_bound_above_the_result_is_refused() -> None:
    assert "claims the bound 33, above its own peak of 32" in message_of(
        replace(GOOD, peak_bound=33)
    )
    assert "claims the bound 33, above its own arena of 32" in message_of(
        replace(GOOD, arena_bound=33)
    )


def test_of_several_overlaps_the_first_pair_of_the_list_is_named() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        rows = []
        for _ in range(rng.randrange(9)):
            first = rng.randrange(-1, 6)
            last = first + rng.randrange(-1 if rng.random() < 0.05 else 0, 4)
            size = rng.randrange(0 if rng.random() < 0.05 else 1, 4)
            rows.append((first, last, size, 2 * rng.randrange(6)))
        verdict = check_offsets(np.array(rows, dtype=np.int64).reshape(-1, 4), 11, 2)
        assert (verdict.fault, verdict.first, verdict.second) == slow_verdict(rows, 11)


def slow_verdict(rows: list[tuple[int, int, int, int]], arena: int) -> tuple[OffsetFault, int, int]:
    """Return the first fault in the sequence of the rows: alone, then against earlier ones."""
    for i, (first, last, size, offset) in enumerate(rows):
        if size < 1:
            return OffsetFault.EMPTY, i, -1
        if first > last:
            return OffsetFault.INVERTED, i, -1
        if offset + size > arena:
            return OffsetFault.PAST_END, i, -1
        for j, (other_first, other_last, other_size, other_offset) in enumerate(rows[:i]):
            times = set(range(first, last + 1)) & set(range(other_first, other_last + 1))
            places = set(range(offset, offset + size))
            if times and places & set(range(other_offset, other_offset + other_size)):
                return OffsetFault.OVERLAP, i, j
    return OffsetFault.NONE, -1, -1


def test_a_slice_inside_its_source_is_not_lost_when_the_source_is_overwritten() -> None:
    g = GraphBuilder("slice")
    x = g.input("x", 8)
    (a,) = g.op("Neg", [x], [8])
    (part,) = g.op("Slice", [a], [2])
    slice_op = replace(g._ops[-1], sub_buffers=((part, a, 0),))
    g._ops[-1] = slice_op
    y = g.op("Add", [a, part], [8], in_place=[(0, 0)], name="add")
    graph = g.build(outputs=y)
    # x 0-0, a with part 0-2, y over a in 2: the sum of the first two bytes would change `part`.
    plan = Plan(
        order=(0, 1, 2),
        in_place=((a, y[0]),),
        sub_buffers=((part, a, 0),),
        offsets={0: at(8, 8, 0, 0), 1: at(0, 8, 0, 2), 3: at(0, 8, 2, 2)},
        peak_bytes=16,
        arena_bytes=16,
        peak_bound=0,
        arena_bound=0,
    )
    with pytest.raises(PlanError, match="no op allows that"):
        require_valid_plan(graph, plan)


def test_an_operand_that_is_read_twice_is_overwritten_only_if_the_op_allows_both() -> None:
    for allowed, peak in (([(0, 0)], 16), ([(0, 0), (1, 0)], 8)):
        g = GraphBuilder("twice")
        a = g.op("Make", [], [8])
        y = g.op("Sub", [*a, g.view("View", a[0])], [8], in_place=allowed)
        plan = before_plan(replace(g.build(outputs=y), in_place_by_runtime=True))
        assert plan.peak_bytes == peak
