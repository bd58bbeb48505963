"""Broken and hostile files: one line each, and nothing but ModelError."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from regal.errors import ModelError, RegalError
from regal.frontends.onnx import load
from regal.frontends.onnx import sizes as sizes_module
from regal.frontends.onnx.trace import Trace
from tests.onnx_models import branches, graph, model, node, save, tensor

if TYPE_CHECKING:
    from pathlib import Path

CONDITION = tensor("c", [], TensorProto.BOOL)


def read(data: bytes, folder: Path, name: str = "m.onnx") -> None:
    path = folder / name
    path.write_bytes(data)
    load(path, {}, {})


def field(number: int, data: bytes) -> bytes:
    """Return `data` as the protobuf field `number` of a message around it."""
    size, length = len(data), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not an ONNX model: it holds no graph"),
        (b"TFL3" * 9, "is not an ONNX model: its 36 bytes are no model protobuf"),
        (b"\x08\x03", "is not an ONNX model: it holds no graph"),
        (b"\x3a\x00", "is not an ONNX model: its graph is empty"),
        (b"\x3a\xff\xff\xff\xff\x0f", "bytes are no model protobuf"),
    ],
)
def test_what_is_no_model_is_said_to_be_none(data: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=message):
        read(data, tmp_path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot read .*No such file"):
        load(tmp_path / "absent.onnx", {}, {})
    with pytest.raises(ModelError, match=r"cannot read .*[Dd]irectory"):
        load(tmp_path, {}, {})


def test_text_that_is_no_model_is_refused(tmp_path: Path) -> None:
    for data in (b"graph { node { ", b"graph { nodes {} }", b"\xff\xfe", b"graph{" * 5000):
        with pytest.raises(ModelError, match="is not an ONNX model as text"):
            read(data, tmp_path, "m.textproto")


def test_versions_that_onnx_does_not_know_are_refused(tmp_path: Path) -> None:
    proto = branches()
    for change, message in (
        (lambda m: m.opset_import.pop(), "imports no operator set"),
        (lambda m: setattr(m.opset_import[0], "version", 0), "imports opset 0 of ai.onnx"),
        (lambda m: setattr(m.opset_import[0], "version", 99999), "imports opset 99999"),
        (lambda m: setattr(m, "ir_version", 12345), "has IR version 12345"),
    ):
        changed = ModelProto.FromString(proto.SerializeToString())
        change(changed)
        with pytest.raises(ModelError, match=message):
            read(changed.SerializeToString(), tmp_path)


def test_cycles_are_refused_with_a_node_of_the_cycle(tmp_path: Path) -> None:
    nodes = [node("Add", ["x", "b"], ["a"], name="one"), node("Abs", ["a"], ["b"])]
    proto = model(graph(nodes, [tensor("x", [2])], ["b"]))
    with pytest.raises(ModelError, match=r"node 'one' \(Add\) waits for its own result: a cycle"):
        read(proto.SerializeToString(), tmp_path)


def test_a_node_that_reads_itself_is_a_cycle(tmp_path: Path) -> None:
    proto = model(graph([node("Add", ["x", "a"], ["a"])], [tensor("x", [2])], ["a"]))
    with pytest.raises(ModelError, match="a cycle"):
        read(proto.SerializeToString(), tmp_path)


def test_values_defined_twice_or_never_are_refused(tmp_path: Path) -> None:
    twice = [node("Abs", ["x"], ["a"]), node("Neg", ["x"], ["a"])]
    proto = model(graph(twice, [tensor("x", [2])], ["a"]))
    with pytest.raises(ModelError, match=r"node 1 \(Neg\) defines 'a', which is defined already"):
        read(proto.SerializeToString(), tmp_path)
    proto = model(graph([node("Abs", ["ghost"], ["a"])], [tensor("x", [2])], ["a"]))
    with pytest.raises(ModelError, match=r"node 0 \(Abs\) reads 'ghost', which nothing defines"):
        read(proto.SerializeToString(), tmp_path)
    proto = model(graph([node("Abs", ["x"], ["a"])], [tensor("x", [2])], ["ghost"]))
    with pytest.raises(ModelError, match="graph output 'ghost' is defined by nothing"):
        read(proto.SerializeToString(), tmp_path)


def test_shapes_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    proto = model(
        graph(
            [node("Add", ["x", "z"], ["y"], name="n")], [tensor("x", [2]), tensor("z", [3])], ["y"]
        )
    )
    with pytest.raises(ModelError, match=r"the model is broken: node 'n' \(Add\): Incompatible"):
        read(proto.SerializeToString(), tmp_path)


def test_weights_with_impossible_sizes_are_refused(tmp_path: Path) -> None:
    for dims in ([1 << 62, 1 << 62], [-3], [1] * 1000):
        proto = model(graph([node("Abs", ["w"], ["y"])], [], ["y"]))
        proto.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=dims)
        with pytest.raises(ModelError, match="initializer 'w' has the impossible shape"):
            read(proto.SerializeToString(), tmp_path)
    proto.graph.initializer[0].dims[:] = [2]
    proto.graph.initializer[0].data_type = 77
    with pytest.raises(ModelError, match="initializer 'w' has the unknown element type 77"):
        read(proto.SerializeToString(), tmp_path)


@pytest.mark.parametrize("location", ["../up.bin", "/etc/passwd", "", "a/../../b", "absent.bin"])
def test_weights_must_lie_beside_the_model(location: str, tmp_path: Path) -> None:
    proto = model(graph([node("Abs", ["w"], ["y"])], [], ["y"]))
    weight = proto.graph.initializer.add(
        name="w", data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL, dims=[2]
    )
    weight.external_data.add(key="location", value=location)
    with pytest.raises(ModelError, match="tensor 'w' lies in"):
        read(proto.SerializeToString(), tmp_path)


def test_bodies_nested_a_thousand_deep_are_refused(tmp_path: Path) -> None:
    body = b""
    for _ in range(1000):
        attribute = field(1, b"b") + field(6, body) + b"\xa0\x01\x05"
        body = field(1, field(4, b"If") + field(5, attribute))
    with pytest.raises(ModelError):
        read(field(7, body), tmp_path)


def test_functions_that_call_themselves_or_explode_are_refused(tmp_path: Path) -> None:
    proto = model(graph([node("F0", ["x"], ["y"], domain="m")], [tensor("x", [2])], ["y"]), 17, "m")
    for level in range(40):
        function = proto.functions.add(name=f"F{level}", domain="m")
        function.input.append("a")
        function.output.append("c")
        function.opset_import.add(domain="m", version=1)
        callee = f"F{level + 1}"
        function.node.append(node(callee, ["a"], ["b"], domain="m"))
        function.node.append(node(callee, ["b"], ["c"], domain="m"))
    with pytest.raises(ModelError, match="expands to more than 1000000 nodes"):
        read(proto.SerializeToString(), tmp_path)
    del proto.functions[5:]
    proto.functions[3].node[0].op_type = "F1"
    with pytest.raises(ModelError, match="calls itself"):
        read(proto.SerializeToString(), tmp_path)


def test_an_input_that_is_listed_twice_is_refused(tmp_path: Path) -> None:
    inputs = [tensor("x", [2]), tensor("x", [2, 3])]
    proto = model(graph([node("Abs", ["x"], ["y"])], inputs, ["y"]), 17)
    with pytest.raises(ModelError, match="input 'x' is listed more than once"):
        read(proto.SerializeToString(), tmp_path)


def test_a_function_that_is_defined_twice_is_refused(tmp_path: Path) -> None:
    proto = model(graph([node("F", ["x"], ["y"], domain="m")], [tensor("x", [2])], ["y"]), 17, "m")
    for _ in range(2):
        function = proto.functions.add(name="F", domain="m", input=["a"], output=["b"])
        function.opset_import.add(domain="", version=17)
        function.node.append(node("Abs", ["a"], ["b"]))
    with pytest.raises(ModelError, match="same implementation id"):
        read(proto.SerializeToString(), tmp_path)


def test_values_that_double_at_every_node_do_not_exhaust_inference(tmp_path: Path) -> None:
    nodes = [node("Shape", ["x"], ["s0"])]
    nodes += [node("Concat", [f"s{i}"] * 2, [f"s{i + 1}"], axis=0) for i in range(20)]
    nodes.append(node("ReduceMax", ["s20"], ["y"]))
    proto = model(graph(nodes, [tensor("x", [2, 3])], ["y"], kind=TensorProto.INT64))
    loaded = load(save(proto, tmp_path / "m.onnx"), {}, {})
    assert loaded.graph.ops[-2].kind == "Concat"
    assert loaded.graph.tensors[loaded.graph.ops[-2].outputs[0]].shape == (2 << 20,)


def no_run(*arguments: object, **options: object) -> Trace:
    return Trace(reason="not run in this test", runs={})


def test_only_regal_errors_leave_a_corrupt_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The run that measures shapes has its own process; here only reading is tried.
    monkeypatch.setattr(sizes_module, "trace", no_run)
    inner = graph(
        [node("Concat", ["s", "x"], ["z"], axis=0)],
        [tensor("i", [], TensorProto.INT64), CONDITION, tensor("s", [None])],
        ["c", "z"],
    )
    nodes = [
        node("Loop", ["n", "t", "x"], ["l"], body=inner),
        node("Reshape", ["l", "shape"], ["r"]),
        node("Relu", ["r"], ["y"]),
    ]
    weights = {"n": np.array(3), "t": np.array(True), "shape": np.array([5, -1])}
    proto = model(graph(nodes, [tensor("x", ["N"])], ["y"], weights))
    data = proto.SerializeToString()
    chance = random.Random(0)
    messages = []
    for attempt in range(500):
        broken = bytearray(data)
        if attempt % 5 == 0:
            del broken[chance.randrange(len(broken)) :]
        for _ in range(chance.randrange(4)):
            if broken:
                broken[chance.randrange(len(broken))] = chance.randrange(256)
        try:
            read(bytes(broken), tmp_path)
        except RegalError as error:
            messages.append(str(error))
    assert len(messages) > 150
    assert all(message and "\n" not in message for message in messages)
