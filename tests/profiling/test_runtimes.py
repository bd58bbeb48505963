"""Op times from the runtimes' own profilers."""

from pathlib import Path

import numpy as np
import pytest

from regal.cost.roofline import graph_cost
from regal.devices.presets import system_named
from regal.errors import BackendError, UsageError
from regal.frontends import load
from regal.graph.file import model_to_json
from regal.profiling.profile import profile_model
from regal.profiling.types import ProfileOptions
from tests.frontends.tflite_models import chain, diamond
from tests.frontends.tflite_writer import write_tflite
from tests.onnx_models import FLOAT, branches, graph, model, node, save, tensor

QUICK = ProfileOptions(runs=3, warmup=1)


def test_onnx_runtime_measures_every_node_and_covers_equal_ones_of_other_models(
    tmp_path: Path,
) -> None:
    path = save(branches(), tmp_path / "m.onnx")
    found = profile_model(path, QUICK)
    loaded = load(path)
    cost = graph_cost(loaded.graph, system_named("1"), found)
    assert cost.coverage == {"profile": len(loaded.graph.ops)}
    assert found.runtime.startswith("onnxruntime ")
    assert (found.runs, found.warmup, found.threads) == (3, 1, 1)
    assert found.total_ns > 0
    assert graph_cost(loaded.graph, system_named("2"), found).coverage == {
        "roofline": len(loaded.graph.ops)
    }  # measured on a CPU, these are GPUs


def test_bodies_are_measured_apart_and_inside_their_op(tmp_path: Path) -> None:
    weights = {"w": np.ones((2, 4), np.float32)}
    then = graph([node("Relu", ["x"], ["a"])], [], ["a"])
    other = graph([node("Neg", ["x"], ["b"])], [], ["b"])
    main = graph(
        [
            node("Add", ["x", "w"], ["y"]),
            node("If", ["c"], ["z"], then_branch=then, else_branch=other),
        ],
        [tensor("x", (2, 4)), tensor("c", (), 9)],
        ["y", "z"],
        weights,
        FLOAT,
    )
    path = save(model(main), tmp_path / "m.onnx")
    found = profile_model(path, ProfileOptions(runs=8, warmup=1))
    kinds = {key.split(":")[1].split("(")[0] for key in found.times}
    assert {"Add", "If"} <= kinds
    assert kinds & {"Relu", "Neg"}
    assert "Add" not in found.not_measured


def test_a_model_that_the_runtime_refuses_says_why(tmp_path: Path) -> None:
    main = graph([node("Nope", ["x"], ["y"], domain="no.such")], [tensor("x", (2, 4))], ["y"])
    for value in main.output:
        value.CopyFrom(tensor("y", (2, 4)))
    path = save(model(main, 17, "no.such"), tmp_path / "m.onnx")
    with pytest.raises(BackendError, match=r"^ONNX Runtime cannot run 'm.onnx': .*Nope"):
        profile_model(path, QUICK)


@pytest.mark.parametrize("build", [chain, diamond])
def test_litert_measures_every_op_of_the_main_graph(build: object, tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    path = tmp_path / "m.tflite"
    path.write_bytes(write_tflite(build()))  # type: ignore[operator]
    found = profile_model(path, QUICK)
    loaded = load(path)
    cost = graph_cost(loaded.graph, system_named("1"), found)
    assert cost.coverage == {"profile": len(loaded.graph.ops)}
    assert found.runtime.startswith("ai-edge-litert ")
    assert not found.not_measured


def test_litert_says_why_it_refuses_a_model(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    from tests.frontends.tflite_writer import G, M, O, T

    custom = O(kind="CUSTOM", custom="NoSuchOp", inputs=("x",), outputs=("y",))
    tensors = [T(name="x"), T(name="y")]
    path = tmp_path / "m.tflite"
    path.write_bytes(
        write_tflite(M(subgraphs=[G(tensors=tensors, ops=[custom], inputs=("x",), outputs=("y",))]))
    )
    with pytest.raises(BackendError, match=r"^LiteRT cannot profile 'm.tflite': .*NoSuchOp"):
        profile_model(path, QUICK)


def test_open_sizes_are_closed_in_the_copy_that_runs(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    from tests.frontends.tflite_models import add
    from tests.frontends.tflite_writer import G, M, T

    tensors = [T(name=name, shape=(1, 4), signature=(-1, 4)) for name in ("x", "y")]
    path = tmp_path / "m.tflite"
    path.write_bytes(
        write_tflite(
            M(
                subgraphs=[
                    G(tensors=tensors, ops=[add("x", "x", "y")], inputs=("x",), outputs=("y",))
                ]
            )
        )
    )
    assert not profile_model(path, QUICK).not_measured


def test_a_graph_file_has_no_runtime(tmp_path: Path) -> None:
    path = save(branches(), tmp_path / "m.onnx")
    plain = tmp_path / "m.json"
    plain.write_text(model_to_json(load(path)))
    with pytest.raises(UsageError, match=r"^'m.json': no runtime measures a model of kind 'graph'"):
        profile_model(plain, QUICK)


def test_a_model_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    path = save(branches(), tmp_path / "m.onnx")
    with pytest.raises(BackendError, match=r"did not finish within 0.01 s"):
        profile_model(path, ProfileOptions(timeout_s=0.01))


@pytest.mark.parametrize(("runs", "warmup"), [(0, 1), (10_001, 0), (1, -1)])
def test_senseless_numbers_of_runs_are_refused(runs: int, warmup: int) -> None:
    with pytest.raises(UsageError, match="give 1 to 10000 runs"):
        ProfileOptions(runs=runs, warmup=warmup)
