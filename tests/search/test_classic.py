"""Classic orders: hand-checked examples, slow references, and the runtime itself."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from regal import _native
from regal._native import Classic
from regal.search.classic import CLASSICS, best_classic, classic_outcomes
from tests.search.oracles import NEUTRAL, slow_dfs, slow_greedy
from tests.search.problems import Tiny, build, random_problem, slow_peak

if TYPE_CHECKING:
    from pathlib import Path


def order_of(problem: Tiny, classic: Classic) -> list[int]:
    order: list[int] = _native.classic_order(problem.native, classic).tolist()
    return order


def two_branches() -> Tiny:
    """Return 0 -> (1 -> 3) and (2 -> 4), joined by 5; the branch over 2 is the heavy one."""
    return build(
        edges=[(0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 5)],
        touches=[[0], [0, 1], [0, 2], [1, 3], [2, 4], [3, 4, 5]],
        bytes_of=[4, 1, 8, 2, 2, 1],
        outputs=[5],
    )


@pytest.mark.parametrize(
    ("classic", "expected"),
    [
        (Classic.FILE_ORDER, [0, 1, 2, 3, 4, 5]),
        (Classic.BFS, [0, 1, 2, 3, 4, 5]),
        (Classic.DFS, [0, 1, 3, 2, 4, 5]),
        (Classic.DFS_LARGE, [0, 2, 4, 1, 3, 5]),
        (Classic.DFS_SMALL, [0, 1, 3, 2, 4, 5]),
        (Classic.ORT_DEFAULT, [0, 2, 4, 1, 3, 5]),
        (Classic.GREEDY_MEMORY, [0, 1, 3, 2, 4, 5]),
        (Classic.SAFE, [0, 1, 3, 2, 4, 5]),
    ],
)
def test_two_branches_run_as_each_heuristic_says(classic: Classic, expected: list[int]) -> None:
    assert order_of(two_branches(), classic) == expected


def test_breadth_first_runs_in_the_sequence_of_becoming_ready() -> None:
    problem = build(edges=[(1, 0), (2, 3)], touches=[[], [], [], []], bytes_of=[])
    assert order_of(problem, Classic.BFS) == [1, 2, 0, 3]
    assert order_of(problem, Classic.FILE_ORDER) == [1, 0, 2, 3]


def test_the_xla_list_scheduler_breaks_ties_by_users() -> None:
    # Ops 0 and 1 make one byte each; op 1 has two users, op 0 has one.
    problem = build(
        edges=[(0, 2), (1, 2), (1, 3)],
        touches=[[0], [1], [0, 1], [1]],
        bytes_of=[1, 1],
    )
    assert order_of(problem, Classic.XLA_LIST)[0] == 1


def test_the_xla_depth_first_scheduler_visits_shared_operands_first() -> None:
    # Operand 1 is smaller than operand 0 but has two users besides op 2.
    problem = build(
        edges=[(0, 2), (1, 2), (1, 3), (1, 4), (3, 5), (4, 5), (2, 5)],
        touches=[[0], [1], [0, 1, 2], [1, 3], [1, 4], [2, 3, 4]],
        bytes_of=[9, 1, 1, 1, 1],
    )
    order = order_of(problem, Classic.XLA_DFS)
    assert order.index(1) < order.index(0)
    assert order_of(problem, Classic.DFS_LARGE).index(0) < order.index(0) + 6


def test_lpmf_is_greedy_memory_without_in_place_and_workspace() -> None:
    differs = 0
    for seed in range(150):
        problem = random_problem(seed, most_ops=9)
        blind = replace(problem, in_place=(), workspace=(0,) * problem.n_ops)
        neutral = [NEUTRAL] * problem.n_ops
        assert order_of(problem, Classic.LPMF) == slow_greedy(blind, neutral), seed
        differs += slow_greedy(blind, neutral) != slow_greedy(problem, neutral)
    assert differs > 5


def test_onnx_runtime_visits_the_last_sink_and_the_last_operand_first() -> None:
    for seed in range(100):
        problem = random_problem(seed, most_ops=9)
        keys = list(range(problem.n_ops))
        assert order_of(problem, Classic.ORT_DEFAULT) == slow_dfs(problem, keys), seed


@pytest.mark.parametrize("seed", range(3))
def test_onnx_runtime_itself_runs_its_default_order(seed: int, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(seed)
    n = 14
    reads = [
        sorted({int(rng.integers(0, v)) for _ in range(rng.integers(1, 4))} if v else ())
        for v in range(n)
    ]
    nodes = [
        onnx.helper.make_node("Sum", [f"t{u}" for u in read] or ["x"], [f"t{v}"], name=f"n{v}")
        for v, read in enumerate(reads)
    ]
    used = {u for read in reads for u in read}
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes,
        "random",
        [value("x", onnx.TensorProto.FLOAT, [2])],
        [value(f"t{v}", onnx.TensorProto.FLOAT, [2]) for v in range(n) if v not in used],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)])
    model.ir_version = 8
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    session.run(None, {"x": np.zeros(2, dtype=np.float32)})
    with open(session.end_profiling()) as file:
        events = json.load(file)
    ran = [
        int(event["name"].removesuffix("_kernel_time").removeprefix("n"))
        for event in sorted(events, key=lambda event: event["ts"])
        if event["name"].endswith("_kernel_time")
    ]
    problem = build(
        edges=[(u, v) for v, read in enumerate(reads) for u in read],
        touches=[sorted({v, *read}) for v, read in enumerate(reads)],
        bytes_of=[8] * n,
    )
    assert order_of(problem, Classic.ORT_DEFAULT) == ran


def test_the_best_classic_order_is_the_first_with_the_lowest_peak() -> None:
    for seed in range(60):
        problem = random_problem(seed)
        outcomes = classic_outcomes(problem.native)
        peaks = [slow_peak(problem, outcome.order.tolist()) for outcome in outcomes]
        best = best_classic(problem.native)
        assert [outcome.peak_bytes for outcome in outcomes] == peaks
        assert best.order.tolist() == outcomes[peaks.index(min(peaks))].order.tolist()
        assert best.evaluations == len(CLASSICS)
