"""Building a set from the files of the onnx package, which is always installed."""

import json
import multiprocessing
import re
from dataclasses import replace
from pathlib import Path

import pytest

from regal.data import load_graph, load_index
from regal.data.assemble import assemble
from regal.data.build import LOG, build, file_of, read_log, trace_to_file
from regal.data.entries import ABOUT, ARCHIVE, INDEX, LEFT_OUT, load_about, load_left_out
from regal.data.items import Item
from regal.data.pack import unpacked
from regal.errors import ModelError
from regal.frontends import load
from tests.ctrl_c import ctrl_c_inside

SQUEEZE = Item(
    framework="onnx", source="onnx.light", family="squeezenet", architecture="squeezenet"
)
ALEX = Item(framework="onnx", source="onnx.light", family="vgg", architecture="bvlc_alexnet")
ABSENT = Item(framework="onnx", source="onnx.light", family="vgg", architecture="absent")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a build with a failure in it."""
    folder = tmp_path_factory.mktemp("build")
    build([SQUEEZE, ALEX, ABSENT], folder)
    return folder


def test_a_failure_is_a_row_with_its_reason(built: Path) -> None:
    rows = {row["architecture"]: row for row in read_log(built)}
    assert set(rows) == {"squeezenet", "bvlc_alexnet", "absent"}
    assert rows["absent"]["failure"].startswith("ModelError: model file")
    assert "failure" not in rows["squeezenet"]


def test_two_builds_of_one_item_are_byte_identical(built: Path, tmp_path: Path) -> None:
    trace_to_file(SQUEEZE, tmp_path)
    name = file_of(SQUEEZE.key)
    assert (tmp_path / name).read_bytes() == (built / name).read_bytes()


def test_a_build_that_is_repeated_traces_nothing(built: Path) -> None:
    before = (built / LOG).read_text()
    build([SQUEEZE, ALEX, ABSENT], built)
    assert (built / LOG).read_text() == before


def test_a_line_that_a_crash_cut_off_is_traced_again(built: Path, tmp_path: Path) -> None:
    line = next(text for text in (built / LOG).read_text().splitlines() if "squeeze" in text)
    (tmp_path / LOG).write_text(line[: len(line) // 2] + "\n")
    assert read_log(tmp_path) == []


def test_the_set_loads_the_graphs_that_were_traced(built: Path, tmp_path: Path) -> None:
    entries = assemble(built, tmp_path)
    assert entries == load_index(tmp_path)
    assert [entry.key for entry in entries] == sorted(entry.key for entry in entries)
    for entry in entries:
        graph = load_graph(entry, tmp_path)
        assert (graph.name, len(graph.ops)) == (entry.key, entry.ops)
        assert graph == unpacked((built / file_of(entry.key)).read_bytes())
    about = load_about(tmp_path)
    assert about["graphs"] == 2
    assert list(about["sources"]) == ["onnx/onnx.light"]
    (left,) = load_left_out(tmp_path)
    assert (left["key"], left["why"]) == (ABSENT.key, "failure")


def test_graphs_of_one_structure_are_one_entry(built: Path, tmp_path: Path) -> None:
    twin = Item(
        framework="onnx", source="onnx.light", family="squeezenet", architecture="squeezenet",
        batch=2,
    )  # fmt: skip
    trace_to_file(SQUEEZE, tmp_path)
    rows = [trace_to_file(SQUEEZE, tmp_path), trace_to_file(twin, tmp_path)]
    (tmp_path / LOG).write_text("".join(json.dumps(row) + "\n" for row in rows))
    (entry,) = assemble(tmp_path, tmp_path / "set")
    (left,) = load_left_out(tmp_path / "set")
    assert entry.key == SQUEEZE.key
    assert left == {
        "key": twin.key, "family": "squeezenet", "why": "duplicate", "reason": SQUEEZE.key,
    }  # fmt: skip


def test_a_synthetic_graph_without_headroom_is_left_out_with_the_share_that_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = Item(framework="graph", source="synthetic", family="layered", architecture="layered-002")
    monkeypatch.setattr("regal.data.build.headroom", lambda graph: 0.05)
    row = trace_to_file(item, tmp_path)
    assert (row["why"], row["left_out"]) == ("headroom", "a long search gains 5.0%; 10% is wanted")
    assert not (tmp_path / file_of(item.key)).exists()
    monkeypatch.setattr("regal.data.build.headroom", lambda graph: 0.2)
    assert "left_out" not in trace_to_file(item, tmp_path)
    (tmp_path / LOG).write_text(json.dumps(row) + "\n")
    assemble(tmp_path, tmp_path / "set")
    (left,) = load_left_out(tmp_path / "set")
    assert left["why"] == "headroom"


def test_an_archive_that_is_not_the_index_s_is_refused(built: Path, tmp_path: Path) -> None:
    entries = assemble(built, tmp_path)
    data = bytearray((tmp_path / ARCHIVE).read_bytes())
    data[entries[1].offset] ^= 1
    (tmp_path / ARCHIVE).write_bytes(bytes(data))
    load_graph(entries[0], tmp_path)
    with pytest.raises(ModelError, match="are not what the index says - restore both files"):
        load_graph(entries[1], tmp_path)


def test_packed_operations_are_those_of_the_frontend() -> None:
    import onnx

    folder = Path(onnx.__file__).parent / "backend/test/data/light"
    graph = load(folder / "light_squeezenet.onnx").graph
    assert sum(op.flops for op in graph.ops) > 10**8


def test_ctrl_c_ends_the_processes_and_leaves_no_row_of_what_they_traced(
    built: Path, tmp_path: Path
) -> None:
    with ctrl_c_inside("build"), pytest.raises(KeyboardInterrupt):
        build([SQUEEZE], tmp_path)
    assert multiprocessing.active_children() == []
    assert [row for row in read_log(tmp_path) if "failure" in row] == []


def test_a_build_goes_on_behind_lines_that_are_no_rows(built: Path, tmp_path: Path) -> None:
    squeeze, alex = sorted(
        (line for line in (built / LOG).read_text().splitlines() if "failure" not in line),
        key=lambda line: "alex" in line,
    )
    broken = [b"\xff", b"[]", b"{}", b'{"key": 1}', alex.replace('"ops": ', '"ops": 1e').encode()]
    text = b"\n".join([squeeze.encode(), *broken, alex[: len(alex) // 2].encode()])
    (tmp_path / LOG).write_bytes(text)  # the last line was cut off: it has no end
    rows = build([SQUEEZE, ABSENT], tmp_path)
    assert [row["key"] for row in rows] == [SQUEEZE.key, ABSENT.key]
    assert len((tmp_path / LOG).read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("key", "value"),
    [("offset", "1e30"), ("offset", "9" * 30), ("bytes", "null"), ("ops", '"1"'), ("split", "[]")],
)
def test_an_index_with_a_wrong_type_is_one_line_of_error(
    built: Path, tmp_path: Path, key: str, value: str
) -> None:
    assemble(built, tmp_path)
    path = tmp_path / INDEX
    path.write_text(re.sub(rf'"{key}":[^,}}]*', f'"{key}":{value}', path.read_text(), count=1))
    with pytest.raises(ModelError, match=rf"line 1: '{key}' is .*, expected a"):
        load_index(tmp_path)


def test_an_index_that_asks_for_more_than_there_is_costs_no_memory(
    built: Path, tmp_path: Path
) -> None:
    (entry, *_) = assemble(built, tmp_path)
    for offset, size in ((0, 10**15), (2**62, 1), (-1, 1), (0, -1)):
        with pytest.raises(ModelError, match=r"are not what the index says|cannot be read"):
            load_graph(replace(entry, offset=offset, bytes=size), tmp_path)


def test_a_set_of_other_things_is_one_line_of_error(built: Path, tmp_path: Path) -> None:
    assemble(built, tmp_path)
    (tmp_path / ABOUT).write_text("{}")
    with pytest.raises(ModelError, match=r"about\.json': wrong keys: bytes, "):
        load_about(tmp_path)
    (tmp_path / LEFT_OUT).write_text('{"key": "a"}\n')
    with pytest.raises(ModelError, match="line 1: wrong keys: family, reason, why"):
        load_left_out(tmp_path)
    (tmp_path / INDEX).write_bytes(b"\xff")
    with pytest.raises(ModelError, match="is not UTF-8 text"):
        load_index(tmp_path)
