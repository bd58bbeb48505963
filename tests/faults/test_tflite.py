"""Shapes of graphs on which other tools failed (docs/known_faults.md), as .tflite files in TFLM."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from regal import pipeline
from regal.frontends import load
from regal.frontends.tflite.model import parse_tflite
from regal.frontends.tflite.offline import offline_offsets
from regal.options import Options
from tests.corpus import corpus_file
from tests.faults.clobber import require_no_clobber
from tests.frontends.tflite_models import add, branches, counter, mul, two_outputs
from tests.frontends.tflite_writer import (
    CONCATENATION_AXIS_1,
    RESHAPE_OPTIONS,
    G,
    M,
    O,
    T,
    write_tflite,
)

if TYPE_CHECKING:
    from pathlib import Path

    from regal.result import Result


def optimized(model: M, folder: Path) -> Result:
    """Write, optimize and verify a model; every plan is judged."""
    path, out = folder / "model.tflite", folder / "out.tflite"
    path.write_bytes(write_tflite(model))
    result = pipeline.optimize(path, out, Options(evaluations=500))
    assert result.verification is not None
    assert result.verification.outputs_equal, result.verification
    for graph, plan in zip(result.model.entries, result.plan.plans, strict=True):
        require_no_clobber(graph, plan)
    return result


def alias_with_a_late_reader() -> M:
    """RMSNorm over a reshaped value, whose source is read at the end (LiteRT #8889)."""
    shape = T(name="shape", shape=(2,), dtype="int32", data=struct.pack("<2i", 2, 2))
    back = T(name="back", shape=(2,), dtype="int32", data=struct.pack("<2i", 1, 4))
    names = ("x", "a", "r", "y")
    tensors = [T(name=name) for name in names] + [shape, back]
    tensors += [T(name=name, shape=(2, 2)) for name in ("v", "s", "t")]
    ops = [
        mul("x", "x", "a"),
        O(kind="RESHAPE", inputs=("a", "shape"), outputs=("v",), options=RESHAPE_OPTIONS),
        mul("v", "v", "s"),
        add("s", "v", "t"),
        O(kind="RESHAPE", inputs=("t", "back"), outputs=("r",), options=RESHAPE_OPTIONS),
        mul("r", "a", "y"),
    ]
    return M(subgraphs=[G(tensors=tensors, ops=ops, inputs=("x",), outputs=("y",))])


def twice_in_a_concatenation() -> M:
    """cat([a, b, a]) (executorch #16091)."""
    tensors = [T(name=name) for name in ("x", "a", "b")] + [T(name="y", shape=(1, 12))]
    cat = O(
        kind="CONCATENATION",
        inputs=("a", "b", "a"),
        outputs=("y",),
        options=CONCATENATION_AXIS_1,
    )
    ops = [mul("x", "x", "a"), add("x", "x", "b"), cat]
    return M(subgraphs=[G(tensors=tensors, ops=ops, inputs=("x",), outputs=("y",))])


MODELS = {
    "tflm-712": two_outputs,
    "tflm-3698": counter,
    "litert-8889": alias_with_a_late_reader,
    "executorch-16091": twice_in_a_concatenation,
}


@pytest.mark.parametrize("name", MODELS)
def test_the_optimized_file_gives_the_same_outputs(name: str, tmp_path: Path) -> None:
    result = optimized(MODELS[name](), tmp_path)
    verification = result.verification
    assert verification is not None
    assert any("tflite-micro" in check.runtime for check in verification.checks)


@pytest.fixture(scope="module")
def branch_offsets(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[int, ...]]:
    """Optimize and verify the IF model; return the offsets in the written file."""
    folder = tmp_path_factory.mktemp("branches")
    optimized(branches(), folder)
    offsets = offline_offsets(parse_tflite((folder / "out.tflite").read_bytes()))
    assert offsets is not None
    return offsets


def test_a_branch_lies_beside_what_is_live_around_it(
    branch_offsets: list[tuple[int, ...]],
) -> None:
    """tensorflow/tflite-micro #853: in bytes of the arena, as the file has them."""
    main, *bodies = branch_offsets
    size = 16  # of every tensor but the condition, which is tensor 0
    for body in bodies:
        assert min(body) >= 0
        for inner in body:
            for outer in main[1:4]:  # what the IF reads and writes
                assert inner + size <= outer or outer + size <= inner, (main, body)


def test_the_offsets_of_all_subgraphs_are_written_one_after_the_other(
    branch_offsets: list[tuple[int, ...]],
) -> None:
    """tensorflow/tflite-micro #1195."""
    assert [len(row) for row in branch_offsets] == [5, 4, 4]
    assert all(min(row) >= 0 for row in branch_offsets)


@pytest.mark.corpus
def test_the_tensors_of_a_call_once_body_have_memory() -> None:
    """tensorflow/tflite-micro #3698."""
    result = pipeline.optimize(corpus_file("tflite/tf_call_once_mul.tflite"))
    for graph, plan in zip(result.model.entries, result.plan.plans, strict=True):
        require_no_clobber(graph, plan)


@pytest.mark.corpus
@pytest.mark.parametrize("name", ["tf_nested_while", "tf_resource_vars"])
def test_loops_and_variables_of_the_corpus_are_planned(name: str) -> None:
    """onnx/tensorflow-onnx #1899 and tensorflow/tensorflow #30537, as .tflite files."""
    result = pipeline.optimize(corpus_file(f"tflite/{name}.tflite"))
    for graph, plan in zip(result.model.entries, result.plan.plans, strict=True):
        require_no_clobber(graph, plan)


def test_reads_and_writes_of_a_variable_keep_their_order(tmp_path: Path) -> None:
    """tensorflow/tensorflow #30537: one variable, read and written by several ops."""
    path = tmp_path / "model.tflite"
    path.write_bytes(write_tflite(counter()))
    graph = load(path).graph
    kinds = [op.kind for op in graph.ops]
    write = kinds.index("ASSIGN_VARIABLE")
    first, second = (i for i, kind in enumerate(kinds[: write + 2]) if kind == "READ_VARIABLE")
    assert first in graph.ops[write].control_inputs
    assert write in graph.ops[second].control_inputs
