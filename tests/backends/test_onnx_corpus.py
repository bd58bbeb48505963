"""Every ONNX file of the corpus: imported, reordered, written back and judged, or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from regal.backends.onnx import apply, default_order, verify
from regal.errors import ModelError
from regal.frontends.onnx import load
from regal.plan.problem import order_problem
from tests.backends.simple_plans import model_plan
from tests.corpus import corpus_file

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.corpus

# Name -> dimensions that the file leaves free.
DIMS: dict[str, dict[str, int]] = {
    "ort_bert_toy_optimized.onnx": {"max_seq_len_in_batch": 8},
    "ort_gpt2_past.onnx": {"seq_len": 4},
    "ort_gpt2_past_mask_layer.onnx": {"seq_len": 3, "past_seq_len": 4},
    "ort_tiny_gpt2_beam_2dec.onnx": {"sequence_length": 4},
    "tract_bidi_lstm.onnx": {"length": 12},
}
SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "ort_fns_candy_freedim.onnx": {"inputImage": (1, 3, 720, 720)},
    "ort_fp16model_loop.onnx": {"data": (2, 3)},
    "ort_gh_issue_11717.onnx": {"y": (3, 4)},
}
OPS = {
    "irpy_torchscript_model.textproto": 1017,
    "irpy_mobilenetv2_100_dynamo.textproto": 3647,
    "light_densenet121.onnx": 1746,
    "light_inception_v1.onnx": 237,
    "light_inception_v2.onnx": 916,
    "light_resnet50.onnx": 415,
    "mlon_kws_qdq.onnx": 60,
    "mlon_kws_qoperator.onnx": 20,
    "ort_bart_self_att_megatron.onnx": 31,
    "ort_bert_toy_optimized.onnx": 384,
    "ort_ep_partitioning_1.onnx": 6,
    "ort_ext_initializers.onnx": 1,
    "ort_fns_candy_freedim.onnx": 59,
    "ort_fp16model_loop.onnx": 10,
    "ort_function_body_op.onnx": 19,
    "ort_gh_issue_10305.onnx": 4,
    "ort_gh_issue_11717.onnx": 9,
    "ort_gh_issue_4031.onnx": 1,
    "ort_gh_issue_4829.onnx": 16,
    "ort_gpt2_past.onnx": 3021,  # 48 constants less, that later ones redefine
    "ort_gpt2_past_mask_layer.onnx": 120,
    "ort_layout_reshape_qdq.onnx": 55,
    "ort_ml_201_imputers.onnx": 249,
    "ort_optional_sequence.onnx": 1,
    "ort_qdq_multi_consumer.onnx": 39,
    "ort_scan_cntk.onnx": 4,
    "ort_sequence_insert.onnx": 1,
    "ort_subgraph_implicit_init.onnx": 1,
    "ort_subgraph_shadow.onnx": 1,
    "ort_tiny_gpt2_beam_2dec.onnx": 1,
    "ort_unused_initializer.onnx": 0,
    "qonnx_espcn_quant.onnx": 22,
    "qonnx_floatquant.onnx": 3,
    "silero_vad_openvino.onnx": 167,
    "tract_bidi_lstm.onnx": 27,
    "tract_lgbm_classifier.onnx": 110,
    "ulf_rfb320.onnx": 242,
}
REFUSED = {
    "ort_no_opset.onnx": "imports no operator set",
    "ort_opset_314159.onnx": "imports opset 314159 of ai.onnx; onnx .* knows 1 to",
    "ort_starry_night_fp16.onnx": r"node '' \(Add\): Incompatible dimensions",
}
# What no ONNX Runtime on a CPU executes, and a word of its reason.
NOT_RUN = {
    "ort_tiny_gpt2_beam_2dec.onnx": "does not support float16 model on CPU",
    "qonnx_espcn_quant.onnx": "is not a registered function",
    "qonnx_floatquant.onnx": "is not a registered function",
}
# One of each kind is run in the tests; all of them in the table of docs/results.md.
RUN = (
    "light_inception_v1.onnx",
    "ort_ext_initializers.onnx",
    "ort_gh_issue_10305.onnx",
    "ort_gh_issue_11717.onnx",
    "ort_optional_sequence.onnx",
    "ort_qdq_multi_consumer.onnx",
    "ort_scan_cntk.onnx",
    "irpy_torchscript_model.textproto",
    *NOT_RUN,
)


@pytest.mark.parametrize("name", OPS)
def test_a_file_becomes_a_graph_that_can_be_planned_and_written(name: str) -> None:
    path = corpus_file(f"onnx/{name}")
    loaded = load(path, SHAPES.get(name, {}), DIMS.get(name, {}))
    assert len(loaded.graph.ops) == OPS[name]
    assert sorted(default_order(loaded) or ()) == list(range(OPS[name]))
    order_problem(loaded.graph)
    if OPS[name] < 1000:
        assert apply(loaded, model_plan(loaded, 1)).files[""]


@pytest.mark.parametrize("name", REFUSED)
def test_a_broken_file_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(ModelError, match=REFUSED[name]):
        load(corpus_file(f"onnx/{name}"), {}, {})


@pytest.mark.parametrize("name", RUN)
def test_a_random_order_gives_the_same_outputs_in_that_order(name: str, tmp_path: Path) -> None:
    path = corpus_file(f"onnx/{name}")
    shapes, dims = SHAPES.get(name, {}), DIMS.get(name, {})
    loaded = load(path, shapes, dims)
    applied = apply(loaded, model_plan(loaded, 1))
    out = tmp_path / "out.onnx"
    for file, data in applied.files.items():
        (tmp_path / file if file else out).write_bytes(data)
    verdict = verify(path, out, seed=0, invocations=3, shapes=shapes, dims=dims)
    if name in NOT_RUN:
        assert NOT_RUN[name] in verdict.skipped
        return
    (check,) = verdict.checks
    assert check.outputs_equal, check.detail
    assert "ONNX Runtime ran node" not in check.detail
