"""Times of ops on devices, computed by hand."""

from dataclasses import replace

import pytest

from regal.cost.keys import op_key
from regal.cost.profile import OpTime, Profile, Profiles
from regal.cost.roofline import graph_cost
from regal.cost.types import FORBIDDEN
from regal.devices.presets import system_named
from regal.devices.quantities import LARGEST_NS
from regal.devices.types import Device, Link, Pool, System
from regal.graph.types import Graph
from tests.cost.ops import single, tensor

CPU = Device(
    name="cpu0", kind="cpu", flops_per_s={"": 1e9, "int8": 4e9}, bytes_per_s=1e9, launch_ns=100
)
NPU = Device(
    name="npu0", kind="npu", flops_per_s={"int8": 1e12}, bytes_per_s=2e9, launch_ns=10,
    kinds=("conv", "view"),
)  # fmt: skip
LINK = Link(latency_ns=1, bytes_per_s=1e9)
BOTH = System(name="both", devices=(CPU, NPU), links={(0, 1): LINK, (1, 0): LINK})


def times(graph: Graph, system: System = BOTH) -> tuple[int, ...]:
    return graph_cost(graph, system).op_ns[0]


def conv(dtype: str = "int8") -> Graph:
    # 2 x 16 x 25 = 800 operations; 25 + 400 + 16 elements
    return single(
        "tflite",
        "CONV_2D",
        [tensor((1, 5, 5, 1), dtype), tensor((16, 5, 5, 1), dtype)],
        [tensor((1, 1, 1, 16), dtype)],
    )


def test_an_op_takes_its_launch_and_the_larger_of_arithmetic_and_traffic() -> None:
    # cpu: 800 / 4e9 = 200 ns against 441 bytes / 1e9 = 441 ns; npu: 441 / 2e9 = 220.5 ns
    assert times(conv()) == (100 + 441, 10 + 221)
    # float32: 800 / 1e9 = 800 ns against 1764 bytes
    assert times(conv("float32"))[0] == 100 + 1764
    slow = replace(CPU, flops_per_s={"": 1e8})
    assert times(conv(), System(name="slow", devices=(slow,))) == (100 + 8000,)


def test_a_device_runs_only_the_dtypes_and_kinds_that_it_lists() -> None:
    assert times(conv("float32"))[1] == FORBIDDEN
    add = single("tflite", "ADD", [tensor((4,), "int8")] * 2, [tensor((4,), "int8")])
    assert times(add)[1] == FORBIDDEN
    assert times(add)[0] == 100 + 8
    quantize = single("tflite", "QUANTIZE", [(4,)], [tensor((4,), "int8")])
    assert times(quantize, replace(BOTH, devices=(CPU, replace(NPU, kinds=()))))[1] == FORBIDDEN


def test_an_op_with_devices_of_its_own_runs_only_there() -> None:
    graph = conv()
    graph = replace(graph, ops=(replace(graph.ops[0], devices=("npu",)),))
    assert times(graph) == (FORBIDDEN, 10 + 221)


def test_an_op_that_needs_a_cpu_runs_on_the_host_of_a_device_where_no_cpu_is_listed() -> None:
    graph = single("tensorflow", "StringJoin", [(4,)], [(4,)], devices=("cpu",))
    gpus = system_named("gpu-pcie-2")
    assert times(graph, gpus) == (3800 + 1, 3800 + 1)
    mixed = replace(gpus, devices=(gpus.devices[0], replace(CPU, name="host")))
    assert times(graph, mixed) == (FORBIDDEN, 100 + 32)
    elsewhere = single("tensorflow", "Add", [(4,)], [(4,)], devices=("tpu",))
    assert times(elsewhere, gpus) == (FORBIDDEN, FORBIDDEN)


def test_views_take_the_launch_and_constants_a_nanosecond() -> None:
    assert times(single("tflite", "RESHAPE", [(1000,)], [(10, 100)]))[0] == 100
    assert times(single("onnx", "Constant", [], [(1000,)]))[0] == 1
    instant = System(name="i", devices=(replace(CPU, launch_ns=0),))
    assert times(single("tflite", "RESHAPE", [(1000,)], [(10, 100)]), instant) == (1,)


def test_times_of_the_file_come_first_by_kind_of_device() -> None:
    graph = conv("float32")
    given = replace(graph, ops=(replace(graph.ops[0], times_ns={"npu": 7, "": 9}),))
    cost = graph_cost(given, BOTH)
    assert (cost.op_ns[0], cost.sources) == ((9, 7), ("file",))
    partly = replace(graph, ops=(replace(graph.ops[0], times_ns={"npu": 0}),))
    cost = graph_cost(partly, BOTH)
    assert (cost.op_ns[0], cost.sources) == ((100 + 1764, 1), ("roofline",))


def measured(graph: Graph, ns: int, kind: str = "cpu") -> Profile:
    return Profile(
        model="m", framework=graph.framework, runtime="r 1", device_kind=kind, machine={},
        threads=1, runs=5, warmup=1, overhead_ns=3, total_ns=100, profiled_ns=90, ops=1,
        not_measured={},
        times={op_key(graph.ops[0], graph): OpTime(ns=ns, spread_ns=1, samples=5)},
    )  # fmt: skip


def test_a_profile_overrides_the_formula_on_its_kind_of_device() -> None:
    graph = conv()
    cost = graph_cost(graph, BOTH, measured(graph, 50))
    assert cost.op_ns[0] == (50 + 3, 10 + 221)
    assert cost.sources == ("roofline",)  # the npu's time is not measured
    alone = System(name="cpu", devices=(CPU,))
    assert graph_cost(graph, alone, measured(graph, 50)).sources == ("profile",)
    both = Profiles((measured(graph, 50), measured(graph, 70, "npu"), measured(graph, 60)))
    cost = graph_cost(graph, BOTH, both)
    assert (cost.op_ns[0], cost.sources) == ((63, 73), ("profile",))
    other = single("tflite", "CONV_2D", [(1, 5, 5, 2), (16, 5, 5, 2)], [(1, 1, 1, 16)])
    assert graph_cost(other, alone, measured(graph, 50)).sources == ("roofline",)


def test_what_is_only_known_by_its_bytes_says_so() -> None:
    cost = graph_cost(single("tflite", "CUSTOM:x", [(25,)], [(25,)]), BOTH)
    assert (cost.op_ns[0], cost.sources) == ((100 + 200, FORBIDDEN), ("bytes",))
    assert cost.coverage == {"bytes": 1}


def test_an_op_with_bodies_takes_the_sum_of_their_ops_and_the_worst_of_their_sources() -> None:
    relu = single("onnx", "Relu", [(10,)], [(10,)])  # 100 + 80
    odd = single("onnx", "x::Odd", [(10,)], [(20,)])  # 100 + 120
    alone = System(name="cpu", devices=(CPU,))
    choice = single("onnx", "If", [(1,)], [(10,)], subgraphs=(relu, odd))
    cost = graph_cost(choice, alone)
    assert (cost.op_ns[0], cost.sources) == ((100 + 220,), ("bytes",))
    loop = single("onnx", "Loop", [(1,)], [(10,)], {"trip_count": 3}, subgraphs=(relu,))
    assert graph_cost(loop, alone).op_ns[0] == (100 + 3 * 180,)


def test_a_device_that_cannot_run_a_body_cannot_run_the_op() -> None:
    any_kind = replace(NPU, kinds=())
    system = replace(BOTH, devices=(CPU, any_kind))
    for dtype, can in (("int8", True), ("float32", False)):
        inside = single("onnx", "Relu", [tensor((10,), dtype)], [tensor((10,), dtype)])
        graph = single("onnx", "If", [tensor((1,), "bool")], [(10,)], subgraphs=(inside,))
        assert (times(graph, system)[1] != FORBIDDEN) is can


def test_an_op_runs_at_the_speed_of_the_first_pool_that_holds_all_that_it_touches() -> None:
    pools = (
        Pool(name="sram", bytes=1000, bytes_per_s=4e9),
        Pool(name="dram", bytes=4000, bytes_per_s=2e9),
    )
    mcu = System(name="mcu", devices=(replace(CPU, pools=pools),))
    for elements, rate in ((125, 4), (126, 2), (500, 2), (501, 1)):
        graph = single("tflite", "CUSTOM:x", [(elements,)], [(elements,)])
        assert times(graph, mcu) == (100 + -(-8 * elements // rate),), elements


def test_a_time_stays_a_number_that_the_kernel_can_add() -> None:
    huge = (1 << 40, 1 << 40)
    assert times(single("onnx", "MatMul", [huge, huge], [huge]))[0] == LARGEST_NS


@pytest.mark.parametrize("count", [1, 3])
def test_there_is_a_time_per_op_and_device(count: int) -> None:
    graph = conv("float32")
    graph = replace(graph, ops=graph.ops * 4)
    cost = graph_cost(graph, system_named(f"cpu:{count}"))
    assert [len(row) for row in cost.op_ns] == [count] * 4
    assert len(cost.sources) == 4
