"""A device with several memories: which one each buffer lies in, and what that costs."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest

from regal.cost.pool_times import pooled_time_ns
from regal.cost.roofline import graph_cost
from regal.devices.types import Pool, System
from regal.errors import PlanError
from regal.graph.builder import GraphBuilder
from regal.graph.types import Graph, LoadedModel
from regal.pipeline import plan_before
from regal.plan.check import require_valid_plan
from regal.plan.file import plan_from_json, plan_to_json
from regal.plan.pools import PoolPlan, Slot
from regal.plan.residents import residents_of
from regal.search.pool_plan import with_pools
from tests.graphs import random_graph
from tests.systems import device

if TYPE_CHECKING:
    from regal.plan.types import Plan


def pools_of(*sizes: int) -> tuple[Pool, ...]:
    """Return pools of so many bytes, each half as fast as the one before."""
    return tuple(
        Pool(name=f"p{i}", bytes=size, bytes_per_s=4e9 / 2**i) for i, size in enumerate(sizes)
    )


def model_of(graph: Graph) -> LoadedModel:
    return LoadedModel(framework="graph", entries=(graph,), source=None)


def pooled(graph: Graph, *sizes: int, in_one: bool = False) -> Plan:
    before = plan_before(model_of(graph))
    return with_pools([graph], before, pools_of(*sizes), in_one=in_one).plans[0]


def slots(plan: Plan) -> PoolPlan:
    assert plan.pools is not None
    return plan.pools


def weighted_chain() -> Graph:
    """Return x 8 -> a (weight 4) -> 16 -> b (weights 4 and 12, a scratch of 2) -> 8."""
    g = GraphBuilder("chain")
    w, v = g.parameter("w", 4), g.parameter("v", 12)
    a = g.op("A", [g.input("x", 8), w], [16], name="a")
    y = g.op("B", [*a, w, v], [8], name="b", workspace=2)
    return g.build(outputs=y)


def boxes(graph: Graph, plan: Plan) -> list[tuple[int, int, int, int, int]]:
    """Return (pool, first step, last step, low byte, high byte) of everything in a plan."""
    found = slots(plan)
    rows = [
        (*found.storages[s], placed.bytes, placed.first_step, placed.last_step)
        for s, placed in plan.offsets.items()
    ]
    rows += [
        (*found.workspaces[i], block.bytes, block.first_step, block.last_step)
        for i, block in plan.workspaces.items()
    ]
    rows += [
        (*slot, row.bytes, 0, len(plan.order) - 1)
        for slot, row in zip(found.residents, residents_of(graph), strict=True)
    ]
    return [(pool, a, b, at, at + size) for pool, at, size, a, b in rows]


def test_what_fits_lies_in_the_first_pool() -> None:
    plan = slots(pooled(weighted_chain(), 100, 100))
    assert {slot.pool for slot in (*plan.storages.values(), *plan.residents)} == {0}
    assert plan.used_bytes[1] == 0


def test_activations_come_first_and_then_the_weight_that_most_ops_read() -> None:
    """Step 0: 8 + 16, step 1: 16 + 2 + 8 = 26 bytes; w (read twice) still fits, v does not."""
    plan = slots(pooled(weighted_chain(), 30, 100))
    assert {slot.pool for slot in plan.storages.values()} == {0}
    assert plan.residents == (Slot(0, 26), Slot(1, 0))
    assert plan.used_bytes == (30, 12)


def test_the_buffer_that_the_first_pool_cannot_hold_goes_to_the_second() -> None:
    plan = slots(pooled(weighted_chain(), 15, 100))
    assert [plan.storages[s].pool for s in sorted(plan.storages)] == [0, 1, 0]
    assert plan.overflow_bytes == 0


def test_a_runtime_with_one_arena_has_it_whole_in_the_first_pool_that_holds_it() -> None:
    for size, pool in ((26, 0), (25, 1)):
        plan = slots(pooled(weighted_chain(), size, 100, in_one=True))
        assert {slot.pool for slot in plan.storages.values()} == {pool}


def test_what_passes_the_last_pool_is_an_overflow_and_no_error() -> None:
    assert slots(pooled(weighted_chain(), 4, 30)).overflow_bytes > 0


@pytest.mark.parametrize("seed", range(60))
def test_no_two_buffers_that_live_together_share_a_byte_of_a_pool(seed: int) -> None:
    graph = random_graph(seed, 8, alignment=1 + seed % 2, concats=True)
    plan = pooled(graph, 3 + seed % 5, 4, 1000)
    for (p, a, b, low, high), (q, c, d, bottom, top) in combinations(boxes(graph, plan), 2):
        if p == q and a <= d and c <= b:
            is_shared = low < top and bottom < high
            is_in_place = a == d or b == c  # one dies where the other one is written over it
            assert not is_shared or is_in_place
    used = slots(plan).used_bytes
    assert used[0] <= 3 + seed % 5
    assert used[1] <= 4
    assert all(high <= used[pool] for pool, _, _, _, high in boxes(graph, plan))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"storages": {0: Slot(0, 0), 1: Slot(0, 4), 2: Slot(1, 0)}}, "overlaps"),
        ({"storages": {0: Slot(2, 0), 1: Slot(0, 8), 2: Slot(1, 0)}}, "there are 2"),
        ({"storages": {0: Slot(0, 0), 1: Slot(0, 8)}}, "pools for 2 storages, it has 3"),
        ({"storages": {0: Slot(0, -1), 1: Slot(0, 8), 2: Slot(1, 0)}}, "starts before"),
        ({"workspaces": {}}, "pools for 0 workspaces, it has 1"),
        ({"residents": (Slot(1, 50),)}, "pools for 1 residents, it has 2"),
        ({"residents": (Slot(1, 50), Slot(1, 52))}, "overlaps"),
        ({"used_bytes": (23, 100)}, "ends after the 23 bytes"),
        ({"used_bytes": (24,)}, "expected some"),
        ({"pools": (), "used_bytes": ()}, "expected some"),
    ],
)
def test_the_checker_refuses_changed_slots(change: dict[str, Any], message: str) -> None:
    graph = weighted_chain()
    plan = plan_before(model_of(graph)).plans[0]
    storages = dict(zip(sorted(plan.offsets), (Slot(0, 0), Slot(0, 8), Slot(1, 0)), strict=True))
    good = PoolPlan(
        pools=pools_of(24, 100),
        storages=storages,
        workspaces={1: Slot(1, 8)},
        residents=(Slot(1, 50), Slot(1, 54)),
        used_bytes=(24, 100),
    )
    require_valid_plan(graph, replace(plan, pools=good))
    if "storages" in change:
        named = zip(sorted(plan.offsets), change["storages"].values(), strict=False)
        change = {"storages": dict(named)}
    with pytest.raises(PlanError, match=message):
        require_valid_plan(graph, replace(plan, pools=replace(good, **change)))


def test_storages_joined_in_place_must_share_their_slot() -> None:
    g = GraphBuilder("relu")
    y = g.op("Relu", [g.input("x", 8)], [8], in_place=[(0, 0)])
    graph = g.build(outputs=y, in_place_by_runtime=True)
    plan = pooled(graph, 8)
    first, second = slots(plan).storages
    apart = {first: Slot(0, 0), second: Slot(0, 8)}
    pools = replace(slots(plan), storages=apart, used_bytes=(16,))
    with pytest.raises(PlanError, match="several slots"):
        require_valid_plan(graph, replace(plan, pools=pools))


def test_a_plan_file_holds_the_slots() -> None:
    model = model_of(weighted_chain())
    plan = with_pools(model.entries, plan_before(model), pools_of(15, 100))
    text = plan_to_json(model, plan)
    assert plan_from_json(text.encode(), model) == plan
    for key, value in (("residents", [[0]]), ("used_bytes", [1.5, 0]), ("offsets", {"01": [0, 0]})):
        document = json.loads(text)
        document["pools"][key] = value
        with pytest.raises(PlanError, match="plan: pools"):
            plan_from_json(json.dumps(document).encode(), model)


def test_an_op_is_as_fast_as_the_memories_in_which_its_operands_lie() -> None:
    """Op a moves 28 bytes, 4 of them at 2 GB/s; b 40, 12 of them; launches take 1 ns each."""
    graph = weighted_chain()
    mcu = replace(device("mcu"), pools=pools_of(30, 100))
    cost = graph_cost(graph, System(name="mcu", devices=(mcu,)))
    storage = {tensor.name: tensor.storage for tensor in graph.tensors}
    fastest = pooled_time_ns(graph, {}, {}, mcu, cost)
    assert fastest == (1 + 28 / 4) + (1 + 40 / 4)
    spilled = pooled_time_ns(graph, {storage["w"]: 1, storage["v"]: 1}, {}, mcu, cost)
    a = 1 + 24 / 4 + 4 / 2
    b = 1 + 40 * (26 / 42) / 4 + 40 * (16 / 42) / 2  # of 42 touched bytes 2 are scratch
    assert spilled == -(-a // 1) + -(-b // 1)


def test_what_the_file_or_a_profile_says_does_not_depend_on_the_pool() -> None:
    graph = weighted_chain()
    mcu = replace(device("mcu"), pools=pools_of(30, 100))
    timed = replace(graph, ops=tuple(replace(op, times_ns={"": 7}) for op in graph.ops))
    cost = graph_cost(timed, System(name="mcu", devices=(mcu,)))
    everywhere = {tensor.storage: 1 for tensor in graph.tensors}
    assert pooled_time_ns(timed, everywhere, {}, mcu, cost) == 14


def test_entries_are_placed_apart_and_the_worst_one_counts() -> None:
    small = weighted_chain()
    g = GraphBuilder("large")
    large = g.build(outputs=g.op("A", [g.input("x", 40)], [40]))
    model = LoadedModel(framework="graph", entries=(small, large), source=None)
    plan = with_pools(model.entries, plan_before(model), pools_of(50, 10))
    assert plan.pool_bytes == (42, 40)
    assert plan.pool_overflow_bytes == 30
