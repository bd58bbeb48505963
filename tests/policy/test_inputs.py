"""What a policy sees: shapes, hand-checked values, and independence of names and units."""

from dataclasses import replace

import numpy as np
import pytest

from regal import _native
from regal.graph.builder import GraphBuilder
from regal.graph.types import Graph
from regal.plan.schedule_problem import ScheduleProblem
from regal.policy.inputs import (
    CONTEXT,
    DEVICE_FEATURES,
    EDGE_FEATURES,
    PolicyInputs,
    node_feature_names,
    policy_inputs,
)
from regal.search.devices.compact import compact_devices
from regal.search.devices.types import Objective
from tests.policy.problems import MEMORY, TIME, problem_of, random_problem

NODE = {name: i for i, name in enumerate(node_feature_names())}
EDGE = {name: i for i, name in enumerate(EDGE_FEATURES)}


def inputs_of(problem: ScheduleProblem, objective: Objective = MEMORY) -> PolicyInputs:
    return policy_inputs(problem, compact_devices(problem), objective)


def diamond() -> Graph:
    """Return x -> a -> (b, c) -> d with outputs of 4, 2, 1 and 1 bytes."""
    g = GraphBuilder("diamond")
    x = g.input("x", 1)
    (a,) = g.op("A", [x], [4])
    (b,) = g.op("B", [a], [2])
    (c,) = g.op("C", [a], [1])
    (d,) = g.op("D", [b, c], [1])
    return g.build(outputs=[d])


@pytest.mark.parametrize("seed", range(30))
def test_all_arrays_have_their_shapes_and_finite_values(seed: int) -> None:
    problem = random_problem(seed, 1 + seed % 12, 1 + seed % 4)
    inputs = inputs_of(problem)
    n, edges = problem.n_ops, 2 * (len(problem.data_edges) + len(problem.control_edges))
    assert inputs.nodes.shape == (n, len(node_feature_names()))
    assert inputs.edges.shape == (edges, len(EDGE_FEATURES))
    assert inputs.sources.shape == inputs.targets.shape == (edges,)
    assert inputs.context.shape == (len(CONTEXT),)
    assert inputs.devices.shape == (problem.n_devices, len(DEVICE_FEATURES))
    assert inputs.group_sizes.sum() == n
    for name, array in inputs.arrays().items():
        assert np.isfinite(array).all(), name
        assert np.abs(array).max(initial=0) < 100 or name in ("sources", "targets", "groups")


def test_every_edge_is_there_in_both_directions() -> None:
    inputs = inputs_of(problem_of(diamond()))
    half = len(inputs.sources) // 2
    assert (inputs.sources[:half] == inputs.targets[half:]).all()
    assert (inputs.targets[:half] == inputs.sources[half:]).all()
    assert (inputs.edges[:half, EDGE["is_backward"]] == 0).all()
    assert (inputs.edges[half:, EDGE["is_backward"]] == 1).all()
    pairs = {(int(a), int(b)) for a, b in zip(inputs.sources, inputs.targets, strict=True)}
    assert {(0, 1), (0, 2), (1, 3), (2, 3), (1, 0), (2, 0), (3, 1), (3, 2)} == pairs


def test_live_bytes_along_the_reference_order_are_those_counted_by_hand() -> None:
    # a: x and a live, 5; b and c: 4 + 2, then 4 + 2 + 1 (or 4 + 1, 4 + 1 + 2); d: 2 + 1 + 1.
    inputs = inputs_of(problem_of(diamond()))
    live = inputs.nodes[:, NODE["live_share"]] * 7
    assert live[0] == pytest.approx(5)
    assert sorted(live[1:3].tolist()) in ([pytest.approx(6), 7], [pytest.approx(5), 7])
    assert live[3] == pytest.approx(4)
    written = inputs.nodes[:, NODE["written_share"]] * 7
    assert written.tolist() == pytest.approx([4, 2, 1, 1])


def test_the_heaviest_input_and_the_shares_of_a_reader_are_marked() -> None:
    problem = problem_of(diamond())
    inputs = inputs_of(problem)
    rows = {
        (int(a), int(b)): row
        for a, b, row in zip(inputs.sources, inputs.targets, inputs.edges, strict=True)
        if row[EDGE["is_backward"]] == 0
    }
    assert rows[1, 3][EDGE["input_share"]] == pytest.approx(2 / 3)
    assert rows[1, 3][EDGE["is_heaviest"]] == 1
    assert rows[2, 3][EDGE["is_heaviest"]] == 0
    assert rows[0, 1][EDGE["is_last"]] + rows[0, 2][EDGE["is_last"]] == 1


def test_a_control_edge_has_no_bytes() -> None:
    g = GraphBuilder("control")
    x = g.input("x", 1)
    (a,) = g.op("A", [x], [4])
    (b,) = g.op("B", [x], [2], after=[0])
    inputs = inputs_of(problem_of(g.build(outputs=[a, b])))
    row = inputs.edges[0]
    assert row[EDGE["is_control"]] == 1
    assert row[EDGE["bytes"]] == row[EDGE["input_share"]] == row[EDGE["is_heaviest"]] == 0


def test_the_context_tells_the_objectives_apart() -> None:
    problem = random_problem(3, 8)
    both = Objective(name="balanced", per_ns=1.0, per_byte=1.0)
    time, memory, balanced = (
        inputs_of(problem, objective).context for objective in (TIME, MEMORY, both)
    )
    assert (time[0], time[1]) == (1, 0)
    assert (memory[0], memory[1]) == (0, 0)
    assert 0 < balanced[0] < 1
    assert balanced[1] == 1
    assert (time[2:] == memory[2:]).all()


def test_groups_are_those_of_the_genes() -> None:
    g = GraphBuilder("groups")
    x = g.input("x", 1)
    (a,) = g.op("A", [x], [1])
    (b,) = g.op("B", [a], [1])
    (c,) = g.op("C", [b], [1])
    graph = g.build(outputs=[c])
    ops = (
        replace(graph.ops[0], colocation="k"),
        graph.ops[1],
        replace(graph.ops[2], colocation="k"),
    )
    problem = problem_of(replace(graph, ops=ops))
    inputs = inputs_of(problem)
    layout = _native.GeneLayout(problem.native, _native.DeviceDecoder.RAW)
    assert inputs.groups.tolist() == [0, 1, 0]
    assert inputs.group_sizes.tolist() == [2, 1]
    assert layout.colocation - layout.affinity == 2 * problem.n_devices


def test_equal_problems_give_equal_bytes() -> None:
    first, second = (inputs_of(random_problem(5, 10)).arrays() for _ in range(2))
    assert all(first[name].tobytes() == second[name].tobytes() for name in first)
