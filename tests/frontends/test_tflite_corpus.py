"""All .tflite files of the corpus: they load, take any plan, and run; or one correct line."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest

from regal.backends.tflite import apply, verify
from regal.backends.tflite.measure import TFLM, run_model
from regal.backends.tflite.offsets import arena_offsets, operator_orders, placed_subgraphs
from regal.backends.tflite.tflm_planner import head_bytes
from regal.errors import ModelError
from regal.frontends.tflite import load, source_of
from regal.frontends.tflite.model import parse_tflite
from tests.backends.simple_plans import model_plan
from tests.corpus import CORPUS, corpus_file

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.corpus

REFUSED = {
    "tf_broken_model": r"not a TFLite model: the identifier at bytes 4-7 is '\x00\x00\x0e\x00',"
    " not 'TFL3'",
    "tf_segment_sum_invalid": "tensor 'pyx/y' of 'subgraph 0' is read, but no op writes it and"
    " it holds no data",
    # LiteRT: "Tensor 1 is both input 0 and output 0".
    "tf_add_shared_tensors": "tensor 'add' of 'subgraph 0' is read, but no op writes it and it"
    " holds no data",
}
NAMES = sorted(path.stem for path in (CORPUS / "tflite").glob("*.tflite"))
# Small enough to run 20 times in two runtimes; each holds something special.
RUN = [
    "mww_okay_nabu_v2",  # resource variables, CALL_ONCE, sub-buffers
    "tf_resource_vars",
    "tf_nested_while",
    "mp_two_signatures",  # unused tensors in TFLM, two entries in LiteRT
    "tflm_keyword_scrambled_8bit",  # SVDF: variable tensors, scratch
    "mlon_lstm2",
]


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_broken_files_are_refused_with_one_line(name: str) -> None:
    with pytest.raises(ModelError) as caught:
        load(corpus_file(f"tflite/{name}.tflite"), {}, {})
    assert str(caught.value) == REFUSED[name]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in REFUSED])
def test_every_other_file_takes_a_random_plan(name: str) -> None:
    model = load(corpus_file(f"tflite/{name}.tflite"), {}, {})
    plan = model_plan(model, seed=1)
    after = parse_tflite(apply(model, plan).files[""])
    before = source_of(model).file
    for old, new in zip(before.subgraphs, after.subgraphs, strict=True):
        assert new.tensors == old.tensors
        assert sorted(op.outputs for op in new.operators) == sorted(
            op.outputs for op in old.operators
        )


def test_the_number_of_ops_is_that_of_the_manifest() -> None:
    with corpus_file("manifest.csv").open() as stream:
        rows = {row["file"]: row for row in csv.DictReader(stream)}
    for name in NAMES:
        if name not in REFUSED:
            model = load(corpus_file(f"tflite/{name}.tflite"), {}, {})
            total = sum(len(s.operators) for s in source_of(model).file.subgraphs)
            row = rows[f"tflite/{name}.tflite"]
            assert (len(model.graph.ops), total) == (int(row["n_ops"]), int(row["n_ops_total"]))


@pytest.mark.parametrize("name", RUN)
def test_files_with_special_parts_run_the_same_under_a_random_plan(
    tmp_path: Path, name: str
) -> None:
    pytest.importorskip("tflite_micro")
    pytest.importorskip("ai_edge_litert")
    path = corpus_file(f"tflite/{name}.tflite")
    model = load(path, {}, {})
    out = tmp_path / "out.tflite"
    out.write_bytes(apply(model, model_plan(model, seed=2)).files[""])
    verdict = verify(path, out, seed=0)
    # LiteRT 2.3.0 writes past its heap in the int8 SVDF kernel and may crash: TFLM judges then.
    if name != "tflm_keyword_scrambled_8bit":
        assert len(verdict.checks) == 2
    assert "tflite-micro" in verdict.checks[0].runtime
    assert verdict.outputs_equal, [check.detail for check in verdict.checks]


@pytest.mark.parametrize(
    "name", ["mww_hey_mycroft_v2", "tflm_dtln", "mlct_resnet8_int8", "mlon_rnnoise_int8"]
)
def test_the_replica_of_the_planner_predicts_heads_before_and_after(name: str) -> None:
    pytest.importorskip("tflite_micro")
    model = load(corpus_file(f"tflite/{name}.tflite"), {}, {})
    source = source_of(model)
    plan = model_plan(model, seed=4)
    placed = placed_subgraphs(model, plan)
    offsets, orders = arena_offsets(source, placed), operator_orders(placed)
    planned = apply(model, plan).files[""]
    heads = [
        run_model(source, data, TFLM, seed=0, invocations=0, timeout_s=60).numbers["head_bytes"]
        for data in (source.file.data, planned)
    ]
    assert heads == [head_bytes(source, {}, None), head_bytes(source, orders, offsets)]
