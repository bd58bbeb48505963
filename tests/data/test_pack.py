"""The compact form: nothing that counts is lost, equal graphs give equal bytes."""

from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regal.data.pack import packed, unpacked
from regal.errors import ModelError
from regal.graph.types import ABSENT, Graph, Op, Role, Tensor
from tests.graphs import random_graph


def unnamed(graph: Graph) -> Graph:
    """Return `graph` with the names and attributes that the compact form leaves out."""
    ops = tuple(
        replace(
            op,
            name=f"{i}:{op.kind}",
            attributes={},
            subgraphs=tuple(unnamed(body) for body in op.subgraphs),
        )
        for i, op in enumerate(graph.ops)
    )
    tensors = tuple(replace(tensor, name=f"t{i}") for i, tensor in enumerate(graph.tensors))
    return replace(graph, ops=ops, tensors=tensors)


@given(st.integers(0, 10**6), st.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_a_graph_comes_back_as_it_was_but_for_its_names(seed: int, ops: int) -> None:
    graph = random_graph(seed, ops, concats=True)
    assert unpacked(packed(graph)) == unnamed(graph)


def rich_graph() -> Graph:
    """Return a graph that uses every field of ops and tensors."""
    tensors = (
        Tensor(name="x", shape=(2, 3), dtype="float32", bytes=24, role=Role.INPUT, storage=0),
        Tensor(name="y", shape=(3,), dtype="int4", bytes=2, role=Role.ACTIVATION, storage=1),
        Tensor(
            name="v", shape=(2,), dtype="resource", bytes=7, role=Role.ACTIVATION, storage=0,
            storage_offset=8, transfer_ns=0,
        ),
        Tensor(name="z", shape=(), dtype="bool", bytes=1, role=Role.OUTPUT, storage=3),
    )  # fmt: skip
    body = Graph(
        name="body", framework="onnx", ops=(), tensors=tensors[:1], inputs=(0,), outputs=(0,)
    )
    ops = (
        Op(name="a", kind="If", inputs=(0, ABSENT), outputs=(1, ABSENT), captures=1,
           subgraphs=(body,), colocation="here", devices=("gpu",), times_ns={"gpu": 5, "": 7}),
        Op(name="b", kind="Cut", inputs=(1, 0), outputs=(3, 2), control_inputs=(0,),
           workspace_bytes=9, flops=11, in_place=((1, 0),), sub_buffers=((2, 0, 8),),
           attributes={"axis": 1}),
    )  # fmt: skip
    return Graph(
        name="rich", framework="onnx", ops=ops, tensors=tensors, inputs=(0,), outputs=(3,),
        alignment=8, in_place_by_runtime=True,
    )  # fmt: skip


def test_every_field_comes_back() -> None:
    graph = rich_graph()
    used = {f.name for op in graph.ops for f in fields(op) if getattr(op, f.name)}
    assert used == {f.name for f in fields(Op)}
    assert unpacked(packed(graph)) == unnamed(graph)


def test_equal_graphs_give_equal_bytes() -> None:
    assert packed(rich_graph()) == packed(rich_graph())


def test_repeated_layers_take_little_room() -> None:
    def chain(n: int) -> Graph:
        tensors = tuple(
            Tensor(name=f"{i}", shape=(64,), dtype="float32", bytes=256,
                   role=Role.INPUT if i == 0 else Role.ACTIVATION, storage=i)
            for i in range(n + 1)
        )  # fmt: skip
        ops = tuple(Op(name=f"{i}", kind="Relu", inputs=(i,), outputs=(i + 1,)) for i in range(n))
        return Graph(
            name="chain", framework="onnx", ops=ops, tensors=tensors, inputs=(0,), outputs=(n,)
        )

    assert len(packed(chain(2000))) < len(packed(chain(20))) + 150


@pytest.mark.parametrize("data", [b"", b"nonsense", packed(rich_graph())[:-9]])
def test_broken_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ModelError, match="packed graph of"):
        unpacked(data)
