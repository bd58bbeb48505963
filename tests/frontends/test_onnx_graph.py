"""What an ONNX model means as a graph: roles, storages, in-place choices, sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from regal.errors import ModelError
from regal.frontends.onnx import load
from regal.graph.memory import counted_storages, parameter_bytes
from regal.graph.types import ABSENT, Role
from tests.onnx_models import graph, model, node, save, source_of, tensor

if TYPE_CHECKING:
    from pathlib import Path

    from onnx import ModelProto

    from regal.graph.types import Graph, Op, Tensor


def read(proto: ModelProto, folder: Path) -> Graph:
    return load(save(proto, folder / "model.onnx"), {}, {}).graph


def named(found: Graph, name: str) -> Tensor:
    return next(t for t in found.tensors if t.name == name)


def op_of(found: Graph, kind: str) -> Op:
    return next(op for op in found.ops if op.kind == kind)


def test_a_chain_has_one_op_per_node_and_sizes_in_bytes(tmp_path: Path) -> None:
    nodes = [node("Relu", ["x"], ["a"]), node("MatMul", ["a", "w"], ["y"])]
    weights = {"w": np.zeros((3, 5), np.float32)}
    found = read(model(graph(nodes, [tensor("x", [2, 3])], ["y"], weights)), tmp_path)
    assert [op.kind for op in found.ops] == ["Relu", "MatMul"]
    assert [(t.name, t.bytes, t.role) for t in found.tensors] == [
        ("x", 24, Role.INPUT),
        ("w", 60, Role.PARAMETER),
        ("a", 24, Role.ACTIVATION),
        ("y", 40, Role.OUTPUT),
    ]
    assert found.ops[1].flops == 2 * 2 * 3 * 5


def test_views_share_the_bytes_of_what_they_show(tmp_path: Path) -> None:
    nodes = [
        node("Abs", ["x"], ["a"]),
        node("Flatten", ["a"], ["b"]),
        node("Identity", ["b"], ["c"]),
        node("Abs", ["c"], ["y"]),
    ]
    found = read(model(graph(nodes, [tensor("x", [2, 3])], ["y"])), tmp_path)
    assert named(found, "c").storage == named(found, "a").storage
    assert len(counted_storages(found)) == 3


def test_a_view_that_is_returned_is_a_copy(tmp_path: Path) -> None:
    nodes = [node("Abs", ["x"], ["a"]), node("Flatten", ["a"], ["y"])]
    found = read(model(graph(nodes, [tensor("x", [2, 3])], ["y"])), tmp_path)
    assert named(found, "y").storage != named(found, "a").storage


def test_a_view_of_a_weight_does_not_count(tmp_path: Path) -> None:
    nodes = [node("Flatten", ["w"], ["a"]), node("Add", ["x", "a"], ["y"])]
    weights = {"w": np.zeros((2, 3), np.float32)}
    found = read(model(graph(nodes, [tensor("x", [2, 3])], ["y"], weights)), tmp_path)
    assert named(found, "a").storage not in counted_storages(found)


def test_relu_may_overwrite_an_activation_that_it_reads_once(tmp_path: Path) -> None:
    nodes = [
        node("Abs", ["x"], ["a"]),
        node("Relu", ["a"], ["b"]),
        node("Abs", ["b"], ["y"]),
    ]
    found = read(model(graph(nodes, [tensor("x", [2, 3])], ["y"])), tmp_path)
    assert op_of(found, "Relu").in_place == ((0, 0),)


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        ([node("Relu", ["x"], ["b"]), node("Abs", ["b"], ["y"])], "the caller's input"),
        ([node("Relu", ["w"], ["b"]), node("Add", ["x", "b"], ["y"])], "a weight"),
        ([node("Abs", ["x"], ["a"]), node("Relu", ["a"], ["y"])], "a result for the caller"),
        (
            [
                node("Flatten", ["x"], ["a"]),
                node("Relu", ["a"], ["b"]),
                node("Abs", ["b"], ["y"]),
            ],
            "a view of the caller's input",
        ),
        (
            [
                node("Abs", ["x"], ["a"]),
                node("Cast", ["a"], ["b"], to=TensorProto.DOUBLE),
                node("Cast", ["b"], ["y"], to=TensorProto.FLOAT),
            ],
            "larger elements",
        ),
    ],
)
def test_nothing_overwrites(nodes: list[onnx.NodeProto], why: str, tmp_path: Path) -> None:
    weights = {"w": np.zeros((2, 3), np.float32)}
    found = read(model(graph(nodes, [tensor("x", [2, 3])], ["y"], weights)), tmp_path)
    assert all(not op.in_place for op in found.ops), why


def test_add_never_overwrites_since_onnx_runtime_allocates(tmp_path: Path) -> None:
    nodes = [
        node("Abs", ["x"], ["a"]),
        node("Add", ["a", "x"], ["b"]),
        node("Abs", ["b"], ["y"]),
    ]
    found = read(model(graph(nodes, [tensor("x", [2, 3])], ["y"])), tmp_path)
    assert op_of(found, "Add").in_place == ()


def test_constants_and_shapes_are_not_counted(tmp_path: Path) -> None:
    value = onnx.numpy_helper.from_array(np.ones((2, 3), np.float32))
    nodes = [
        node("Constant", [], ["k"], value=value),
        node("Shape", ["x"], ["s"]),
        node("Add", ["x", "k"], ["a"]),
        node("Reshape", ["a", "s"], ["y"]),
    ]
    found = read(model(graph(nodes, [tensor("x", [2, 3])], ["y"])), tmp_path)
    assert named(found, "k").role is Role.CONSTANT
    assert named(found, "s").role is Role.CONSTANT
    assert named(found, "s").shape == (2,)


def test_absent_inputs_and_outputs_are_absent(tmp_path: Path) -> None:
    nodes = [
        node("Clip", ["x", "", "top"], ["a"]),
        node("Dropout", ["a"], ["y", ""]),
    ]
    weights = {"top": np.array(6, np.float32)}
    found = read(model(graph(nodes, [tensor("x", [2])], ["y"], weights)), tmp_path)
    assert found.ops[0].inputs[1] == ABSENT
    assert found.ops[1].outputs[1] == ABSENT


def test_initializers_among_the_inputs_are_weights(tmp_path: Path) -> None:
    nodes = [node("Add", ["x", "w"], ["y"])]
    inputs = [tensor("x", [2]), tensor("w", [2])]
    weights = {"w": np.zeros(2, np.float32)}
    found = read(model(graph(nodes, inputs, ["y"], weights)), tmp_path)
    assert [found.tensors[t].name for t in found.inputs] == ["x"]
    assert parameter_bytes(found) == 8


@pytest.mark.parametrize(
    ("kind", "bytes_of_seven", "name"),
    [
        (TensorProto.INT4, 4, "int4"),
        (TensorProto.UINT2, 2, "uint2"),
        (TensorProto.FLOAT8E4M3FN, 7, "float8e4m3fn"),
        (TensorProto.BFLOAT16, 14, "bfloat16"),
        (TensorProto.BOOL, 7, "bool"),
        (TensorProto.DOUBLE, 56, "float64"),
    ],
)
def test_every_element_type_has_its_size(
    kind: int, bytes_of_seven: int, name: str, tmp_path: Path
) -> None:
    nodes = [node("Identity", ["x"], ["y"])]
    proto = model(graph(nodes, [tensor("x", [7], kind)], ["y"], kind=kind), 25)
    found = read(proto, tmp_path)
    assert (named(found, "x").bytes, named(found, "x").dtype) == (bytes_of_seven, name)


def test_a_sparse_weight_has_the_size_that_it_takes_when_unpacked(tmp_path: Path) -> None:
    values = onnx.numpy_helper.from_array(np.ones(2, np.float32), "w")
    places = onnx.numpy_helper.from_array(np.array([0, 5], np.int64))
    proto = model(graph([node("Add", ["x", "w"], ["y"])], [tensor("x", [8])], ["y"]))
    proto.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(values, places, [8]))
    assert parameter_bytes(read(proto, tmp_path)) == 32


def test_names_identify_ops_even_where_the_file_repeats_them(tmp_path: Path) -> None:
    nodes = [node("Abs", ["x"], ["a"], name="n"), node("Abs", ["a"], ["y"], name="n")]
    found = read(model(graph(nodes, [tensor("x", [2])], ["y"])), tmp_path)
    assert [op.name for op in found.ops] == ["n", "n#1"]


def test_nodes_out_of_order_are_sorted(tmp_path: Path) -> None:
    nodes = [node("Abs", ["a"], ["y"]), node("Relu", ["x"], ["a"])]
    path = save(model(graph(nodes, [tensor("x", [2])], ["y"])), tmp_path / "m.onnx")
    loaded = load(path, {}, {})
    assert [op.kind for op in loaded.graph.ops] == ["Relu", "Abs"]
    assert "moved 2 nodes behind the nodes that they read from" in source_of(loaded).notes


def test_local_functions_are_seen_through(tmp_path: Path) -> None:
    twice = onnx.helper.make_function(
        "mine",
        "Twice",
        ["a"],
        ["c"],
        [node("Abs", ["a"], ["b"]), node("Neg", ["b"], ["c"])],
        [onnx.helper.make_opsetid("", 17)],
    )
    proto = model(
        graph([node("Twice", ["x"], ["y"], domain="mine")], [tensor("x", [2])], ["y"]),
        17,
        "mine",
    )
    proto.functions.append(twice)
    assert [op.kind for op in read(proto, tmp_path).ops] == ["Abs", "Neg"]


def test_operators_without_a_kernel_are_expanded_as_onnx_runtime_does(
    tmp_path: Path,
) -> None:
    proto = model(graph([node("HardSwish", ["x"], ["y"])], [tensor("x", [2])], ["y"]))
    kinds = [op.kind for op in read(proto, tmp_path).ops]
    assert "HardSwish" not in kinds
    assert "HardSigmoid" in kinds


def test_weights_beside_the_model_are_sized_without_reading_them(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(bytes(40))
    proto = model(graph([node("Add", ["x", "w"], ["y"])], [tensor("x", [8])], ["y"]))
    weight = proto.graph.initializer.add(
        name="w", data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL, dims=[8]
    )
    for key, value in (("location", "weights.bin"), ("offset", "8"), ("length", "32")):
        weight.external_data.add(key=key, value=value)
    assert parameter_bytes(read(proto, tmp_path)) == 32
    weight.external_data[1].value = "16"
    message = r"tensor 'w' needs bytes \[16, 48\) of 'weights.bin', which has 40"
    with pytest.raises(ModelError, match=message):
        read(proto, tmp_path)
