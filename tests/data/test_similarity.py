"""How similar graphs are, and which held-out ones are nearly known."""

import pytest

from regal.data.similarity import Surroundings, near_copies, surroundings_of
from regal.graph.builder import GraphBuilder
from regal.graph.types import Graph

KIND = ("onnx", "inference")


def chain(*kinds: str) -> Graph:
    g = GraphBuilder("chain")
    value = g.input("x", 8)
    for kind in kinds:
        (value,) = g.op(kind, [value], [8])
    return g.build(outputs=[value])


def similarity(a: Surroundings, b: Surroundings) -> float:
    return near_copies([a], [b], most=-1.0)[a.key][1]


def test_equal_graphs_are_all_similar_and_other_kinds_not_at_all() -> None:
    a = surroundings_of(chain("A", "B", "C"), "a", KIND)
    b = surroundings_of(chain("A", "B", "C"), "b", KIND)
    assert similarity(a, b) == 1.0
    assert similarity(a, surroundings_of(chain("D", "E", "F"), "c", KIND)) == 0.0
    assert similarity(a, surroundings_of(chain("A", "B", "C"), "d", ("onnx", "joint"))) == 0.0


def test_ops_within_three_edges_of_a_difference_are_no_longer_the_same() -> None:
    # 10 ops; the last differs: itself and the three before it see that, 6 of 14 are shared.
    a = surroundings_of(chain(*"ABCDEFGHIJ"), "a", KIND)
    b = surroundings_of(chain(*"ABCDEFGHIX"), "b", KIND)
    assert similarity(a, b) == pytest.approx(6 / 14)
    assert similarity(a, b) == similarity(b, a)


def test_a_held_out_graph_that_is_mostly_known_is_named_with_the_one_it_is_like() -> None:
    known = [
        surroundings_of(chain(*"ABCDEFGHIJ"), "first", KIND),
        surroundings_of(chain(*"KLMNOPQRST"), "second", KIND),
    ]
    new = surroundings_of(chain(*"ABCDE"), "new", KIND)
    copy = surroundings_of(chain(*"KLMNOPQRSTKL"), "copy", KIND)
    found = near_copies([new, copy], known, most=0.4)
    assert list(found) == ["copy"]
    other, share = found["copy"]
    assert other == "second"
    assert share == pytest.approx(7 / 15)
    assert near_copies([new, copy], known, most=0.5) == {}


def test_repeated_surroundings_count_as_often_as_both_have_them() -> None:
    few = surroundings_of(chain(*"AAAAAAAA"), "few", KIND)
    many = surroundings_of(chain(*"AAAAAAAAAAAA"), "many", KIND)
    assert similarity(few, many) == pytest.approx(8 / 12)
