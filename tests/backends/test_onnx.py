"""Plans written into ONNX models, and what ONNX Runtime makes of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import regal
from regal.backends.onnx import apply, default_order, verify, with_free_dimensions
from regal.backends.onnx.apply import encoded
from regal.backends.onnx.order import default_order_of, executed_order
from regal.backends.onnx.verify import out_of_order
from regal.errors import PlanError
from regal.frontends.onnx import load
from regal.frontends.onnx.parse import TEXT_SUFFIXES
from regal.frontends.onnx.trace import Trace, trace
from regal.graph.memory import dependencies
from regal.onnxruntime import optimized_bytes, session
from tests.backends.simple_plans import model_plan, plan_in_order, random_order
from tests.onnx_models import branches, graph, model, node, save, source_of, tensor

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from onnx import ModelProto

    from regal.graph.types import LoadedModel
    from regal.plan.types import ModelPlan

DEPTH_FIRST = [0, 4, 1, 5, 2, 6, 3, 7, 8]  # of branches(4): a branch at a time


def planned(loaded: LoadedModel, order: Sequence[int]) -> ModelPlan:
    plan = plan_in_order(loaded.graph, list(order))
    return replace(model_plan(loaded), plans=(plan,))


def written(loaded: LoadedModel, plan: ModelPlan, path: Path) -> ModelProto:
    applied = apply(loaded, plan)
    for name, data in applied.files.items():
        (path.with_name(name) if name else path).write_bytes(data)
    return onnx.load(path, load_external_data=False)


def outputs_of(proto: ModelProto) -> list[str]:
    return [n.output[0] for n in proto.graph.node]


def test_nodes_stand_in_the_planned_order_and_all_else_is_kept(tmp_path: Path) -> None:
    proto = branches()
    proto.producer_name = "me"
    proto.metadata_props.add(key="author", value="you")
    loaded = load(save(proto, tmp_path / "m.onnx"), {}, {})
    new = written(loaded, planned(loaded, DEPTH_FIRST), tmp_path / "o.onnx")
    assert outputs_of(new)[:4] == ["wide0", "small0", "wide1", "small1"]
    for copy in (proto, new):
        nodes = sorted(copy.graph.node, key=lambda n: n.output[0])
        del copy.graph.node[:]
        copy.graph.node.extend(nodes)
    assert new.SerializeToString() == proto.SerializeToString()


def test_the_source_is_not_changed_by_applying(tmp_path: Path) -> None:
    loaded = load(save(branches(), tmp_path / "m.onnx"), {}, {})
    first = apply(loaded, planned(loaded, DEPTH_FIRST)).files
    assert apply(loaded, planned(loaded, DEPTH_FIRST)).files == first
    assert outputs_of(source_of(loaded).model) == outputs_of(branches())


def test_a_plan_of_another_model_is_refused(tmp_path: Path) -> None:
    small = load(save(branches(2), tmp_path / "a.onnx"), {}, {})
    large = load(save(branches(3), tmp_path / "b.onnx"), {}, {})
    with pytest.raises(PlanError, match="orders 5 ops; the file has 7 nodes"):
        apply(large, model_plan(small))


def test_bodies_are_reordered_too(tmp_path: Path) -> None:
    wide = [node("Abs", ["x"], ["a"]), node("Neg", ["x"], ["b"]), node("Add", ["a", "b"], ["t"])]
    choice = node(
        "If",
        ["c"],
        ["y"],
        then_branch=graph(wide, [], ["t"]),
        else_branch=graph([node("Abs", ["x"], ["e"])], [], ["e"]),
    )
    inputs = [tensor("c", [], TensorProto.BOOL), tensor("x", [4])]
    loaded = load(save(model(graph([choice], inputs, ["y"])), tmp_path / "m.onnx"), {}, {})
    plan = model_plan(loaded)
    bodies = loaded.graph.ops[0].subgraphs
    number = next(i for i, body in enumerate(bodies) if len(body.ops) == 3)
    inner = list(plan.plans[0].bodies[0])
    inner[number] = plan_in_order(bodies[number], [1, 0, 2])
    outer = replace(plan.plans[0], bodies={0: tuple(inner)})
    new = written(loaded, replace(plan, plans=(outer,)), tmp_path / "o.onnx")
    body = next(a.g for a in new.graph.node[0].attribute if len(a.g.node) == 3)
    assert [n.op_type for n in body.node] == ["Neg", "Abs", "Add"]


def test_only_dimensions_that_were_asked_for_are_fixed(tmp_path: Path) -> None:
    nodes = [node("Abs", ["x"], ["y"])]
    proto = model(graph(nodes, [tensor("x", ["N", "L"])], ["y"]))
    loaded = load(save(proto, tmp_path / "m.onnx"), {}, {"L": 5})
    new = written(loaded, model_plan(loaded), tmp_path / "o.onnx")
    dims = new.graph.input[0].type.tensor_type.shape.dim
    assert (dims[0].dim_param, dims[1].dim_value) == ("N", 5)


def test_dimensions_of_the_user_can_be_left_free_but_not_those_that_replace_sizes(
    tmp_path: Path,
) -> None:
    nodes = [node("Abs", ["x"], ["y"])]
    proto = model(graph(nodes, [tensor("x", ["N", "L", 8])], ["y"]))
    path = save(proto, tmp_path / "m.onnx")
    loaded = with_free_dimensions(load(path, {"x": (2, 5, 4)}, {}))
    assert loaded is not None
    new = written(loaded, model_plan(loaded), tmp_path / "o.onnx")
    dims = new.graph.input[0].type.tensor_type.shape.dim
    assert [d.dim_param or d.dim_value for d in dims] == ["N", "L", 4]

    fixed = save(model(graph(nodes, [tensor("x", [8])], ["y"])), tmp_path / "f.onnx")
    assert with_free_dimensions(load(fixed, {}, {})) is None


def test_external_data_come_along_under_their_own_name(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    weights = np.arange(4, dtype=np.float32)
    (tmp_path / "deep" / "w.bin").write_bytes(weights.tobytes())
    proto = model(graph([node("Add", ["x", "w"], ["y"])], [tensor("x", [4])], ["y"]))
    weight = proto.graph.initializer.add(
        name="w", data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL, dims=[4]
    )
    weight.external_data.add(key="location", value="deep/w.bin")
    loaded = load(save(proto, tmp_path / "m.onnx"), {}, {})
    (tmp_path / "out").mkdir()
    out = tmp_path / "out" / "o.onnx"
    written(loaded, model_plan(loaded), out)
    (result,) = session(out).run(None, {"x": np.ones(4, np.float32)})
    assert np.asarray(result).tolist() == [1, 2, 3, 4]


def test_the_form_of_the_output_follows_its_name(tmp_path: Path) -> None:
    data = branches().SerializeToString()
    assert encoded(data, tmp_path / "o.onnx") == data
    path = tmp_path / "o.textproto"
    path.write_bytes(encoded(data, path))
    assert len(load(path, {}, {}).graph.ops) == 9


@pytest.mark.parametrize("suffix", [*sorted(TEXT_SUFFIXES), ".TXTPB"])
def test_a_text_file_of_any_suffix_is_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"o{suffix}"
    path.write_bytes(encoded(branches().SerializeToString(), path))
    assert len(regal.load(path).graph.ops) == 9


def test_the_default_order_is_a_search_back_from_the_outputs(tmp_path: Path) -> None:
    loaded = load(save(branches(), tmp_path / "m.onnx"), {}, {})
    assert default_order(loaded) == (3, 7, 2, 6, 1, 5, 0, 4, 8)


def test_a_shape_runs_as_soon_as_its_input_is_there(tmp_path: Path) -> None:
    nodes = [
        node("Abs", ["x"], ["a"]),
        node("Neg", ["x"], ["b"]),
        node("Shape", ["b"], ["s"]),
        node("Reshape", ["a", "s"], ["y"]),
    ]
    found = load(save(model(graph(nodes, [tensor("x", [2])], ["y"])), tmp_path / "m.onnx"), {}, {})
    assert executed_order(found.graph, [1, 0, 2, 3]) == (1, 2, 0, 3)


def test_a_cast_that_the_runtime_skips_still_runs_behind_the_cast_that_it_undoes(
    tmp_path: Path,
) -> None:
    # In ONNX Runtime "s" and "d" read "a": both run before the cast to "b".
    nodes = [
        node("Abs", ["x"], ["a"]),
        node("Cast", ["a"], ["b"], to=TensorProto.DOUBLE),
        node("Cast", ["b"], ["c"], to=TensorProto.FLOAT),
        node("Neg", ["b"], ["e"]),
        node("Cast", ["e"], ["f"], to=TensorProto.FLOAT),
        node("Shape", ["c"], ["s"]),
        node("Reshape", ["x", "s"], ["d"]),
        node("Add", ["f", "d"], ["y"]),
    ]
    loaded = load(save(model(graph(nodes, [tensor("x", [4])], ["y"])), tmp_path / "m.onnx"), {}, {})
    order = default_order_of(loaded.graph)
    assert order == (0, 1, 2, 5, 6, 3, 4, 7)
    step = {op: at for at, op in enumerate(order)}
    assert all(step[early] < step[late] for early, late in dependencies(loaded.graph))


def cast_chain() -> ModelProto:
    """Return a model with casts that ONNX Runtime removes, among nodes that it keeps."""
    nodes = [
        node("Abs", ["x"], ["a"]),
        node("Cast", ["a"], ["b"], to=TensorProto.DOUBLE),
        node("Cast", ["b"], ["c"], to=TensorProto.FLOAT),
        node("Neg", ["x"], ["d"]),
        node("Cast", ["d"], ["e"], to=TensorProto.FLOAT),
        node("Add", ["c", "e"], ["f"]),
        node("Cast", ["f"], ["g"], to=TensorProto.FLOAT16),
        node("Cast", ["g"], ["h"], to=TensorProto.FLOAT),
        node("Add", ["h", "a"], ["y"]),
    ]
    return model(graph(nodes, [tensor("x", [4])], ["y"]))


@pytest.mark.parametrize("proto", [branches(5), cast_chain()], ids=["branches", "casts"])
def test_onnx_runtime_runs_both_orders_as_computed(proto: ModelProto, tmp_path: Path) -> None:
    path = save(proto, tmp_path / "m.onnx")
    loaded = load(path, {}, {})
    shapes = source_of(loaded).shapes
    seen = trace(proto, path, shapes, seed=0, file_order=False, timeout_s=60)
    ran = [position for place, position in seen.order if not place]
    assert [op for op in default_order_of(loaded.graph) if op in set(ran)] == ran

    new = written(loaded, planned(loaded, random_order(loaded.graph, 3)), tmp_path / "o.onnx")
    seen = trace(new, tmp_path / "o.onnx", shapes, seed=0, file_order=True, timeout_s=60)
    assert (seen.reason, seen.strangers, out_of_order(seen)) == ("", 0, "")


def test_a_better_order_takes_less_heap_in_onnx_runtime(tmp_path: Path) -> None:
    path = save(branches(6, 20_000), tmp_path / "m.onnx")
    loaded = load(path, {}, {})
    heap = []
    for name, order in (
        ("deep", [0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11, 12]),
        ("broad", list(range(13))),
    ):
        plan = planned(loaded, order)
        out = tmp_path / f"{name}.onnx"
        written(loaded, plan, out)
        verdict = verify(path, out, seed=1, invocations=3, shapes={}, dims={})
        assert verdict.outputs_equal
        (check,) = verdict.checks
        heap.append(check.after["heap_peak_bytes"])
        # The caller holds the inputs; the rest is what the plan says, and some bookkeeping.
        given = sum(loaded.graph.tensors[t].bytes for t in loaded.graph.inputs)
        assert 0 <= heap[-1] + given - plan.plans[0].peak_bytes < 40_000
    assert "the heap peak rose from" in check.detail
    assert heap[0] < heap[1] / 3


def test_a_changed_weight_is_found(tmp_path: Path) -> None:
    weights = {"w": np.ones(4, np.float32)}
    proto = model(graph([node("Add", ["x", "w"], ["y"])], [tensor("x", [4])], ["y"], weights))
    path = save(proto, tmp_path / "m.onnx")
    proto.graph.initializer[0].CopyFrom(
        onnx.numpy_helper.from_array(np.array([1, 1, 1, 2], np.float32), "w")
    )
    verdict = verify(
        path, save(proto, tmp_path / "o.onnx"), seed=0, invocations=2, shapes={}, dims={}
    )
    assert not verdict.outputs_equal
    assert verdict.checks[0].detail == "output 0 of run 0 differs"


def test_random_nodes_draw_the_same_wherever_they_stand(tmp_path: Path) -> None:
    nodes = [
        node("RandomNormalLike", ["x"], ["a"]),
        node("RandomUniformLike", ["x"], ["b"]),
        node("Concat", ["a", "b"], ["y"], axis=0),
    ]
    path = save(model(graph(nodes, [tensor("x", [8])], ["y"])), tmp_path / "m.onnx")
    loaded = load(path, {}, {})
    written(loaded, planned(loaded, [1, 0, 2]), tmp_path / "o.onnx")
    verdict = verify(path, tmp_path / "o.onnx", seed=0, invocations=3, shapes={}, dims={})
    assert verdict.outputs_equal


def test_a_model_that_onnx_runtime_cannot_run_says_why(tmp_path: Path) -> None:
    nodes = [node("Mystery", ["x"], ["y"], domain="mine")]
    proto = model(graph(nodes, [tensor("x", [4])], ["y"]), 17, "mine")
    path = save(proto, tmp_path / "m.onnx")
    loaded = load(path, {}, {})
    assert any("assumed from what their nodes read" in note for note in source_of(loaded).notes)
    written(loaded, model_plan(loaded), tmp_path / "o.onnx")
    verdict = verify(path, tmp_path / "o.onnx", seed=0, shapes={}, dims={})
    assert verdict.checks == ()
    assert "mine:Mystery(-1) is not a registered function/op" in verdict.skipped


def test_a_run_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    path = save(branches(), tmp_path / "m.onnx")
    verdict = verify(path, path, seed=0, timeout_s=0.01, shapes={}, dims={})
    assert verdict.skipped == "ONNX Runtime did not finish within 0.01 s"


def test_out_of_order_names_the_first_node_that_ran_elsewhere() -> None:
    assert out_of_order(Trace(order=(((), 0), ((), 2), ((), 3)), runs={})) == ""
    message = out_of_order(Trace(order=(((), 0), ((), 3), ((), 2)), runs={}, strangers=4))
    assert message == (
        "ONNX Runtime ran node 3 as step 1, the file lists 2 (4 kernels added by ONNX Runtime)"
    )


def test_a_model_optimized_by_onnx_runtime_can_be_planned(tmp_path: Path) -> None:
    weights = {"w": np.full((4, 4), 2, np.float32), "b": np.ones(4, np.float32)}
    nodes = [
        node("Identity", ["x"], ["i"]),
        node("MatMul", ["i", "w"], ["m"]),
        node("Add", ["m", "b"], ["y"]),
    ]
    proto = model(graph(nodes, [tensor("x", ["N", 4])], ["y"], weights))
    path = save(proto, tmp_path / "m.onnx")
    better = tmp_path / "better.onnx"
    better.write_bytes(optimized_bytes(path, "basic", {}, {"N": 3}))
    loaded = load(better, {}, {})
    assert [op.kind for op in loaded.graph.ops] == ["Gemm"]
    written(loaded, model_plan(loaded), tmp_path / "o.onnx")
    verdict = verify(path, tmp_path / "o.onnx", seed=0, invocations=3, shapes={}, dims={"N": 3})
    assert verdict.outputs_equal
