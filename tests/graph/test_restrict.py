from regal.graph.builder import GraphBuilder
from regal.graph.restrict import restricted
from regal.graph.types import Graph


def with_choices(*, by_runtime: bool = False) -> Graph:
    b = GraphBuilder("body")
    p = b.input("p", 4)
    body = b.build(
        outputs=b.op("Relu", [p], [4], in_place=[(0, 0)]), in_place_by_runtime=by_runtime
    )
    g = GraphBuilder("outer")
    x = g.input("x", 4)
    a = g.op("If", [x], [4], subgraphs=[body])
    r = g.op("Relu", a, [4], in_place=[(0, 0)])
    y = g.op("Concat", [*r, x], [8], parts=[(0, 0)])
    return g.build(outputs=y, in_place_by_runtime=by_runtime)


def choices(graph: Graph) -> tuple[int, int, int]:
    bodies = sum(len(op.in_place) for outer in graph.ops for b in outer.subgraphs for op in b.ops)
    return (
        sum(len(op.in_place) for op in graph.ops),
        bodies,
        sum(len(op.sub_buffers) for op in graph.ops),
    )


def test_each_switch_takes_its_own_choices_bodies_included() -> None:
    graph = with_choices()
    assert choices(graph) == (1, 1, 1)
    assert choices(restricted(graph, in_place=False, sub_buffers=True)) == (0, 0, 1)
    assert choices(restricted(graph, in_place=True, sub_buffers=False)) == (1, 1, 0)
    assert restricted(graph, in_place=True, sub_buffers=True) is graph


def test_what_the_runtime_does_by_itself_is_no_choice() -> None:
    graph = with_choices(by_runtime=True)
    assert choices(restricted(graph, in_place=False, sub_buffers=False)) == (1, 1, 0)
