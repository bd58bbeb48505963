"""Sources of architectures; each is tried where its packages are installed."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from regal.child import run_module
from regal.data.items import MODES, TRAINING
from regal.data.tracers import NEEDS, TRACERS, source_names, tracer_of
from regal.errors import UsageError

# Small items of each source that are traced in a second or two.
SAMPLES = {
    ("torch", "timm"): ("selecsls42b", "inference"),
    ("torch", "torchvision"): ("squeezenet1_1", "training"),
    ("torch", "transformers"): ("fnet", "training"),
    ("torch", "diffusers"): ("autoencoder-tiny", "inference"),
    ("torch", "zoo"): ("dlrm-8x3", "training"),
    ("jax", "flax"): ("mpnn-3", "training"),
    ("tensorflow", "keras.layers"): ("text-cnn-3", "training"),
    ("tensorflow", "keras-hub"): ("vgg", "training"),
    ("onnx", "onnx.light"): ("squeezenet", "inference"),
    ("onnx", "torch.onnx"): ("dlrm-26x3", "inference"),
    ("graph", "synthetic"): ("layered-002", "inference"),
}
LONGEST = 240.0  # seconds; only a process that hangs takes as long
ROOT = Path(__file__).parents[2]


def traced(source: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    missing = [package for package in NEEDS[source] if find_spec(package) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    monkeypatch.syspath_prepend(str(ROOT))
    run = run_module("tests.data.tracer_child", [*source, *SAMPLES[source]], LONGEST)
    assert run.end == "", run.stderr
    document: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return document


@pytest.mark.parametrize("source", SAMPLES, ids="/".join)
def test_a_source_traces_the_same_graph_twice_and_knows_the_work_of_all_its_ops(
    source: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = traced(source, monkeypatch)
    assert found["is_repeatable"]
    assert found["keys"] == found["items"]
    assert found["sources"] == ["/".join(source)]
    assert set(found["modes"]) <= set(MODES)
    assert found["ops"] >= 30
    assert found["flops"] > 0
    assert found["unknown"] == []
    assert found["framework"]
    assert found["version"]
    if SAMPLES[source][1] == TRAINING:  # weights change, but where every array is a new one
        assert found["has_state"] == (source[0] != "jax")


def test_every_source_says_what_it_needs() -> None:
    assert set(NEEDS) == set(TRACERS)
    assert set(TRACERS) - set(SAMPLES) == {
        ("tensorflow", "keras.applications"),  # large: they take half a minute
        ("tflite", "keras.applications"),
    }


def test_an_unknown_source_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(UsageError, match="unknown source 'torch/none'; known: torch/timm"):
        tracer_of("torch", "none")
    assert "jax/flax" in source_names()
