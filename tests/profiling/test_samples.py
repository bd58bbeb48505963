"""From samples to a profile, by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regal.cost.keys import op_key
from regal.profiling.samples import middle, profile_of, spread, without_warmup
from tests.cost.ops import single


def test_the_middle_is_the_mean_of_the_middle_half() -> None:
    assert middle([1000, 3, 5, 4, 0, 4, 6, 2]) == 4  # of 3 4 4 5
    assert middle([7]) == 7
    assert middle([0, 0, 0, 1000, 1000]) == 333  # of 0 0 1000: between the ticks of the clock
    assert middle([0, 0]) == 1


@given(st.lists(st.integers(0, 50), min_size=1, max_size=9))
def test_the_middle_lies_within_the_samples_whatever_their_order(samples: list[int]) -> None:
    assert max(min(samples), 1) <= middle(samples) <= max(*samples, 1)
    assert middle(samples) == middle(samples[::-1])


def test_the_spread_leaves_out_the_quarters_at_both_ends() -> None:
    assert spread([0, 10, 12, 14, 900]) == 4
    assert spread([5]) == 0


def test_the_warmup_of_a_body_is_the_share_of_its_runs() -> None:
    assert without_warmup([9, 8, 1, 1], 2, 4) == [1, 1]
    assert without_warmup([9] * 6 + [1] * 6, 2, 4) == [1] * 6  # three times per run


@pytest.mark.parametrize(
    ("total", "overhead", "first"),
    [
        (1000, (1000 - 400) // 2, 100),  # what is beside the kernels goes to the two ops
        (200, 0, 50),  # the profiler made ops twice as slow
        (400, 0, 100),
    ],
)
def test_op_times_and_overhead_add_up_to_a_run_without_the_profiler(
    total: int, overhead: int, first: int
) -> None:
    a = single("onnx", "Relu", [(4,)], [(4,)])
    b = single("onnx", "Conv", [(4,)], [(4,)])
    graph = single("onnx", "Constant", [], [(4,)])
    ops = (a.ops[0], b.ops[0], graph.ops[0])
    graph = type(graph)(
        name="g", framework="onnx", ops=ops, tensors=a.tensors, inputs=(), outputs=()
    )
    found = profile_of(
        [(ops[0], graph, [100, 100]), (ops[1], graph, [300, 300])],
        [graph],
        model="m", runtime="r", threads=1, runs=2, warmup=0, total_ns=total,
    )  # fmt: skip
    assert (found.overhead_ns, found.profiled_ns, found.total_ns) == (overhead, 400, total)
    assert found.times[op_key(ops[0], graph)].ns == first
    assert found.not_measured == {"Constant": 1}
    assert found.ops == 3
    times = [found.times_of(op, graph)["cpu"] for op in ops[:2]]
    assert sum(times) == total


def test_equal_ops_share_their_samples() -> None:
    graph = single("onnx", "Relu", [(4,)], [(4,)])
    twice = [(graph.ops[0], graph, [10]), (graph.ops[0], graph, [30])]
    found = profile_of(
        twice, [graph], model="m", runtime="r", threads=1, runs=1, warmup=0, total_ns=40
    )
    (time,) = found.times.values()
    assert (time.ns, time.samples) == (20, 2)
