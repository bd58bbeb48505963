"""Sources of architectures; each is tried where its packages are installed."""

from importlib.util import find_spec

import pytest

from regal.cost.work import work_of
from regal.data.items import MODES, Item
from regal.data.pack import packed
from regal.data.tracers import NEEDS, TRACERS, source_names, tracer_of
from regal.errors import UsageError
from regal.graph.check import require_valid_graph
from regal.graph.types import Role

# Small items of each source that are traced in a second or two.
SAMPLES = {
    ("torch", "timm"): ("selecsls42b", "inference"),
    ("torch", "transformers"): ("fnet", "training"),
    ("torch", "diffusers"): ("autoencoder-tiny", "inference"),
    ("torch", "zoo"): ("dlrm-8x3", "training"),
    ("jax", "flax"): ("mpnn-3", "training"),
    ("tensorflow", "keras.layers"): ("text-cnn-3", "training"),
    ("onnx", "onnx.light"): ("squeezenet", "inference"),
    ("onnx", "torch.onnx"): ("dlrm-26x3", "inference"),
    ("graph", "synthetic"): ("layered-002", "inference"),
}


def sample(source: tuple[str, str]) -> Item:
    missing = [package for package in NEEDS[source] if find_spec(package) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    name, mode = SAMPLES[source]
    (item,) = [
        item
        for item in tracer_of(*source).items()
        if (item.architecture, item.mode) == (name, mode)
    ]
    return item


@pytest.mark.parametrize("source", SAMPLES, ids="/".join)
def test_two_traces_of_one_item_are_byte_identical(source: tuple[str, str]) -> None:
    item = sample(source)
    tracer = tracer_of(*source)
    graph = require_valid_graph(tracer.trace(item))
    assert packed(graph) == packed(tracer.trace(item))
    assert (graph.name, graph.framework) != ("", "")
    assert sum(op.flops for op in graph.ops) > 0
    unknown = [
        op.kind for op in graph.ops if not work_of(op, graph.tensors, graph.framework).is_known
    ]
    assert unknown == []
    if item.mode == "training":
        assert item.framework == "jax" or any(t.role is Role.STATE for t in graph.tensors)


@pytest.mark.parametrize("source", TRACERS, ids="/".join)
def test_items_have_keys_of_their_own_and_say_where_they_are_from(source: tuple[str, str]) -> None:
    if any(find_spec(package) is None for package in NEEDS[source]):
        pytest.skip("not installed")
    items = tracer_of(*source).items()
    assert len({item.key for item in items}) == len(items)
    assert {(item.framework, item.source) for item in items} == {source}
    assert {item.mode for item in items} <= set(MODES)


def test_every_source_says_what_it_needs() -> None:
    assert set(NEEDS) == set(TRACERS)


def test_an_unknown_source_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(UsageError, match="unknown source 'torch/none'; known: torch/timm"):
        tracer_of("torch", "none")
    assert "jax/flax" in source_names()
