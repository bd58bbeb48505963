"""The numbers that the kernel gets for a graph on several devices, and what is refused."""

from dataclasses import replace

import pytest

from regal.errors import ModelError, UsageError
from regal.graph.builder import GraphBuilder
from regal.graph.types import Role
from regal.plan.schedule_problem import schedule_problem
from tests.graphs import two_branches
from tests.systems import cost_of, system_of

X, W, A, B, C, D, Y = range(7)  # tensors of `two_branches`, and their storages
SYSTEM = system_of(2, memory=120)  # 2 ns + 1 ns per byte
COST = cost_of(two_branches(), SYSTEM)


def test_ops_that_touch_one_state_run_on_one_device() -> None:
    g = GraphBuilder("state")
    x = g.input("x", 4)
    v = g.tensor("v", 8, Role.STATE)
    a = g.op("Read", [x, v], [4], name="read")
    b = g.op("Other", a, [4], name="other")
    c = g.op("Write", [*b, v], [4], name="write", after=[0])
    graph = g.build(outputs=c)
    problem = schedule_problem(graph, system_of(2), cost_of(graph, system_of(2)))
    assert problem.groups.tolist() == [0, 1, 0]
    assert problem.resident_bytes.tolist() == [8]
    assert problem.resident_users.tolist() == [[0, 0], [2, 0]]


def test_a_group_that_no_device_can_run_is_named() -> None:
    graph = two_branches()
    ops = list(graph.ops)
    ops[0] = replace(ops[0], colocation="g", devices=("cpu",))
    ops[1] = replace(ops[1], colocation="g", devices=("gpu",))
    apart = replace(graph, ops=tuple(ops))
    system = replace(
        SYSTEM, devices=(SYSTEM.devices[0], replace(SYSTEM.devices[1], name="g0", kind="gpu"))
    )
    with pytest.raises(ModelError) as error:
        schedule_problem(apart, system, COST)
    assert str(error.value) == (
        "ops 'a' and 'b' must share a device (a group of 2 ops), and none of 'd0', 'g0' can run"
        " them all"
    )
    with pytest.raises(ModelError) as error:
        schedule_problem(apart, SYSTEM, COST)
    assert str(error.value) == (
        "op 'b' (B) can run on none of 'd0', 'd1'; it is meant for kinds gpu"
    )


def test_links_of_equal_numbers_share_a_class_and_a_tensor_may_name_its_own_time() -> None:
    graph = two_branches()
    tensors = list(graph.tensors)
    tensors[D] = replace(tensors[D], transfer_ns=7)
    problem = schedule_problem(
        replace(graph, tensors=tuple(tensors)), system_of(3), cost_of(graph, system_of(3))
    )
    assert problem.link_classes.tolist() == [[-1, 0, 0], [0, -1, 0], [0, 0, -1]]
    assert problem.native.device_class.tolist() == [0, 0, 0]
    assert problem.tensors == (X, A, B, C, D, Y)
    assert problem.transfers.tolist() == [[10, 18, 18, 10, 7, 10]]


def test_more_devices_or_longer_times_than_the_kernel_takes_are_refused() -> None:
    graph = two_branches()
    with pytest.raises(UsageError, match="system '257 devices' has 257 devices; 256 at most"):
        schedule_problem(graph, system_of(257), cost_of(graph, system_of(257)))
    with pytest.raises(ModelError, match=r"times or sizes add up to more than 2\^61"):
        schedule_problem(graph, SYSTEM, cost_of(graph, SYSTEM, 1 << 60))
    with pytest.raises(UsageError, match="give a speed above 0 and a latency of 0 or more"):
        schedule_problem(graph, system_of(2, gigabytes_per_s=0.0), COST)
