"""Augmented graphs are valid, follow from their seed, and differ in what they should alone."""

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from regal.cost.roofline import graph_cost
from regal.data.augment import Augmentation, augmented, batched, resized, retimed
from regal.data.compose import composed
from regal.data.cuts import part_of, window
from regal.data.structure import structure_hash
from regal.data.systems import needed_bytes, random_system
from regal.graph.builder import GraphBuilder
from regal.graph.check import require_valid_graph
from regal.graph.memory import counted_storages, dependencies
from regal.graph.types import ABSENT, Graph, Op, Role, Tensor
from tests.graphs import random_graph

SEEDS = st.integers(0, 10**6)
SIZES = st.integers(1, 14)
WILD = Augmentation(cut_chance=0.7, compose_chance=0.7, fewest_ops=2, most_ops=40)


def timed(seed: int, ops: int) -> Graph:
    """Return a random graph whose ops have operations to scale."""
    graph = random_graph(seed, ops, concats=True)
    return replace(graph, ops=tuple(replace(op, flops=10 + i) for i, op in enumerate(graph.ops)))


@given(SEEDS, SIZES)
@settings(max_examples=150, deadline=None)
def test_every_augmented_graph_is_valid(seed: int, ops: int) -> None:
    others = [timed(seed + 1, 5), timed(seed + 2, 9)]
    graph = augmented(timed(seed, ops), seed, WILD, others)
    require_valid_graph(graph)
    assert graph.ops
    for op in graph.ops:
        for tensor in op.outputs:
            assert tensor == ABSENT or graph.tensors[tensor].role is not Role.INPUT


@given(SEEDS, SIZES)
@settings(max_examples=30, deadline=None)
def test_the_seed_decides_everything(seed: int, ops: int) -> None:
    graph, others = timed(seed, ops), [timed(seed + 1, 5)]
    assert augmented(graph, 3, WILD, others) == augmented(graph, 3, WILD, others)


def test_seeds_differ() -> None:
    graph = timed(1, 12)
    assert len({str(augmented(graph, seed, WILD)) for seed in range(20)}) == 20


@given(SEEDS, SIZES)
@settings(max_examples=60, deadline=None)
def test_sizes_and_times_leave_the_structure_alone(seed: int, ops: int) -> None:
    graph = timed(seed, ops)
    rng = random.Random(seed)
    changed = retimed(resized(batched(graph, 3), lambda: rng.uniform(0.3, 3)), rng.random)
    assert structure_hash(changed) == structure_hash(graph)
    assert [op.in_place for op in changed.ops] == [op.in_place for op in graph.ops]


def test_a_larger_batch_scales_activations_and_work_but_no_weights() -> None:
    tensors = (
        Tensor(name="x", shape=(4,), dtype="float32", bytes=16, role=Role.INPUT, storage=0),
        Tensor(name="w", shape=(4,), dtype="float32", bytes=16, role=Role.PARAMETER, storage=1),
        Tensor(name="y", shape=(4,), dtype="float32", bytes=16, role=Role.ACTIVATION, storage=2),
        Tensor(name="v", shape=(2,), dtype="float32", bytes=8, role=Role.OUTPUT, storage=2,
               storage_offset=8),
    )  # fmt: skip
    ops = (
        Op(name="a", kind="Mul", inputs=(0, 1), outputs=(2,), flops=4, workspace_bytes=5),
        Op(name="b", kind="Slice", inputs=(2,), outputs=(3,)),
    )
    graph = Graph(name="g", framework="onnx", ops=ops, tensors=tensors, inputs=(0,), outputs=(3,))
    large = require_valid_graph(batched(graph, 3))
    assert [t.bytes for t in large.tensors] == [48, 16, 48, 24]
    assert [t.storage_offset for t in large.tensors] == [0, 0, 0, 24]
    assert [(op.flops, op.workspace_bytes) for op in large.ops] == [(12, 15), (0, 0)]


@given(SEEDS, SIZES, SIZES)
@settings(max_examples=100, deadline=None)
def test_a_window_is_connected_and_keeps_what_others_read(seed: int, ops: int, size: int) -> None:
    graph = timed(seed, ops)
    part = require_valid_graph(window(graph, random.Random(seed), size))
    assert 1 <= len(part.ops) <= max(size, 1)
    names = [op.name for op in graph.ops]
    kept = {names.index(op.name) for op in part.ops}
    reached, pending = {0}, [0]
    edges = dependencies(part)
    while pending:
        i = pending.pop()
        near = {b for a, b in edges if a == i} | {a for a, b in edges if b == i}
        pending += sorted(near - reached)
        reached |= near
    assert len(reached) == len(part.ops)
    # Convex: no path between two of its ops leads outside.
    whole = dependencies(graph)
    after, before = set(kept), set(kept)
    for a, b in whole:
        if a in after:
            after.add(b)
    for a, b in reversed(whole):
        if b in before:
            before.add(a)
    assert after & before == kept


def test_the_part_of_a_chain_gets_its_input_and_returns_its_result() -> None:
    g = GraphBuilder("chain")
    x = g.input("x", 8)
    (a,) = g.op("A", [x], [8])
    (b,) = g.op("B", [a], [8])
    (c,) = g.op("C", [b], [8])
    part = part_of(g.build(outputs=[c]), [1])
    assert [(t.role, t.bytes) for t in part.tensors] == [(Role.INPUT, 8), (Role.OUTPUT, 8)]
    assert (part.inputs, part.outputs) == ((0,), (1,))


def test_a_view_of_weights_made_outside_a_part_is_weights_in_it() -> None:
    tensors = (
        Tensor(name="w", shape=(4,), dtype="float32", bytes=16, role=Role.PARAMETER, storage=0),
        Tensor(name="t", shape=(4,), dtype="float32", bytes=16, role=Role.ACTIVATION, storage=0),
        Tensor(name="y", shape=(4,), dtype="float32", bytes=16, role=Role.OUTPUT, storage=2),
    )
    ops = (
        Op(name="a", kind="aten.t.default", inputs=(0,), outputs=(1,)),
        Op(name="b", kind="aten.relu.default", inputs=(1,), outputs=(2,)),
    )
    graph = Graph(name="g", framework="torch", ops=ops, tensors=tensors, inputs=(), outputs=(2,))
    part = require_valid_graph(part_of(graph, [1]))
    assert [t.role for t in part.tensors] == [Role.PARAMETER, Role.OUTPUT]
    assert counted_storages(part) == {1: 16}


@given(SEEDS, SIZES, st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_composition_holds_both_graphs(seed: int, ops: int, in_series: bool) -> None:
    first, second = timed(seed, ops), timed(seed + 1, 6)
    both = require_valid_graph(composed(first, second, in_series=in_series))
    joints = len(second.inputs) if in_series and first.outputs else 0
    assert len(both.ops) == len(first.ops) + len(second.ops) + joints
    assert len(both.inputs) == len(first.inputs) + len(second.inputs) - joints
    reads = [t for op in both.ops[len(first.ops) :] for t in op.inputs if t != ABSENT]
    assert any(t < len(first.tensors) for t in reads) == bool(joints)


@given(SEEDS)
@settings(max_examples=60, deadline=None)
def test_random_systems_are_complete_and_follow_from_their_seed(seed: int) -> None:
    graph = timed(seed, 8)
    system = random_system(seed, graph)
    assert system == random_system(seed, graph)
    cost = graph_cost(graph, system)
    assert all(ns > 0 for row in cost.op_ns for ns in row)


def test_systems_differ_in_number_speed_links_and_limits() -> None:
    graph = timed(3, 8)
    systems = [random_system(seed, graph) for seed in range(60)]
    assert {len(s.devices) for s in systems} == {2, 3, 4, 8}
    assert len({s.devices[0].flops_per_s[""] for s in systems}) == 60
    assert len({s.links[0, 1].latency_ns for s in systems}) > 50
    limited = [s for s in systems if s.devices[0].memory_bytes is not None]
    assert 15 < len(limited) < 45
    assert any(s.devices[0].flops_per_s != s.devices[1].flops_per_s for s in systems)


def test_what_one_device_needs_is_peak_and_parameters() -> None:
    g = GraphBuilder("chain")
    x = g.input("x", 8)
    (a,) = g.op("A", [x], [4])
    (b,) = g.op("B", [a], [2])
    assert needed_bytes(g.build(outputs=[b])) == 12
