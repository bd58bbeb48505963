"""Kinds of TensorFlow files, told by their content, and files that are broken."""

import gzip
import random
from pathlib import Path

import pytest
from google.protobuf import text_format

from regal import frontends
from regal.errors import BackendError, ModelError, RegalError
from regal.frontends import require_ending
from regal.frontends.tensorflow import native
from regal.frontends.tensorflow.read import read_graph_file
from regal.frontends.tensorflow.schema import new, parse
from regal.frontends.tensorflow.text import LONGEST_STRING, parse_text
from regal.graph.types import LoadedModel
from tests.frontends.tensorflow_models import (
    FLOAT,
    GraphDef,
    Loader,
    Reader,
    names,
    needs_tensorflow,
)

pytestmark = needs_tensorflow


def chain() -> GraphDef:
    g = GraphDef()
    g.input("x", -1, 4)
    g.unary("a", "Relu", "x")
    g.unary("b", "Tanh", "a")
    g.unary("c", "Exp", "a")
    return g


def saved_model(*signatures: str) -> object:
    """Return a SavedModel with some signatures, x -> the node of that name."""
    saved = new("SavedModel")
    meta = saved.meta_graphs.add()
    meta.meta_info_def.tags.append("serve")
    meta.graph_def.CopyFrom(chain().proto)
    meta.graph_def.node.add(name="nothing", op="NoOp")
    meta.signature_def["__saved_model_init_op"].outputs["op"].name = "nothing"
    for name in signatures:
        signature = meta.signature_def["serving_default" if name == "b" else name]
        signature.inputs["features"].name = "x:0"
        signature.outputs["out"].name = f"{name}:0"
    return saved


def load(path: Path) -> LoadedModel:
    return frontends.load(path)


def test_a_graph_is_read_from_binary_text_and_compressed_files(
    loader: Loader, tmp_path: Path
) -> None:
    g = chain()
    meta = new("MetaGraphDef")
    meta.graph_def.CopyFrom(g.proto)
    text = text_format.MessageToString(g.proto)
    files = {
        "binary.pb": g.proto.SerializeToString(),
        "text.pbtxt": text.encode(),
        "text.pb": text.encode(),
        "text.textproto": f"# a comment\n{text}".encode(),
        "text.pbtxt.gz": gzip.compress(text.encode()),
        "binary.pb.gz": gzip.compress(g.proto.SerializeToString()),
        "graph.meta": meta.SerializeToString(),
        "meta.pbtxt": text_format.MessageToString(meta).encode(),
    }
    for name, data in files.items():
        path = tmp_path / name
        path.write_bytes(data)
        model = load(path)
        assert names(model.graph) == ["a", "b", "c"], name
        assert model.framework == "tensorflow"
        assert model.graph.name == name.partition(".")[0]


def test_signatures_of_a_saved_model_are_its_entries(loader: Loader, tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(saved_model("c", "b").SerializeToString())  # type: ignore[attr-defined]
    for path in (tmp_path, tmp_path / "saved_model.pb"):
        model = load(path)
        assert [entry.name for entry in model.entries] == ["serving_default", "c"]
        assert [names(entry) for entry in model.entries] == [["a", "b"], ["a", "c"]]


def test_a_saved_model_without_signatures_is_one_entry(loader: Loader, tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(saved_model().SerializeToString())  # type: ignore[attr-defined]
    model = load(tmp_path)
    assert [names(entry) for entry in model.entries] == [["a", "b", "c", "nothing"]]


def test_inputs_can_be_called_as_in_the_signature(loader: Loader, tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(saved_model("b").SerializeToString())  # type: ignore[attr-defined]
    model = frontends.load(tmp_path, shapes={"features": (8, 4)})
    assert model.graph.tensors[model.graph.inputs[0]].shape == (8, 4)


def test_what_a_signature_feeds_is_an_input_whatever_computed_it(
    loader: Loader, tmp_path: Path
) -> None:
    saved = saved_model("b")
    meta = saved.meta_graphs[0]  # type: ignore[attr-defined]
    meta.signature_def["serving_default"].inputs["features"].name = "a:0"
    meta.signature_def["serving_default"].inputs["features"].tensor_shape.dim.add(size=-1)
    (tmp_path / "saved_model.pb").write_bytes(saved.SerializeToString())  # type: ignore[attr-defined]
    graph = load(tmp_path).graph
    assert names(graph) == ["b"]
    assert [graph.tensors[t].name for t in graph.inputs] == ["a:0"]


def test_what_the_backend_gets_is_the_graph_of_the_entry(loader: Loader, tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(saved_model("b").SerializeToString())  # type: ignore[attr-defined]
    source = load(tmp_path).source
    (entry,) = source.entries  # type: ignore[attr-defined]
    assert (entry.inputs, entry.outputs) == (("x:0",), ("b:0",))
    assert entry.op_nodes == (("a",), ("b",))
    assert entry.shapes == {"x:0": (1, 4)}
    assert [node.name for node in entry.graph.node] == ["x", "a", "b"]
    assert source.kind == "SavedModel"  # type: ignore[attr-defined]
    assert len(source.message.meta_graphs[0].graph_def.node) == 5  # type: ignore[attr-defined]


def test_onnx_texts_still_go_to_onnx(tmp_path: Path) -> None:
    path = tmp_path / "model.pbtxt"
    path.write_text(
        "# made by hand\nir_version: 8\nopset_import { version: 13 }\n"
        'graph { name: "g" node { op_type: "Relu" input: "x" output: "y" }'
        ' input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }'
        ' output { name: "y" } }'
    )
    assert load(path).framework == "onnx"


def test_cost_graphs_still_go_to_task_graphs(tmp_path: Path) -> None:
    path = tmp_path / "model.pbtxt"
    path.write_text('node { name: "a" id: 0 compute_cost: 5 }\n')
    assert load(path).framework == "graph"


def test_endings_of_protobuf_text_fit_both_kinds_of_models() -> None:
    for like in ("model.onnx", "model.pb"):
        require_ending(Path("out.pbtxt"), like=Path(like))
    with pytest.raises(RegalError):
        require_ending(Path("out.onnx"), like=Path("model.pb"))


def test_long_strings_are_read_as_protobuf_reads_them() -> None:
    rng = random.Random(0)
    g = chain()
    for i, size in enumerate((1, LONGEST_STRING, 3 * LONGEST_STRING)):
        node = g.proto.node.add(name=f"c{i}", op="Const")
        node.attr["dtype"].type = FLOAT
        node.attr["value"].tensor.tensor_content = rng.randbytes(size)
    text = text_format.MessageToString(g.proto)
    assert parse_text("GraphDef", text) == text_format.Parse(text, new("GraphDef"))
    quoted = text.replace('"', "'").replace("\\'", "\\'")
    assert parse_text("GraphDef", quoted) == text_format.Parse(quoted, new("GraphDef"))


def test_fields_that_are_left_out_survive_in_binary_and_are_skipped_in_text() -> None:
    text = 'node { name: "a" op: "NoOp" experimental_type { type_id: 1 } }'
    assert len(parse_text("GraphDef", text).node) == 1
    unknown = b"\x9a\x06\x03abc"  # field 99
    data = new("GraphDef").SerializeToString() + unknown
    assert parse("GraphDef", data).SerializeToString() == data


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.pb", b"", "is empty"),
        ("a.pb", bytes(range(256)), "are no GraphDef, MetaGraphDef or SavedModel"),
        ("a.pbtxt", b"# only this\n", "line 2 begins with ''"),
        ("a.pbtxt", b"\n\nthis is no graph", "line 3 begins with 'this'"),
        ("a.pbtxt", b'node { name: "a" opp: "b" }', 'has no field named "opp"'),
        ("a.pbtxt", b"node { name: 'a'", "Expected"),
        ("a.pbtxt", b"node { name: '\xff' }", "byte 14 is no UTF-8 text"),
        ("a.pbtxt", b"versions { producer: 1 }", "holds a GraphDef without nodes"),
        ("a.pbtxt.gz", b"\x1f\x8bnot really", "cannot be unpacked"),
        ("a.keras", b"no archive", "is no .keras file: it is no zip archive"),
    ],
)
def test_a_file_that_is_none_is_refused_in_one_line(
    tmp_path: Path, name: str, data: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(ModelError) as caught:
        load(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_that_is_no_saved_model_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is not a file"):
        load(tmp_path)
    with pytest.raises(ModelError, match="is no SavedModel: it has no saved_model"):
        read_graph_file(tmp_path)


def test_without_tensorflow_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(BackendError) as caught:
        load(chain().write(tmp_path / "a.pb"))
    assert str(caught.value) == (
        "TensorFlow files need tensorflow, which is not installed - pip install 'regal[tensorflow]'"
    )


def test_a_crash_of_tensorflow_is_one_line(reader: Reader) -> None:
    with reader.shared() as child:
        child.process.kill()
        with pytest.raises(ModelError) as caught:
            child.infer(chain().proto)
    assert str(caught.value) == "TensorFlow crashed with SIGKILL while reading the graph"


def test_an_answer_that_takes_too_long_is_not_waited_for() -> None:
    with native.native_tensorflow(timeout_s=0.01) as child, pytest.raises(ModelError) as caught:
        child.op_defs()
    assert str(caught.value) == ("TensorFlow did not answer within 0.01 s while reading the graph")


def test_changed_bytes_are_read_or_refused_but_never_a_crash(
    loader: Loader, tmp_path: Path
) -> None:
    rng = random.Random(0)
    saved = saved_model("b", "c").SerializeToString()  # type: ignore[attr-defined]
    text = text_format.MessageToString(chain().proto).encode()
    outcomes = set()
    for i in range(150):
        name, data = rng.choice([("a.pb", saved), ("a.pbtxt", text)])
        changed = bytearray(data)
        for _ in range(rng.choice([1, 1, 4])):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        if i % 4 == 0:
            del changed[rng.randrange(len(changed)) :]
        path = tmp_path / name
        path.write_bytes(bytes(changed))
        try:
            load(path)
        except RegalError as error:
            outcomes.add(len(str(error).splitlines()))
        else:
            outcomes.add(0)
    assert outcomes == {0, 1}  # read, or one line
