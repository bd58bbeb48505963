"""Kinds of graphs on which other planners failed; the numbers are issues of their projects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from onnx import TensorProto

from regal.backends.onnx import apply, verify
from regal.frontends.onnx import load
from tests.backends.simple_plans import model_plan
from tests.onnx_models import graph, model, node, save, tensor

if TYPE_CHECKING:
    from pathlib import Path

    from onnx import GraphProto, ModelProto

INT64 = TensorProto.INT64
CONDITION = tensor("c", [], TensorProto.BOOL)


def branch(kind: str, reads: str, gives: str) -> GraphProto:
    return graph([node(kind, [reads], [gives])], [], [gives])


def shape_arithmetic_in_two_branches() -> ModelProto:
    """One integer tensor is read by two ops of parallel branches; one of them may overwrite it."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Add", ["s", "one"], ["t"]),
        node("Cast", ["t"], ["f"], to=TensorProto.FLOAT),
        node("Clip", ["t", "low"], ["r"]),
        node("Slice", ["f", "zero", "one"], ["u"]),
        node("Slice", ["r", "zero", "one"], ["v"]),
        node("Cast", ["v"], ["w"], to=TensorProto.FLOAT),
        node("Concat", ["u", "w"], ["y"], axis=0),
    ]
    weights = {"one": np.array([1]), "zero": np.array([0]), "low": np.array(0)}
    return model(graph(nodes, [tensor("x", [2, 3])], ["y"], weights))


def second_result_without_a_reader() -> ModelProto:
    """The second result of a node is not read, and a later node has the same size."""
    nodes = [
        node("Abs", ["x"], ["a"]),
        node("Split", ["a"], ["b", "unused"], axis=0),
        node("Neg", ["b"], ["d"]),
        node("Exp", ["b"], ["e"]),
        node("Add", ["d", "e"], ["y"]),
    ]
    return model(graph(nodes, [tensor("x", [8])], ["y"]))


def value_passed_through_a_level_that_does_not_read_it() -> ModelProto:
    inner = node(
        "If",
        ["c"],
        ["d"],
        then_branch=branch("Exp", "a", "t"),
        else_branch=branch("Neg", "a", "e"),
    )
    outer = node(
        "If",
        ["c"],
        ["o"],
        then_branch=graph([inner], [], ["d"]),
        else_branch=branch("Abs", "x", "f"),
    )
    nodes = [node("Abs", ["x"], ["a"]), outer, node("Neg", ["o"], ["y"])]
    return model(graph(nodes, [CONDITION, tensor("x", [4])], ["y"]))


def transpose_read_outside_and_by_a_loop() -> ModelProto:
    body = graph(
        [node("Add", ["p", "s"], ["z"])],
        [tensor("i", [], INT64), CONDITION, tensor("s", [3, 2])],
        ["c", "z"],
    )
    nodes = [
        node("Transpose", ["x"], ["p"], perm=[1, 0]),
        node("Slice", ["p", "zero", "one"], ["q"]),
        node("Loop", ["n", "yes", "p"], ["l"], body=body),
        node("Add", ["l", "q"], ["y"]),
    ]
    weights = {
        "zero": np.array([0]),
        "one": np.array([1]),
        "n": np.array(3),
        "yes": np.array(True),
    }
    return model(graph(nodes, [tensor("x", [2, 3])], ["y"], weights))


def identities_between_arithmetic_that_folds() -> ModelProto:
    nodes = [
        node("Identity", ["x"], ["mid"]),
        node("Div", ["one", "one"], ["folded"]),
        node("Mul", ["mid", "folded"], ["wrapped"]),
        node("Add", ["wrapped", "zero"], ["y"]),
    ]
    weights = {"one": np.array(1, np.float32), "zero": np.array(0, np.float32)}
    return model(graph(nodes, [tensor("x", [4])], ["y"], weights))


def same_tensor_twice_in_a_concatenation() -> ModelProto:
    nodes = [
        node("Abs", ["x"], ["a"]),
        node("Neg", ["x"], ["b"]),
        node("Concat", ["a", "b", "a"], ["d"], axis=0),
        node("Relu", ["d"], ["y"]),
    ]
    return model(graph(nodes, [tensor("x", [4])], ["y"]))


def alias_that_lives_longer_than_its_source() -> ModelProto:
    nodes = [
        node("Add", ["x", "k"], ["src"]),
        node("Flatten", ["src"], ["left"]),
        node("Exp", ["x"], ["right"]),
        node("Add", ["left", "right"], ["y"]),
    ]
    return model(graph(nodes, [tensor("x", [5, 8])], ["y"], {"k": np.array(0.25, np.float32)}))


def branches_one_after_the_other() -> ModelProto:
    """The first If's result stays live across the second If, which nests a third."""
    nested = node(
        "If",
        ["c"],
        ["n"],
        then_branch=branch("Exp", "r1", "t"),
        else_branch=branch("Neg", "r1", "e"),
    )
    nodes = [
        node(
            "If",
            ["c"],
            ["r1"],
            then_branch=branch("Abs", "x", "g"),
            else_branch=branch("Neg", "x", "h"),
        ),
        node(
            "If",
            ["c"],
            ["r2"],
            then_branch=graph([nested], [], ["n"]),
            else_branch=branch("Exp", "x", "k"),
        ),
        node("Add", ["r1", "r2"], ["y"]),
    ]
    return model(graph(nodes, [CONDITION, tensor("x", [16])], ["y"]))


@pytest.mark.parametrize(
    ("proto", "issue"),
    [
        (shape_arithmetic_in_two_branches(), "onnxruntime 7633"),
        (second_result_without_a_reader(), "onnxruntime 21019"),
        (value_passed_through_a_level_that_does_not_read_it(), "onnxruntime 8702"),
        (transpose_read_outside_and_by_a_loop(), "onnxruntime 10305"),
        (identities_between_arithmetic_that_folds(), "onnxruntime 32413"),
        (same_tensor_twice_in_a_concatenation(), "executorch 16091"),
        (alias_that_lives_longer_than_its_source(), "tvm 20190"),
        (branches_one_after_the_other(), "executorch 21490"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_a_known_trap_is_planned_and_runs_alike(
    proto: ModelProto, issue: str, tmp_path: Path
) -> None:
    path, out = save(proto, tmp_path / "m.onnx"), tmp_path / "o.onnx"
    loaded = load(path, {}, {})
    out.write_bytes(apply(loaded, model_plan(loaded, 2)).files[""])
    verdict = verify(path, out, seed=0, invocations=4, shapes={}, dims={})
    assert verdict.outputs_equal, (issue, verdict)
    assert verdict.checks[0].detail == "", issue
