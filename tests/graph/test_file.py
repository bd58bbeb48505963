import json
from dataclasses import replace

import pytest

from regal.errors import ModelError
from regal.graph.builder import GraphBuilder
from regal.graph.file import model_from_json, model_hash, model_to_json
from regal.graph.text import graph_text
from regal.graph.types import Graph, LoadedModel, Role


def sample() -> Graph:
    body = GraphBuilder("body")
    p = body.input("p", 2)
    inner = body.build(outputs=body.op("Neg", [p], [2]))
    g = GraphBuilder("sample")
    x = g.input("x", 8)
    w = g.parameter("w", 100)
    (a,) = g.op("Mul", [x, w], [8], in_place=[(0, 0)], workspace=3)
    v = g.view("Reshape", a)
    out = g.op("If", [v, -1], [8], subgraphs=[inner], captures=1, after=[0])
    return g.build(outputs=out, alignment=16)


def model_of(*graphs: Graph) -> LoadedModel:
    return LoadedModel(framework="graph", entries=graphs, source=None)


def test_a_graph_file_is_read_back_as_it_was_written() -> None:
    model = model_of(sample(), sample())
    assert model_from_json(model_to_json(model).encode()) == model


def test_what_several_devices_need_is_read_back_too() -> None:
    graph = sample()
    ops = [replace(graph.ops[0], colocation="a", devices=("gpu",), times_ns={"gpu": 5, "": 70})]
    tensors = [replace(graph.tensors[0], transfer_ns=0)]
    graph = replace(graph, ops=(*ops, *graph.ops[1:]), tensors=(*tensors, *graph.tensors[1:]))
    assert model_from_json(model_to_json(model_of(graph)).encode()) == model_of(graph)


def test_the_hash_sees_a_changed_size_and_nothing_else() -> None:
    g = GraphBuilder("sample")
    out = g.op("A", [g.input("x", 8)], [8])
    other = GraphBuilder("sample")
    out2 = other.op("A", [other.input("x", 9)], [8])
    first, second = model_of(g.build(outputs=out)), model_of(other.build(outputs=out2))
    assert model_hash(first) == model_hash(first)
    assert model_hash(first) != model_hash(second)


def test_a_short_hand_written_file_gets_sensible_defaults() -> None:
    text = {
        "schema": "regal.graph/1",
        "ops": [{"name": "a", "kind": "A", "inputs": [0, 1], "outputs": [2]}],
        "tensors": [{"bytes": 4}, {"bytes": 5}, {"bytes": 6}],
        "inputs": [0],
        "outputs": [2],
    }
    graph = model_from_json(json.dumps(text).encode()).graph
    assert [tensor.role for tensor in graph.tensors] == [
        Role.INPUT,
        Role.PARAMETER,
        Role.OUTPUT,
    ]
    assert [tensor.storage for tensor in graph.tensors] == [0, 1, 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "x"}, "'g' has schema 'x'; a graph file has 'regal.graph/1'"),
        ({"ops": 3}, "'g': 'ops' is int, expected a list"),
        ({"ops": [{}]}, "'g': op 0: 'name' is None, expected a string"),
        ({"tensors": [{}]}, "'g': tensor 0: 'bytes' is missing"),
        ({"tensors": [{"bytes": 1.5}]}, "'g': tensor 0: 'bytes' is 1.5, expected"),
        ({"tensors": [{"bytes": True}]}, "'g': tensor 0: 'bytes' is True, expected"),
        ({"tensors": [{"bytes": 1, "role": "weight"}]}, "'g': tensor 0: unknown role"),
        (
            {"ops": [{"name": "a", "kind": "A", "times_ns": {"gpu": -1}}]},
            "'g': op 0: times_ns: 'gpu' is -1 ns, expected 0 to below 2^50",
        ),
        (
            {"ops": [{"name": "a", "kind": "A", "devices": [1]}]},
            "'g': op 0: 'devices' holds 1, expected strings",
        ),
        ({"inputs": [7]}, "graph input 7 is not one of 0 tensors"),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused_with_the_place_and_the_value(
    change: dict[str, object], message: str
) -> None:
    document = {
        "schema": "regal.graph/1",
        "ops": [],
        "tensors": [],
        "inputs": [],
        "outputs": [],
    }
    with pytest.raises(ModelError) as error:
        model_from_json(json.dumps({**document, **change}).encode(), "g")
    assert str(error.value).startswith(message)


def test_bytes_that_are_not_json_are_refused() -> None:
    for data in (b"", b"{", b"\xff\xfe", b"[" * 100_000):
        with pytest.raises(ModelError, match="is not a JSON file"):
            model_from_json(data, "g")


def test_the_text_form_shows_ops_tensors_and_bodies() -> None:
    assert graph_text(sample()) == (
        'graph "sample" graph, align 16, in 0, out 4\n'
        '  t0 "x" input uint8[8] 8 B, storage 0\n'
        '  t1 "w" parameter uint8[100] 100 B, storage 1\n'
        '  t2 "0:Mul.0" activation uint8[8] 8 B, storage 2\n'
        '  t3 "1:Reshape.0" activation uint8[8] 8 B, storage 2\n'
        '  t4 "2:If.0" output uint8[8] 8 B, storage 4\n'
        '  op0 "0:Mul" Mul (t0 t1) -> t2, workspace 3 B, in place 0<-0\n'
        '  op1 "1:Reshape" Reshape (t2) -> t3\n'
        '  op2 "2:If" If (t3 -) -> t4, after 0, captures 1\n'
        '    graph "body" graph, align 1, in 0, out 1\n'
        '      t0 "p" input uint8[2] 2 B, storage 0\n'
        '      t1 "0:Neg.0" output uint8[2] 2 B, storage 1\n'
        '      op0 "0:Neg" Neg (t0) -> t1\n'
    )
