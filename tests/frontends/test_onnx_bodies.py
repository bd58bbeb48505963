"""Bodies of If, Loop, Scan and others: captured values, shadowed names, what they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from onnx import TensorProto, helper

from regal.errors import ModelError
from regal.frontends.onnx import load
from regal.graph.types import Role
from tests.onnx_models import graph, model, node, save, source_of, tensor

if TYPE_CHECKING:
    from pathlib import Path

    from onnx import GraphProto, ModelProto

    from regal.graph.types import Graph, Op

CONDITION = tensor("c", [], TensorProto.BOOL)


def read(proto: ModelProto, folder: Path) -> Graph:
    return load(save(proto, folder / "model.onnx"), {}, {}).graph


def branch(kind: str, reads: str, gives: str) -> GraphProto:
    return graph([node(kind, [reads], [gives])], [], [gives])


def if_model() -> ModelProto:
    nodes = [
        node("Abs", ["x"], ["a"]),
        node(
            "If",
            ["c"],
            ["y"],
            then_branch=branch("Exp", "a", "t"),
            else_branch=branch("Neg", "x", "e"),
        ),
    ]
    return model(graph(nodes, [CONDITION, tensor("x", [4])], ["y"]))


def test_values_that_branches_take_from_outside_are_the_last_inputs(tmp_path: Path) -> None:
    found = read(if_model(), tmp_path)
    op = found.ops[1]
    names = [found.tensors[t].name for t in op.inputs]
    assert op.captures == 2
    assert names[0] == "c"
    assert sorted(names[1:]) == ["a", "x"]
    taken = {t.name: t.role for body in op.subgraphs for t in body.tensors}
    assert taken["a"] is taken["x"] is Role.CAPTURED


def test_an_if_writes_the_results_of_its_branches_into_its_own(tmp_path: Path) -> None:
    found = read(if_model(), tmp_path)
    for body in found.ops[1].subgraphs:
        assert [body.tensors[t].bytes for t in body.outputs] == [0]
    assert found.tensors[found.outputs[0]].bytes == 16


def test_a_name_inside_a_body_hides_the_same_name_outside(tmp_path: Path) -> None:
    inner = graph(
        [node("Add", ["x", "x"], ["z"])],
        [tensor("i", [], TensorProto.INT64), CONDITION, tensor("x", [2])],
        ["c", "z"],
    )
    nodes = [node("Loop", ["n", "c", "x"], ["y"], body=inner)]
    inputs = [tensor("n", [], TensorProto.INT64), CONDITION, tensor("x", [2])]
    op = read(model(graph(nodes, inputs, ["y"])), tmp_path).ops[0]
    assert op.captures == 0
    assert op.subgraphs[0].tensors[2].role is Role.INPUT


def test_a_value_taken_through_two_levels_is_captured_at_both(tmp_path: Path) -> None:
    deep = node(
        "If",
        ["c"],
        ["d"],
        then_branch=branch("Exp", "a", "t"),
        else_branch=branch("Neg", "a", "e"),
    )
    middle = graph([deep], [], ["d"])
    nodes = [
        node("Abs", ["x"], ["a"]),
        node("If", ["c"], ["y"], then_branch=middle, else_branch=branch("Abs", "x", "f")),
    ]
    found = read(model(graph(nodes, [CONDITION, tensor("x", [4])], ["y"])), tmp_path)
    op = found.ops[1]
    assert "a" in {found.tensors[t].name for t in op.inputs}
    between = with_an_if(op)
    assert "a" in {between.tensors[t].name for t in between.ops[0].inputs}


def test_a_body_that_reads_what_nothing_defines_is_refused(tmp_path: Path) -> None:
    nodes = [
        node(
            "If",
            ["c"],
            ["y"],
            then_branch=branch("Exp", "ghost", "t"),
            else_branch=branch("Neg", "x", "e"),
        )
    ]
    proto = model(graph(nodes, [CONDITION, tensor("x", [4])], ["y"]))
    with pytest.raises(ModelError, match="'ghost', which nothing defines"):
        read(proto, tmp_path)


def test_state_of_a_loop_is_measured_where_no_rule_tells_its_size(tmp_path: Path) -> None:
    inner = graph(
        [node("Concat", ["s", "x"], ["z"], axis=0)],
        [tensor("i", [], TensorProto.INT64), CONDITION, tensor("s", [None])],
        ["c", "z"],
    )
    nodes = [node("Loop", ["n", "t", "x"], ["y"], body=inner)]
    weights = {"n": np.array(3, np.int64), "t": np.array(True)}
    path = save(model(graph(nodes, [tensor("x", [5])], ["y"], weights)), tmp_path / "m.onnx")
    loaded = load(path, {}, {})
    # Three times five more numbers after the five that go in.
    assert loaded.graph.tensors[loaded.graph.outputs[0]].shape == (20,)
    body = loaded.graph.ops[0].subgraphs[0]
    assert max(t.bytes for t in body.tensors) == 80
    assert any("measured in ONNX Runtime" in note for note in source_of(loaded).notes)


def test_a_scan_hands_out_slices_of_what_it_holds(tmp_path: Path) -> None:
    inner = graph(
        [node("Add", ["s", "row"], ["sum"]), node("Identity", ["sum"], ["copy"])],
        [tensor("s", [3]), tensor("row", [3])],
        ["sum", "copy"],
    )
    nodes = [node("Scan", ["s0", "x"], ["last", "y"], body=inner, num_scan_inputs=1)]
    inputs = [tensor("s0", [3]), tensor("x", [7, 3])]
    found = read(model(graph(nodes, inputs, ["last", "y"])), tmp_path)
    body = found.ops[0].subgraphs[0]
    assert [body.tensors[t].bytes for t in body.inputs] == [0, 0]
    assert found.tensors[found.outputs[1]].shape == (7, 3)


def test_bodies_may_belong_to_operators_of_other_domains(tmp_path: Path) -> None:
    inner = graph([node("Abs", ["x"], ["z"])], [], ["z"])
    nodes = [helper.make_node("Again", ["x"], ["y"], domain="mine", body=inner)]
    found = read(model(graph(nodes, [tensor("x", [4])], ["y"]), 17, "mine"), tmp_path)
    assert found.ops[0].kind == "mine::Again"
    assert len(found.ops[0].subgraphs) == 1
    assert found.ops[0].captures == 1


def test_bodies_may_be_nested(tmp_path: Path) -> None:
    found = read(chain(10), tmp_path)
    for _ in range(9):
        found = with_an_if(found.ops[0])
    assert [op.kind for op in found.ops] == ["If"]


def with_an_if(op: Op) -> Graph:
    return next(body for body in op.subgraphs if body.ops[0].kind == "If")


def chain(levels: int) -> ModelProto:
    """Return a model with one If inside the other, `levels` deep."""
    body = graph([node("Abs", ["x"], ["z"])], [], ["z"])
    for _ in range(levels):
        leaf = branch("Abs", "x", "z")
        body = graph([node("If", ["c"], ["z"], then_branch=body, else_branch=leaf)], [], ["z"])
    return model(graph(list(body.node), [CONDITION, tensor("x", [4])], ["z"]))
