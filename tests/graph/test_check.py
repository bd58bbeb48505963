from dataclasses import replace

import pytest

from regal.errors import ModelError
from regal.graph.builder import GraphBuilder
from regal.graph.check import require_valid_graph
from regal.graph.types import Graph, Role


def chain() -> Graph:
    g = GraphBuilder("chain")
    x = g.input("x", 4)
    (a,) = g.op("A", [x], [8], name="a")
    (b,) = g.op("B", [a], [4], name="b")
    return g.build(outputs=[b])


def test_a_chain_is_valid() -> None:
    assert require_valid_graph(chain()) == chain()


def message_of(graph: Graph) -> str:
    with pytest.raises(ModelError) as error:
        require_valid_graph(graph)
    return str(error.value)


def test_a_reader_listed_before_its_writer_is_refused() -> None:
    graph = chain()
    assert message_of(replace(graph, ops=graph.ops[::-1])) == (
        "op 'b' reads 'a.0' before op 'a' writes it: a cycle, or ops out of order"
    )


def test_an_op_that_reads_its_own_output_is_refused() -> None:
    graph = chain()
    loop = replace(graph.ops[0], inputs=graph.ops[0].outputs)
    assert "op 'a' reads 'a.0' before op 'a' writes it" in message_of(
        replace(graph, ops=(loop, graph.ops[1]))
    )


def test_an_index_outside_the_tensors_is_refused() -> None:
    graph = chain()
    wild = replace(graph.ops[0], inputs=(99,))
    assert message_of(replace(graph, ops=(wild, graph.ops[1]))) == (
        "op 'a' uses tensor 99; there are 3 tensors"
    )


def test_a_tensor_written_twice_is_refused() -> None:
    graph = chain()
    twice = replace(graph.ops[1], outputs=graph.ops[0].outputs, inputs=graph.inputs)
    assert message_of(replace(graph, ops=(graph.ops[0], twice))) == (
        "tensor 'a.0' is written twice, by op 'a' and op 'b'"
    )


def test_an_op_that_writes_a_graph_input_is_refused() -> None:
    graph = chain()
    bad = replace(graph.ops[0], inputs=(), outputs=graph.inputs)
    assert message_of(replace(graph, ops=(bad,), outputs=())) == (
        "op 'a' writes 'x', whose role is input"
    )


def test_negative_and_enormous_sizes_are_refused() -> None:
    graph = chain()
    negative = replace(graph.tensors[0], bytes=-1)
    huge = replace(graph.tensors[0], bytes=1 << 61)
    assert "neither may be negative" in message_of(
        replace(graph, tensors=(negative, *graph.tensors[1:]))
    )
    assert "exceed 2^60 bytes" in message_of(replace(graph, tensors=(huge, *graph.tensors[1:])))


def test_two_ops_of_one_name_are_refused() -> None:
    graph = chain()
    same = replace(graph.ops[1], name="a")
    assert message_of(replace(graph, ops=(graph.ops[0], same))) == (
        "ops 0 and 1 are both named 'a'; names identify ops"
    )


def test_a_control_input_that_comes_later_is_refused() -> None:
    graph = chain()
    early = replace(graph.ops[0], control_inputs=(1,))
    assert message_of(replace(graph, ops=(early, graph.ops[1]))) == (
        "op 'a' must run after op 1, which is not listed earlier"
    )


def test_bodies_are_checked_too() -> None:
    body = chain()
    broken = replace(body, ops=body.ops[::-1])
    g = GraphBuilder()
    x = g.input("x", 1)
    out = g.op("If", [x], [1])
    graph = g.build(outputs=out)
    with_body = replace(graph, ops=(replace(graph.ops[0], subgraphs=(broken,)),))
    assert "op 'b' reads" in message_of(with_body)


def test_the_builder_marks_graph_outputs() -> None:
    graph = chain()
    assert [tensor.role for tensor in graph.tensors] == [
        Role.INPUT,
        Role.ACTIVATION,
        Role.OUTPUT,
    ]
