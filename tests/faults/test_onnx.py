"""Shapes of graphs on which other tools failed (docs/known_faults.md), run in ONNX Runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx
import pytest

from regal import pipeline
from regal.backends.onnx import verify
from regal.frontends import load
from regal.options import Options
from tests.corpus import corpus_file
from tests.faults.clobber import require_no_clobber
from tests.faults.onnx_runs import optimized, write_model

if TYPE_CHECKING:
    from pathlib import Path

    from regal.graph.types import Graph, Op

MODELS = {
    # microsoft/onnxruntime #7633: integer shape arithmetic, one value for two branches.
    "ort-7633": """agraph (float[4,6] x) => (float[N,M] y)
      <int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[2] pads0 = {0, 0}> {
        s = Shape (x)
        f = Cast <to = 1> (s)
        r = Relu (f)
        first = Slice (r, zero, one)
        again = Neg (f)
        second = Slice (again, one, two)
        sum = Add (first, second)
        size = Cast <to = 7> (sum)
        most = Abs (size)
        pads = Concat <axis = 0> (pads0, most, one)
        y = Pad (x, pads)
    }""",
    # microsoft/onnxruntime #21019: the second output of a node has no consumer.
    "ort-21019": """agraph (float[2,64] x) => (float[2,32] y) {
        a, unused = Split <axis = 1> (x)
        b = Exp (a)
        c = Mul (a, b)
        y = Add (c, b)
    }""",
    # microsoft/onnxruntime #8702: a value passes through an If and is read two levels below.
    "ort-8702": """agraph (bool p, bool q, float[16] x) => (float[16] y) {
        big = Exp (x)
        y = If (p) <
          then_branch = outer () => (float[16] t1) {
            t1 = If (q) <
              then_branch = inner () => (float[16] t2) { n = Neg (big)  t2 = Mul (n, big) },
              else_branch = inner_else () => (float[16] t3) { t3 = Abs (big) }
            >
          },
          else_branch = outer_else () => (float[16] t4) { t4 = Identity (x) }
        >
    }""",
    # microsoft/onnxruntime #10305: a Transpose that a Slice reads and a Loop body captures.
    "ort-10305": """agraph (float[4,5] x) => (float[5,2] y, float[5,4] v)
      <int64 trips = {3}, bool keep = {1}, int64[1] zero = {0}, int64[1] two = {2},
       int64[1] one = {1}> {
        t = Transpose <perm = [1, 0]> (x)
        y = Slice (t, zero, two, one)
        start = Mul (t, t)
        v = Loop (trips, keep, start) <
          body = loop (int64 i, bool go, float[5,4] carried) => (bool next, float[5,4] out) {
            next = Identity (go)
            out = Add (carried, t)
          }
        >
    }""",
    # microsoft/onnxruntime #32413: Identity, a constant that folds to one, and a zero.
    "ort-32413": """agraph (float[8] x) => (float[8] y)
      <float one = {1.0}, float zero = {0.0}> {
        mid = Identity (x)
        folded = Div (one, one)
        wrapped = Mul (mid, folded)
        y = Add (wrapped, zero)
    }""",
    # microsoft/onnxruntime #32414, #32416: the same with Dropout and a Cast to the same type.
    "ort-32414": """agraph (float[8] x) => (float[8] y) <float one = {1.0}, float zero = {0.0}> {
        mid = Dropout (x)
        same = Cast <to = 1> (mid)
        wrapped = Div (same, one)
        y = Add (wrapped, zero)
    }""",
    # pytorch/executorch #21490: conds in a row and inside each other, the first result stays live.
    "executorch-21490": """agraph (bool p, float[32] val, float[32] state) => (float[32] y) {
        copy = Identity (val)
        r1 = If (p) <
          then_branch = a () => (float[32] a1) { a0 = Exp (copy)  a1 = Add (a0, state) },
          else_branch = b () => (float[32] b1) { b0 = Abs (copy)  b1 = Sub (b0, state) }
        >
        r2 = If (p) <
          then_branch = c () => (float[32] c1) {
            c0 = If (p) <
              then_branch = d () => (float[32] d1) { d0 = Neg (r1)  d1 = Mul (d0, r1) },
              else_branch = e () => (float[32] e1) { e1 = Tanh (r1) }
            >
            c1 = Sub (c0, r1)
          },
          else_branch = f () => (float[32] f1) { f1 = Sigmoid (r1) }
        >
        y = Add (r1, r2)
    }""",
    # pytorch/executorch #16091: one tensor twice in a Concat.
    "executorch-16091": """agraph (float[2,8] x) => (float[6,8] y) {
        a = Exp (x)
        b = Neg (x)
        y = Concat <axis = 0> (a, b, a)
    }""",
    # pytorch/pytorch #86159: a greedy merge of the additions would make a circle.
    "pytorch-86159": """agraph (float[4] a) => (float[4] b1, float[4] c2)
      <float k1 = {1.0}, float k2 = {1.5}, float k3 = {1.2}> {
        b0 = Add (a, k1)
        c0 = Add (a, k2)
        x0 = Relu (b0)
        x1 = Relu (c0)
        b1 = Add (b0, x1)
        c1 = Add (c0, k3)
        c2 = Add (x0, c0)
    }""",
    # apache/tvm #20190: an alias of a value that is still read.
    "tvm-20190": """agraph (float[5,8] x) => (float[5,8] out)
      <float k1 = {0.25}, float k2 = {0.125}, int64[2] shape = {5, 8}> {
        src = Add (x, k1)
        left = Reshape (src, shape)
        right = Add (x, k2)
        out = Add (left, right)
    }""",
    # apache/tvm #15211: R1 -> If -> R3 -> R4 and R1 -> R4.
    "tvm-15211": """agraph (bool p, float[16] x) => (float[16] r4) {
        r1 = Exp (x)
        r2 = If (p) <
          then_branch = t () => (float[16] t1) { t1 = Neg (r1) },
          else_branch = e () => (float[16] e1) { e1 = Abs (r1) }
        >
        r3 = Tanh (r2)
        r4 = Add (r3, r1)
    }""",
    # tensorflow/tensorflow #68488: a select with a scalar branch between convolutions.
    "tensorflow-68488": """agraph (bool[1,1,6,6] mask, float[1,2,6,6] x) => (float[1,2,6,6] y)
      <float zero = {0.0}, float[2,2,1,1] w = {1.0, -2.0, 3.0, 0.5}> {
        c = Conv (x, w)
        s = Where (mask, c, zero)
        y = Conv (s, w)
    }""",
    # onnx/tensorflow-onnx #1899: loops inside loops, an array written in the inner one; #1987: a
    # loop whose body hands its state on unchanged.
    "tf2onnx-1899": """agraph (float[4] x) => (float[4] total, float[2,3,4] rows, float[4] same)
      <int64 outer_trips = {2}, int64 inner_trips = {3}, bool keep = {1}> {
        total, rows = Loop (outer_trips, keep, x) <
          body = outer (int64 i, bool go, float[4] carried)
              => (bool go_on, float[4] done, float[3,4] written) {
            go_on = Identity (go)
            done, written = Loop (inner_trips, keep, carried) <
              body = inner (int64 j, bool g, float[4] c) => (bool h, float[4] d, float[4] row) {
                h = Identity (g)
                d = Add (c, x)
                row = Mul (d, c)
              }
            >
          }
        >
        same = Loop (outer_trips, keep, x) <
          body = idle (int64 k, bool m, float[4] s) => (bool n, float[4] t) {
            n = Identity (m)
            t = Identity (s)
          }
        >
    }""",
    # ml-explore/mlx #950: several outputs, one of another shape, one inside the region.
    "mlx-950": """agraph (float[4,8] x) => (float[4,8] a, float[4,1] b, float[4,8] c) {
        a = Exp (x)
        b = ReduceMean <axes = [1]> (a)
        d = Sub (a, b)
        c = Tanh (d)
    }""",
}


@pytest.mark.parametrize("name", MODELS)
def test_the_optimized_model_gives_the_same_outputs(name: str, tmp_path: Path) -> None:
    result = optimized(write_model(MODELS[name], tmp_path))
    for graph, plan in zip(result.model.entries, result.plan.plans, strict=True):
        require_no_clobber(graph, plan)
    assert result.arena_bytes <= result.before.arena_bytes


def graph_of(name: str, folder: Path) -> Graph:
    return load(write_model(MODELS[name], folder)).graph


def op_of(graph: Graph, kind: str) -> Op:
    return next(op for op in graph.ops if op.kind == kind)


def test_a_value_that_a_loop_body_captures_is_an_input_of_the_loop(tmp_path: Path) -> None:
    """microsoft/onnxruntime #10305: the Transpose has a reader that no edge of the graph shows."""
    graph = graph_of("ort-10305", tmp_path)
    (written,) = op_of(graph, "Transpose").outputs
    loop = op_of(graph, "Loop")
    assert written in loop.inputs[len(loop.inputs) - loop.captures :]
    assert written in op_of(graph, "Slice").inputs


def test_a_value_that_is_read_two_levels_below_is_live_at_both(tmp_path: Path) -> None:
    """microsoft/onnxruntime #8702."""
    graph = graph_of("ort-8702", tmp_path)
    (big,) = op_of(graph, "Exp").outputs
    outer = op_of(graph, "If")
    assert big in outer.inputs
    inner = op_of(outer.subgraphs[0], "If")
    assert "big" in [outer.subgraphs[0].tensors[t].name for t in inner.inputs]


def test_an_output_without_a_consumer_has_bytes_of_its_own(tmp_path: Path) -> None:
    """microsoft/onnxruntime #21019."""
    path = write_model(MODELS["ort-21019"], tmp_path)
    result = pipeline.optimize(path)
    (plan,) = result.plan.plans
    _, unused = op_of(result.model.graph, "Split").outputs
    place = plan.offsets[result.model.graph.tensors[unused].storage]
    assert place.first_step == place.last_step == 0
    assert place.bytes == 256


def test_nothing_is_folded_or_removed(tmp_path: Path) -> None:
    """microsoft/onnxruntime #32413: every name of the file is still there."""
    path = write_model(MODELS["ort-32413"], tmp_path)
    optimized(path)
    nodes = onnx.load(path.with_name("optimized.onnx")).graph.node
    assert sorted(node.output[0] for node in nodes) == ["folded", "mid", "wrapped", "y"]


def test_the_runtime_agrees_in_a_child_process(tmp_path: Path) -> None:
    path = write_model(MODELS["executorch-21490"], tmp_path)
    out = tmp_path / "out.onnx"
    pipeline.optimize(path, out, Options(verify=False))
    verdict = verify(path, out, seed=0, invocations=5, shapes={}, dims={})
    assert verdict.outputs_equal


@pytest.mark.corpus
def test_the_file_of_onnxruntime_10305_works() -> None:
    result = pipeline.optimize(corpus_file("onnx/ort_gh_issue_10305.onnx"))
    for graph, plan in zip(result.model.entries, result.plan.plans, strict=True):
        require_no_clobber(graph, plan)
