from dataclasses import replace

import pytest

from regal.errors import PlanError
from regal.graph.builder import GraphBuilder
from regal.graph.types import Graph
from regal.plan.sub_buffers import compatible, embedded, relaxations, sub_buffer_choices


def chain_of_concats() -> Graph:
    """Return a, b -> ab = concat(a, b); ab, c -> abc = concat(ab, c); tensors 1, 2, 3, 4, 5."""
    g = GraphBuilder("chain")
    x = g.input("x", 1)
    a = g.op("A", [x], [4])
    b = g.op("B", [x], [4])
    ab = g.op("Concat", [*a, *b], [8], parts=[(0, 0), (1, 4)])
    c = g.op("C", [x], [4])
    abc = g.op("Concat", [*ab, *c], [12], parts=[(0, 0), (1, 8)])
    return g.build(outputs=g.op("Sum", abc, [1]))


def places(graph: Graph) -> list[tuple[int, int]]:
    return [(tensor.storage, tensor.storage_offset) for tensor in graph.tensors]


def test_offsets_add_up_through_nested_concatenations() -> None:
    graph = chain_of_concats()
    joined = embedded(graph, sub_buffer_choices(graph))
    assert places(joined)[1:6] == [(5, 0), (5, 4), (5, 0), (5, 8), (5, 0)]


def test_nothing_changes_without_a_choice() -> None:
    graph = chain_of_concats()
    assert embedded(graph, ()) is graph


def message_of(graph: Graph, *chosen: tuple[int, int, int]) -> str:
    with pytest.raises(PlanError) as error:
        embedded(graph, chosen)
    return str(error.value)


def test_a_place_that_no_op_offers_is_refused() -> None:
    assert message_of(chain_of_concats(), (1, 3, 4)) == (
        "plan places '0:A.0' at byte 4 of '2:Concat.0'; no op of the graph allows that"
    )
    assert message_of(chain_of_concats(), (1, 99, 0)).startswith("plan places tensor 1 inside")


def test_a_tensor_in_two_concatenations_is_placed_once() -> None:
    g = GraphBuilder("twice")
    a = g.op("A", [g.input("x", 1)], [4])
    y = g.op("Concat", [*a], [4], parts=[(0, 0)])
    z = g.op("Concat", [*a], [6], parts=[(0, 2)])
    graph = g.build(outputs=[*y, *z])
    assert compatible(graph, sub_buffer_choices(graph)) == ((1, 2, 0),)
    assert message_of(graph, *sub_buffer_choices(graph)) == (
        "plan places '0:A.0' at byte 2 of '2:Concat.0', but places it elsewhere too"
    )


def test_a_circle_of_places_is_refused() -> None:
    g = GraphBuilder("circle")
    a = g.op("A", [g.input("x", 1)], [4])
    b = g.op("Copy", a, [4])
    graph = g.build(outputs=g.op("Sum", b, [1]))
    both = replace(graph.ops[1], sub_buffers=((1, 2, 0), (2, 1, 0)))
    graph = replace(graph, ops=(graph.ops[0], both, graph.ops[2]))
    assert compatible(graph, sub_buffer_choices(graph)) == ((1, 2, 0),)
    assert message_of(graph, (1, 2, 0), (2, 1, 0)) == (
        "plan places '1:Copy.0' at byte 0 of '0:A.0', which lies inside itself"
    )


def test_misaligned_places_are_not_offered() -> None:
    graph = replace(chain_of_concats(), alignment=8)
    assert sub_buffer_choices(graph) == ((1, 3, 0), (3, 5, 0), (4, 5, 8))


def test_relaxations_count_the_wholes_or_the_parts_that_do_not_overlap() -> None:
    wholes, parts = relaxations(chain_of_concats())
    assert [tensor.bytes for tensor in wholes.tensors] == [1, 0, 0, 0, 0, 12, 1]
    assert [tensor.bytes for tensor in parts.tensors] == [1, 4, 4, 0, 4, 0, 1]


def test_overlapping_slices_count_nothing_beside_each_other() -> None:
    g = GraphBuilder("slices")
    x = g.input("x", 8)
    a = g.op("Slice", [x], [6])
    b = g.op("Slice", [x], [6])
    graph = g.build(outputs=[*a, *b])
    ops = (
        replace(graph.ops[0], sub_buffers=((1, 0, 0),)),
        replace(graph.ops[1], sub_buffers=((2, 0, 2),)),
    )
    wholes, parts = relaxations(replace(graph, ops=ops))
    assert [tensor.bytes for tensor in wholes.tensors] == [8, 0, 0]
    assert [tensor.bytes for tensor in parts.tensors] == [0, 0, 0]
