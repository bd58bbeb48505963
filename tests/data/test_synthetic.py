"""Synthetic graphs: each family has the shape that its name says."""

import random
from collections import Counter

import pytest

from regal.data.build import LEAST_HEADROOM
from regal.data.headroom import headroom
from regal.data.synthetic import FAMILIES, FEWEST_OPS, MOST_OPS, synthetic_graph
from regal.graph.builder import GraphBuilder
from regal.graph.check import require_valid_graph
from regal.graph.memory import dependencies


@pytest.mark.parametrize("family", FAMILIES)
def test_graphs_are_valid_and_follow_from_their_seed(family: str) -> None:
    for seed in range(6):
        graph = require_valid_graph(synthetic_graph(family, seed, "g"))
        assert FEWEST_OPS // 2 <= len(graph.ops) <= MOST_OPS + 10
        assert graph == synthetic_graph(family, seed, "g")
        assert graph.outputs
    assert synthetic_graph(family, 0, "g") != synthetic_graph(family, 1, "g")


@pytest.mark.parametrize("family", FAMILIES)
def test_edges_lead_upwards_and_reach_every_node(family: str) -> None:
    edges = FAMILIES[family](random.Random(5), 80)
    assert all(0 <= a < b for a, b in edges)
    touched = {node for edge in edges for node in edge}
    assert touched == set(range(max(touched) + 1))


def degrees(family: str, seed: int, n: int) -> list[int]:
    counts = Counter(node for edge in FAMILIES[family](random.Random(seed), n) for node in edge)
    return [counts[node] for node in range(n)]


def test_preferred_nodes_have_far_more_edges_than_in_a_random_graph() -> None:
    assert max(degrees("barabasi-albert", 1, 400)) > 2 * max(degrees("erdos-renyi", 1, 400))


def test_layers_read_layers_just_before() -> None:
    edges = FAMILIES["layered"](random.Random(3), 200)
    assert max(b - a for a, b in edges) < 60


def test_a_series_parallel_graph_has_one_source_and_one_sink() -> None:
    edges = FAMILIES["series-parallel"](random.Random(2), 120)
    nodes = {node for edge in edges for node in edge}
    assert len(nodes - {b for _, b in edges}) == 1
    assert len(nodes - {a for a, _ in edges}) == 1


def test_wired_stages_meet_in_single_nodes() -> None:
    graph = synthetic_graph("random-wiring", 4, "g")
    edges = dependencies(graph)
    passed = [
        node for node in range(1, len(graph.ops) - 1) if not any(a < node < b for a, b in edges)
    ]
    assert len(passed) >= 2


def test_a_long_search_is_far_better_on_a_graph_that_ships() -> None:
    assert headroom(synthetic_graph("layered", 2, "g")) >= LEAST_HEADROOM


def test_a_chain_leaves_no_headroom() -> None:
    g = GraphBuilder("chain")
    value = g.input("x", 64)
    for _ in range(6):
        (value,) = g.op("pointwise", [value], [64])
    assert headroom(g.build(outputs=[value])) == pytest.approx(0.0, abs=1e-9)
