"""The models in `examples/models` are what the scripts make, and real runtimes run them."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tools.models.catalog import ENTRIES, fitted_network, model_files, sample_inputs
from tools.models.fit import run
from tools.models.network import Builder, Network
from tools.models.order import as_written, converter_order
from tools.models.quantize import activation_scales
from tools.models.randwire import watts_strogatz
from tools.models.tflite_writer import (
    TfliteModel,
    TfliteOperator,
    TfliteSubgraph,
    TfliteTensor,
    write_tflite,
)

if TYPE_CHECKING:
    from tools.models.fit import FittedNetwork
    from tools.models.network import Node
    from tools.models.random_numbers import Array

FOLDER = Path(__file__).parents[1] / "examples" / "models"
CHILD = Path(__file__).parent / "tflm_child.py"
OTHER_SEED = 7  # not the one that the ranges were measured on
WITH_ONNX = [name for name, entry in ENTRIES.items() if entry.onnx]


@pytest.fixture(scope="module")
def fitted() -> dict[str, FittedNetwork]:
    return {name: fitted_network(name) for name in ENTRIES}


def test_the_scripts_write_the_committed_files_byte_for_byte() -> None:
    made = model_files()
    committed = {path.name: path.read_bytes() for path in FOLDER.iterdir()}
    del committed["README.md"]
    assert sorted(made) == sorted(committed)
    assert [name for name in made if made[name] != committed[name]] == []


def test_the_files_are_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 5_000_000


@pytest.mark.parametrize("name", ENTRIES)
def test_tflm_gives_nearly_the_float_outputs_on_inputs_never_seen(
    name: str, fitted: dict[str, FittedNetwork], tmp_path: Path
) -> None:
    pytest.importorskip("tflite_micro")
    network = fitted[name].network
    scales = activation_scales(fitted[name])
    inputs = sample_inputs(network, OTHER_SEED)[:, :6]
    want = run(fitted[name], inputs)
    scale, zero = scales[network.input].scales[0], scales[network.input].zero_points[0]
    small = np.clip(np.round(inputs / scale) + zero, -128, 127).astype(np.int8)
    np.save(tmp_path / "inputs.npy", small.swapaxes(0, 1))
    command = [sys.executable, str(CHILD), str(FOLDER / f"{name}_int8.tflite")]
    command += [str(tmp_path / "inputs.npy"), str(tmp_path / "outputs.npy")]
    subprocess.run(command, check=True, timeout=60, capture_output=True)
    steps, sequences = inputs.shape[:2]
    stored = np.load(tmp_path / "outputs.npy").reshape(sequences, steps, *want.shape[2:])
    out = scales[network.output]
    got = (stored.swapaxes(0, 1).astype(np.float64) - out.zero_points[0]) * out.scales[0]
    assert np.corrcoef(got.ravel(), want.ravel())[0, 1] > 0.95
    # Neither stuck nor saturated: results differ between inputs, and few hit the top.
    assert got.std(axis=1).mean() > 0.05
    assert np.mean(stored == 127) < 0.01


@pytest.mark.parametrize("name", WITH_ONNX)
def test_onnx_runtime_gives_the_float_outputs(name: str, fitted: dict[str, FittedNetwork]) -> None:
    pictures = sample_inputs(fitted[name].network, OTHER_SEED)[:, :3]
    want = run(fitted[name], pictures)[0]
    session = import_module("onnxruntime").InferenceSession(FOLDER / f"{name}.onnx")
    got = [
        session.run(None, {"input": picture[np.newaxis].transpose(0, 3, 1, 2)})[0][0]
        for picture in pictures[0].astype(np.float32)
    ]
    assert np.abs(np.stack(got) - want).max() < 1e-4


@pytest.mark.parametrize("name", ["nasnet_a_mobile", "randwire_ws_32_4_075"])
def test_wide_networks_leave_the_order_a_choice(name: str) -> None:
    network = ENTRIES[name].network()
    widths = ready_widths(network, as_written(network))
    assert max(widths) >= 5
    assert sum(width > 1 for width in widths) > len(widths) / 2


@pytest.mark.parametrize("name", ["nasnet_a_mobile", "randwire_ws_32_4_075", "unet"])
def test_both_orders_run_every_node_after_its_inputs(name: str) -> None:
    network = ENTRIES[name].network()
    for order in (as_written(network), converter_order(network)):
        made = {network.input}
        for node in order:
            assert set(node.inputs) <= made, node.name
            made.update(node.outputs)
        assert network.output in made


def test_the_converters_order_finishes_one_branch_before_the_next_by_name() -> None:
    builder = Builder(name="two_branches", input_shape=(4, 4, 2))
    for part in ("b", "a"):
        builder.unary("relu", part, "input")
        builder.pool("avg_pool", f"{part}_pool", part, 3)
    builder.add("sum", "b_pool", "a_pool")
    network = builder.build("sum")
    assert [node.name for node in as_written(network)] == ["b", "b_pool", "sum"]
    # "a" computes what "b" does and comes first by name, so "b" is merged into it.
    assert [node.name for node in converter_order(network)] == ["a", "a_pool", "sum"]


def test_the_converters_order_fuses_a_relu_that_alone_reads_a_convolution() -> None:
    builder = Builder(name="fusing", input_shape=(4, 4, 2))
    first = builder.conv("first", "input", 2)
    second = builder.conv("second", builder.unary("relu", "relu1", first), 2)
    kept = builder.unary("relu", "relu2", second)
    network = builder.build(builder.add("sum", second, kept))
    order = converter_order(network)
    assert [node.name for node in order] == ["first", "second", "relu2", "sum"]
    assert [node.relu for node in order] == [True, False, False, False]


def test_rewiring_keeps_the_number_of_links_and_makes_no_loops() -> None:
    edges = watts_strogatz(32, 4, 0.75, seed=3)
    assert len(set(edges)) == 32 * 4 // 2
    assert all(0 <= low < high < 32 for low, high in edges)
    ring = watts_strogatz(32, 4, 0.0, seed=3)
    assert set(Counter(node for edge in ring for node in edge).values()) == {4}


def test_average_pooling_does_not_count_the_zeros_of_its_padding() -> None:
    builder = Builder(name="pool", input_shape=(2, 2, 1))
    network = builder.build(builder.pool("avg_pool", "pool", "input", 3))
    picture = np.array([1.0, 2.0, 3.0, 6.0]).reshape(1, 1, 2, 2, 1)
    assert evaluate(network, picture).ravel().tolist() == [3.0] * 4


def test_a_written_file_is_read_back_by_the_public_schema() -> None:
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
    graph = TfliteSubgraph(
        name="main",
        tensors=(
            TfliteTensor(name="x", shape=(1, 3), dtype="float32"),
            TfliteTensor(name="y", shape=(1, 3), dtype="float32"),
        ),
        operators=(
            TfliteOperator(kind="SOFTMAX", inputs=(0,), outputs=(1,), options={"beta": 2.0}),
        ),
        inputs=(0,),
        outputs=(1,),
    )
    model = TfliteModel(subgraphs=(graph,), buffers=(b"", b"note"), metadata=(("about", 1),))
    data = write_tflite(model)
    read = schema.ModelT.InitFromPackedBuf(data, 0)
    assert data[4:8] == b"TFL3"
    assert read.subgraphs[0].operators[0].builtinOptions.beta == 2.0
    assert read.subgraphs[0].tensors[1].shape.tolist() == [1, 3]
    assert (read.metadata[0].name, read.metadata[0].buffer) == (b"about", 1)
    assert bytes(read.buffers[1].data) == b"note"


def test_an_option_that_the_operator_does_not_have_is_refused() -> None:
    operator = TfliteOperator(kind="RELU", inputs=(), outputs=(), options={"beta": 1})
    graph = TfliteSubgraph(name="main", tensors=(), operators=(operator,), inputs=(), outputs=())
    with pytest.raises(KeyError, match="beta"):
        write_tflite(TfliteModel(subgraphs=(graph,), buffers=(b"",)))


def ready_widths(network: Network, order: tuple[Node, ...]) -> list[int]:
    """Return, before each node, how many nodes could run next."""
    made = {network.input}
    left = list(order)
    widths = []
    for node in order:
        widths.append(sum(set(other.inputs) <= made for other in left))
        left.remove(node)
        made.update(node.outputs)
    return widths


def evaluate(network: Network, inputs: Array) -> Array:
    from tools.models.fit import fit

    return run(fit(network, inputs, 0), inputs)
