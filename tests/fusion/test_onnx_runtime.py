"""What docs/decisions/0024 says of ONNX Runtime's fusions, tried."""

import platform
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
helper, FLOAT = onnx.helper, onnx.TensorProto.FLOAT

SHAPE = [1, 16, 16, 16]
MICROSOFT = "com.microsoft"


def weights(name: str, *shape: int) -> Any:
    values = np.random.default_rng(len(name)).standard_normal(shape).astype(np.float32)
    return onnx.numpy_helper.from_array(values, name)


def model_of(nodes: list[Any]) -> Any:
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", FLOAT, SHAPE)],
        [weights("w1", 16, 16, 3, 3), weights("w2", 16, 16, 3, 3), weights("bias", 16)],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def run(
    model: Any, level: Any, saved: Path, *disabled: str
) -> tuple[NDArray[np.float32], list[str]]:
    """Return the output, and the nodes that ran."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.optimized_model_filepath = str(saved)
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(
        model.SerializeToString(), options, ["CPUExecutionProvider"], disabled_optimizers=disabled
    )
    feed = np.random.default_rng(1).standard_normal(SHAPE).astype(np.float32)
    (output,) = session.run(None, {"x": feed})
    return output, [f"{node.domain}:{node.op_type}" for node in onnx.load(saved).graph.node]


def residual() -> Any:
    return model_of(
        [
            helper.make_node("Conv", ["x", "w1", "bias"], ["a"], pads=[1] * 4),
            helper.make_node("Relu", ["a"], ["r"]),
            helper.make_node("Conv", ["r", "w2", "bias"], ["c"], pads=[1] * 4),
            helper.make_node("Add", ["c", "r"], ["s"]),
            helper.make_node("Relu", ["s"], ["y"]),
        ]
    )


NONE = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
ALL = ort.GraphOptimizationLevel.ORT_ENABLE_ALL


def test_fused_nodes_that_a_file_names_run_without_optimizations(tmp_path: Path) -> None:
    def fused(inputs: list[str], output: str) -> Any:
        return helper.make_node(
            "FusedConv", inputs, [output], domain=MICROSOFT, pads=[1] * 4, activation="Relu"
        )

    written = model_of(
        [
            fused(["x", "w1", "bias"], "r"),
            fused(["r", "w2", "bias", "r"], "y"),
        ]
    )
    expected, _ = run(residual(), NONE, tmp_path / "a.onnx")
    output, nodes = run(written, NONE, tmp_path / "b.onnx")
    assert nodes == ["com.microsoft:FusedConv"] * 2
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-4)


def test_the_runtime_takes_every_match_and_one_switch_decides_all_layouts(tmp_path: Path) -> None:
    _, blocked = run(residual(), ALL, tmp_path / "a.onnx")
    _, contiguous = run(residual(), ALL, tmp_path / "b.onnx", "NchwcTransformer")
    assert contiguous == ["com.microsoft:FusedConv"] * 2
    inside = [node for node in blocked if "Reorder" not in node]
    # Machines without blocked kernels keep the contiguous ones.
    assert inside in (["com.microsoft.nchwc:Conv"] * 2, ["com.microsoft:FusedConv"] * 2)


def test_a_chain_of_pointwise_ops_stays_apart_at_every_level(tmp_path: Path) -> None:
    chain = model_of(
        [
            helper.make_node("Exp", ["x"], ["a"]),
            helper.make_node("Add", ["a", "x"], ["b"]),
            helper.make_node("Tanh", ["b"], ["c"]),
            helper.make_node("Mul", ["c", "x"], ["y"]),
        ]
    )
    for level in (NONE, ALL):
        _, nodes = run(chain, level, tmp_path / "a.onnx")
        assert nodes == [":Exp", ":Add", ":Tanh", ":Mul"]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="ARM builds may have these kernels")
def test_there_is_no_convolution_of_float32_with_its_channels_last(tmp_path: Path) -> None:
    node = helper.make_node("NhwcFusedConv", ["x", "w1"], ["y"], domain=MICROSOFT, pads=[1] * 4)
    refused = ort.capi.onnxruntime_pybind11_state.NotImplemented
    with pytest.raises(refused, match="NhwcFusedConv"):
        run(model_of([node]), NONE, tmp_path / "a.onnx")
