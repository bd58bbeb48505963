"""The checker of schedules: one hand-made plan, and what it says when a number of it is wrong."""

import random
from dataclasses import replace

import pytest

from regal.cost.types import GraphCost
from regal.devices.types import System
from regal.errors import PlanError
from regal.graph.builder import GraphBuilder
from regal.graph.types import Graph, LoadedModel
from regal.plan.schedule import Copy, Figures, ModelSchedule, Schedule, SchedulePlan, Transfer
from regal.plan.schedule_check import check_schedule_plan, require_valid_model_schedule
from regal.plan.types import Allocation
from tests.graphs import random_graph, two_branches
from tests.search.test_device_packing import random_plan
from tests.systems import cost_of, random_cost, random_system, system_of

X, W, A, B, C, D, Y = range(7)  # tensors, and their storages
SYSTEM = system_of(2, memory=120)  # 2 ns + 1 ns per byte
COST = GraphCost(op_ns=((3, 3), (4, 4), (2, 2), (2, 2), (5, 5)), sources=("file",) * 5)


def copy(
    storage: int, device: int, place: tuple[int, int], steps: tuple[int, int], life: tuple[int, int]
) -> Copy:
    offset, size = place
    return Copy(
        storage=storage,
        allocation=Allocation(
            offset=offset, bytes=size, first_step=steps[0], last_step=steps[1], device=device
        ),
        start_ns=life[0],
        end_ns=life[1],
    )


# d0 runs a [0, 3), c [3, 5), add [26, 31); d1 runs b [10, 14), d [14, 16).
# x goes over in [0, 10), d's output back in [16, 26).
#   d0: x [0, 10) a [0, 5) c [3, 31) D [16, 31) y over c [26, 31)
#       begins at 0, 3, 16, 26: x a = 24, x a c = 32, c D = 16, c D = 16
#   d1: x [0, 14) b [10, 16) D [14, 26), workspace of b [10, 14)
#       begins at 0, 10, 14: x = 8, x b 4 = 28, b D = 24; with w 128 of 120 bytes
GOOD = SchedulePlan(
    schedule=Schedule(
        placement=(0, 1, 0, 1, 0),
        order=(0, 2, 1, 3, 4),
        transfers=(Transfer(tensor=X, source=0, target=1), Transfer(tensor=D, source=1, target=0)),
        homes={X: 0},
        in_place=((C, Y),),
    ),
    figures=Figures(
        time_ns=31,
        peak_bytes=(32, 28),
        resident_bytes=(0, 100),
        overflow_bytes=8,
        op_start_ns=(0, 10, 3, 14, 26),
        op_end_ns=(3, 14, 5, 16, 31),
        transfer_start_ns=(0, 16),
        transfer_end_ns=(10, 26),
    ),
    copies=(
        copy(X, 0, (0, 8), (0, 1), (0, 10)),
        copy(A, 0, (8, 16), (0, 1), (0, 5)),
        copy(C, 0, (24, 8), (1, 3), (3, 31)),
        copy(D, 0, (0, 8), (2, 3), (16, 31)),
        copy(Y, 0, (24, 8), (3, 3), (26, 31)),
        copy(X, 1, (0, 8), (0, 1), (0, 14)),
        copy(B, 1, (8, 16), (1, 2), (10, 16)),
        copy(D, 1, (0, 8), (2, 2), (14, 26)),
    ),
    arena_bytes=(32, 28),
    time_bound_ns=14,
    peak_bound=24,
    workspaces={1: Allocation(offset=24, bytes=4, first_step=1, last_step=1, device=1)},
)


def message_of(plan: SchedulePlan, system: System = SYSTEM, cost: GraphCost = COST) -> str:
    with pytest.raises(PlanError) as error:
        check_schedule_plan(two_branches(), system, cost, plan)
    return str(error.value)


def scheduled(**changes: object) -> SchedulePlan:
    return replace(GOOD, schedule=replace(GOOD.schedule, **changes))  # type: ignore[arg-type]


def figured(**changes: object) -> SchedulePlan:
    return replace(GOOD, figures=replace(GOOD.figures, **changes))  # type: ignore[arg-type]


def with_copy(index: int, changed: Copy) -> SchedulePlan:
    return replace(GOOD, copies=(*GOOD.copies[:index], changed, *GOOD.copies[index + 1 :]))


def with_allocation(index: int, **changes: int) -> SchedulePlan:
    old = GOOD.copies[index]
    return with_copy(index, replace(old, allocation=replace(old.allocation, **changes)))


def test_the_hand_made_plan_is_valid() -> None:
    assert check_schedule_plan(two_branches(), SYSTEM, COST, GOOD) == GOOD.figures


def test_every_broken_decision_is_named() -> None:
    back, there = GOOD.schedule.transfers[1], GOOD.schedule.transfers[0]
    for plan, message in (
        (
            scheduled(placement=(0, 1, 0, 1)),
            "placement of 'branches' has 4 entries for 5 ops",
        ),
        (scheduled(placement=(0, 1, 0, 2, 0)), "op 'd' is placed on device 2, which cannot run it"),
        (
            scheduled(order=(0, 2, 1, 4)),
            "order of 'branches' has 4 steps for 5 ops and misses or repeats one: see op -1",
        ),
        (
            scheduled(order=(0, 2, 3, 1, 4)),
            "op 'd' is ordered before op 'b', which it depends on",
        ),
        (
            scheduled(transfers=(there,)),
            "tensor 'd.0' is not sent to 'd0', where op 'add' reads it",
        ),
        (
            scheduled(transfers=(there, back, back)),
            "transfer of 'd.0' from 'd1' to 'd0' is listed twice",
        ),
        (
            scheduled(transfers=(there, back, Transfer(tensor=A, source=0, target=1))),
            "transfer of 'a.0' from 'd0' to 'd1' is of no use: the tensor is not made there, or"
            " nothing on the target reads it",
        ),
        (
            scheduled(transfers=(Transfer(tensor=W, source=0, target=1),)),
            "plan of 'branches' sends 'w', which is neither made by an op nor given to the graph",
        ),
        (
            scheduled(homes={}),
            "graph input 'x' has the home device -1; its home is a device that runs a reader, or"
            " the first device if nothing reads it",
        ),
        (
            scheduled(homes={X: 0, A: 0}),
            "plan of 'branches' gives a home to 'a.0', which is no input of the graph",
        ),
        (
            scheduled(in_place=((D, Y),)),
            "plan of 'branches' writes 'add.0' over 'd.0' in place; no op allows that",
        ),
        (
            scheduled(order=(0, 2, 1, 3, 1 << 40)),
            f"plan of 'branches' names op or device {1 << 40}",
        ),
    ):
        assert message_of(plan) == message


def test_orders_that_wait_for_each_other_are_a_circle() -> None:
    g = GraphBuilder("circle")
    x = g.input("x", 1)
    a = g.op("A", [x], [1], name="a")
    b = g.op("B", a, [1], name="b")
    c = g.op("C", b, [1], name="c")
    d = g.op("D", [*c, *a], [1], name="d")
    graph = g.build(outputs=d)
    plan = replace(
        GOOD,
        schedule=Schedule(
            placement=(0, 1, 0, 1),
            order=(0, 1, 2, 3),
            # c cannot be made before a arrived, and a waits behind c on the link.
            transfers=(
                Transfer(tensor=c[0], source=0, target=1),
                Transfer(tensor=a[0], source=0, target=1),
                Transfer(tensor=b[0], source=1, target=0),
            ),
            homes={x: 0},
        ),
    )
    with pytest.raises(PlanError) as error:
        check_schedule_plan(graph, system_of(2), cost_of(graph, system_of(2)), plan)
    assert str(error.value) == (
        "op 'b' waits for itself: the orders of devices and transfers form a circle"
    )


def test_every_wrong_figure_is_named_with_both_numbers() -> None:
    for plan, message in (
        (figured(time_ns=30), "plan of 'branches' states time_ns = 30, it is 31"),
        (figured(peak_bytes=(32, 24)), "plan of 'branches' states peak_bytes[1] = 24, it is 28"),
        (figured(resident_bytes=(0,)), "plan of 'branches' states 1 resident_bytes, it has 2"),
        (figured(overflow_bytes=0), "plan of 'branches' states overflow_bytes = 0, it is 8"),
        (
            figured(op_start_ns=(0, 10, 3, 14, 25)),
            "plan of 'branches' states op_start_ns[4] = 25, it is 26",
        ),
        (
            figured(transfer_end_ns=(9, 26)),
            "plan of 'branches' states transfer_end_ns[0] = 9, it is 10",
        ),
        (
            replace(GOOD, time_bound_ns=32),
            "plan of 'branches' claims the time bound 32, above its own 31",
        ),
        (
            replace(GOOD, peak_bound=33),
            "plan of 'branches' claims the peak bound 33, above its own 32",
        ),
    ):
        assert message_of(plan) == message


def test_every_wrong_place_in_memory_is_named() -> None:
    workspace = GOOD.workspaces[1]
    for plan, message in (
        (replace(GOOD, copies=GOOD.copies[1:]), "buffer 'x' on 'd0' has no offset"),
        (
            replace(GOOD, copies=(*GOOD.copies, GOOD.copies[0])),
            "buffer 'x' on 'd0' is planned twice",
        ),
        (
            with_allocation(1, device=1),
            "buffer 'a.0' on 'd1' is planned, but never in use there",
        ),
        (
            with_copy(0, replace(GOOD.copies[0], end_ns=9)),
            "buffer 'x' on 'd0' is planned for [0, 9) ns; it lives [0, 10) ns",
        ),
        (
            with_allocation(1, bytes=15),
            "buffer 'a.0' on 'd0' is planned with 15 bytes; it has 16",
        ),
        (
            with_allocation(1, last_step=2),
            "buffer 'a.0' on 'd0' is planned in steps 0-2; it lives in steps 0-1",
        ),
        (
            with_allocation(1, offset=4),
            "buffer 'a.0' on 'd0' at bytes [4, 20) overlaps buffer 'x' on 'd0' at bytes [0, 8)"
            " during [0, 5) ns",
        ),
        (
            with_allocation(1, offset=17),
            "buffer 'a.0' on 'd0' at bytes [17, 33) ends after the arena of 32 bytes of 'd0'",
        ),
        (
            with_allocation(0, offset=-1),
            "buffer 'x' on 'd0' at bytes [-1, 7) starts before the arena",
        ),
        (
            with_allocation(4, offset=8),
            "buffer 'c.0' on 'd0' shares bytes in place with buffer 'add.0' on 'd0', but they have"
            " offsets 24 and 8",
        ),
        (
            replace(GOOD, workspaces={}),
            "op 'b' needs a block of 4 bytes for its bodies and scratch, the plan gives 0",
        ),
        (
            replace(GOOD, workspaces={1: replace(workspace, device=0)}),
            "workspace of op 'b' on 'd1' is planned on device 0",
        ),
        (
            replace(GOOD, workspaces={1: replace(workspace, offset=20)}),
            "workspace of op 'b' on 'd1' at bytes [20, 24) overlaps buffer 'b.0' on 'd1' at bytes"
            " [8, 24) during [10, 14) ns",
        ),
        (
            replace(GOOD, workspaces={**GOOD.workspaces, 9: workspace}),
            "plan of 'branches' has a block of op 9, which does not exist",
        ),
        (
            replace(GOOD, arena_bytes=(32,)),
            "plan of 'branches' states 1 arenas for 2 devices",
        ),
    ):
        assert message_of(plan) == message


def test_a_plan_without_its_in_place_pair_needs_the_bytes_of_both() -> None:
    # y no longer lies over c: 16 + 8 bytes live in the last step, which the peak of 32 allows.
    assert "overlaps" in message_of(scheduled(in_place=()))
    check_schedule_plan(
        two_branches(),
        SYSTEM,
        COST,
        replace(
            scheduled(in_place=()),
            copies=(*GOOD.copies[:4], copy(Y, 0, (8, 8), (3, 3), (26, 31)), *GOOD.copies[5:]),
        ),
    )


def test_a_model_schedule_has_one_plan_per_entry() -> None:
    graph = two_branches()
    model = LoadedModel(framework="graph", entries=(graph,), source=None)
    schedule = ModelSchedule(
        graph_hash="",
        system=SYSTEM,
        objective="time",
        method="by hand",
        seed=0,
        evaluations=0,
        plans=(GOOD,),
    )
    assert require_valid_model_schedule(model, [COST], schedule) is schedule
    with pytest.raises(PlanError, match="2 entries and 1 costs, the model has 1 entries"):
        require_valid_model_schedule(model, [COST], replace(schedule, plans=(GOOD, GOOD)))


def changed(plan: SchedulePlan, rng: random.Random) -> SchedulePlan:
    """Return a plan with one number of its memory changed."""
    if plan.workspaces and rng.random() < 0.3:
        op = rng.choice(sorted(plan.workspaces))
        key = rng.choice(["offset", "bytes", "first_step", "last_step", "device"])
        block = plan.workspaces[op]
        block = replace(block, **{key: getattr(block, key) + rng.choice([-1, 1])})
        return replace(plan, workspaces={**plan.workspaces, op: block})
    i = rng.randrange(len(plan.copies))
    old = plan.copies[i]
    key = rng.choice(["offset", "bytes", "first_step", "last_step", "device", "start_ns"])
    step = rng.choice([-1, 1])
    if key == "start_ns":
        new = replace(old, start_ns=old.start_ns + step)
    else:
        value = getattr(old.allocation, key) + step
        new = replace(old, allocation=replace(old.allocation, **{key: value}))
    return replace(plan, copies=(*plan.copies[:i], new, *plan.copies[i + 1 :]))


def is_legal_memory(graph: Graph, plan: SchedulePlan, good: SchedulePlan) -> bool:
    """Return whether a plan that differs from a good one in one number of its memory is right."""
    for mine, right in zip(plan.copies, good.copies, strict=True):
        a, b = mine.allocation, right.allocation
        if (mine.start_ns, a.device, a.first_step, a.last_step) != (
            right.start_ns, b.device, b.first_step, b.last_step,
        ) or a.bytes < b.bytes:  # fmt: skip
            return False
    for op, block in plan.workspaces.items():
        right_block = good.workspaces[op]
        if block.bytes < right_block.bytes or (
            block.device, block.first_step, block.last_step,
        ) != (right_block.device, right_block.first_step, right_block.last_step):  # fmt: skip
            return False
    writer = {t: i for i, op in enumerate(graph.ops) for t in op.outputs}
    joined: list[set[tuple[int, int]]] = []
    for source, target in plan.schedule.in_place:
        device = plan.schedule.placement[writer[target]]
        pair = {(graph.tensors[t].storage, device) for t in (source, target)}
        for other in [chain for chain in joined if chain & pair]:
            joined.remove(other)
            pair |= other
        joined.append(pair)
    blocks = [({(c.storage, c.allocation.device)}, c.allocation) for c in plan.copies]
    blocks += [({(-1 - op, block.device)}, block) for op, block in plan.workspaces.items()]
    for i, (keys, a) in enumerate(blocks):
        if a.offset < 0 or a.offset % graph.alignment:
            return False
        if a.offset + a.bytes > plan.arena_bytes[a.device]:
            return False
        for others, b in blocks[:i]:
            if any(keys <= chain and others <= chain for chain in joined):
                if a.offset != b.offset:
                    return False
                continue
            if (
                a.device == b.device
                and a.first_step <= b.last_step
                and b.first_step <= a.last_step
                and a.offset < b.offset + b.bytes
                and b.offset < a.offset + a.bytes
            ):
                return False
    return True


def test_random_plans_with_one_wrong_number_in_memory_are_refused() -> None:
    verdicts = set()
    for seed in range(400):
        graph = random_graph(seed, 2 + seed % 6, alignment=1 + seed % 2)
        system = random_system(seed, 1 + seed % 3)
        good = random_plan(graph, system, seed)
        if not good.copies:
            continue
        mutant = changed(good, random.Random(seed))
        try:
            check_schedule_plan(graph, system, random_cost(graph, system, seed), mutant)
            accepted = True
        except PlanError:
            accepted = False
        assert accepted == is_legal_memory(graph, mutant, good), seed
        verdicts.add(accepted)
    assert verdicts == {True, False}
