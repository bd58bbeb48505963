"""The corpus: every TensorFlow file is read, with sizes that its own bytes and runs confirm."""

from math import prod
from pathlib import Path

import pytest

from regal.errors import ModelError
from regal.frontends.tensorflow.ops import element_bits
from regal.frontends.tensorflow.source import TensorFlowSource
from regal.graph.memory import parameter_bytes, state_bytes
from regal.graph.types import LoadedModel
from tests.corpus import CORPUS, corpus_file
from tests.frontends.tensorflow_models import Loader, needs_tensorflow, peak

pytestmark = [needs_tensorflow, pytest.mark.corpus]

FILES = sorted(path.name for path in Path(CORPUS, "tf").glob("*"))
BROKEN = "g2m_graph-malformed.pbtxt"
# Its height and width are free.
SHAPES = {"mtcnn_frozen.pb": {"input": (240, 320, 3)}}
# What TensorFlow 2.21 itself allocated at most when it ran the order of the file on one thread,
# plus the inputs, which it does not count.
MEASURED = {"conv_actions_frozen.pb": 1_269_760, "back2back_fake_quant.pbtxt": 1_152}


def load(loader: Loader, name: str) -> LoadedModel:
    if name not in loader.models:
        path = corpus_file(f"tf/{name}")
        loader.models[name] = loader.file(path, shapes=SHAPES.get(name, {}))
    return loader.models[name]


@pytest.mark.parametrize("name", [name for name in FILES if name != BROKEN])
def test_every_file_is_read_into_a_graph_with_a_legal_order(loader: Loader, name: str) -> None:
    model = load(loader, name)
    source = model.source
    assert isinstance(source, TensorFlowSource)
    assert model.graph.ops
    assert len(source.entries) == len(model.entries)
    for entry, graph in zip(source.entries, model.entries, strict=True):
        peak(graph)  # the checker accepts the order
        named = [node for nodes in entry.op_nodes for node in nodes]
        assert len(named) == len(set(named))
        assert set(named) <= {node.name for node in entry.graph.node}
    whole = source.entries[0].graph
    constants = {node.name: node for node in whole.node if node.op == "Const"}
    read = {i.partition(":")[0] for node in whole.node for i in node.input}
    stored = sum(
        prod(d.size for d in node.attr["value"].tensor.tensor_shape.dim)
        * element_bits(node.attr["dtype"].type)
        // 8
        for key, node in constants.items()
        if key in read
    )
    if not any(op.subgraphs for op in model.graph.ops):
        assert parameter_bytes(model.graph) == stored


@pytest.mark.parametrize("name", sorted(MEASURED))
def test_the_peak_of_the_file_s_order_is_what_tensorflow_allocated(
    loader: Loader, name: str
) -> None:
    assert peak(load(loader, name).graph) == MEASURED[name]


def test_the_broken_file_is_refused_in_one_line(loader: Loader) -> None:
    with pytest.raises(ModelError, match="line 3 begins with 'this'"):
        load(loader, BROKEN)


def test_free_sizes_of_an_image_are_asked_for(loader: Loader) -> None:
    with pytest.raises(ModelError) as caught:
        loader.file(corpus_file("tf/mtcnn_frozen.pb"))
    assert str(caught.value).startswith("1 input dimension is free: input:0[1] - give --shape")


def test_variables_of_a_training_graph_are_state(loader: Loader) -> None:
    model = load(loader, "pensieve_a3c.meta")
    graph = model.source.message.graph_def  # type: ignore[attr-defined]
    variables = [node for node in graph.node if node.op == "VariableV2"]
    assert len(variables) == 100
    stated = sum(4 * prod(d.size for d in v.attr["shape"].shape.dim) for v in variables)
    booleans = sum(3 for v in variables if v.attr["dtype"].type == 10)
    assert state_bytes(model.graph) == stated - booleans


def test_a_training_graph_with_loops_becomes_ops_with_known_sizes(loader: Loader) -> None:
    model = load(loader, "opens2s_gnmt_training.pbtxt.gz")
    loops = [op for op in model.graph.ops if op.kind == "WhileFrame"]
    assert len(loops) == 8
    assert sum(count for op in loops if isinstance(count := op.attributes["_nodes"], int)) > 3000
    shapes = {t.name: t.shape for t in model.graph.tensors}
    assert shapes["IteratorGetNext:0"] == (128, 1)  # the batch follows from the graph
    notes = model.source.notes  # type: ignore[attr-defined]
    assert any("IteratorGetNext:0" in note for note in notes)
