"""Profiles: which ops are equal, and a file that is read strictly."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from regal.cost.keys import MOST_CHARACTERS, op_key
from regal.cost.profile import OpTime, Profile, profile_from_json, profile_to_json, read_profile
from regal.errors import UsageError
from regal.graph.types import Graph, Role
from tests.cost.ops import single, tensor

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"


def key(graph: Graph) -> str:
    return op_key(graph.ops[0], graph)


def test_a_key_says_kind_types_shapes_weights_and_attributes() -> None:
    weights = tensor((4, 3, 3, 3), role=Role.PARAMETER)
    graph = single(
        "onnx", "Conv", [(1, 3, 8, 8), weights, None], [(1, 4, 8, 8)],
        {"pads": (1, 1, 1, 1), "group": 1, "_note": "x", "shared_name": "y"},
    )  # fmt: skip
    assert key(graph) == (
        "onnx:Conv(float32[1,3,8,8], float32[4,3,3,3]*, -) -> (float32[1,4,8,8])"
        " group=1 pads=1x1x1x1"
    )


def test_what_changes_the_time_changes_the_key_and_names_do_not() -> None:
    graph = single("onnx", "Conv", [(1, 3)], [(1, 3)], {"group": 1})
    others = [
        single("tflite", "Conv", [(1, 3)], [(1, 3)], {"group": 1}),
        single("onnx", "ConvInteger", [(1, 3)], [(1, 3)], {"group": 1}),
        single("onnx", "Conv", [(3, 1)], [(1, 3)], {"group": 1}),
        single("onnx", "Conv", [tensor((1, 3), "int8")], [(1, 3)], {"group": 1}),
        single("onnx", "Conv", [tensor((1, 3), role=Role.PARAMETER)], [(1, 3)], {"group": 1}),
        single("onnx", "Conv", [(1, 3)], [(1, 3)], {"group": 2}),
        single("onnx", "Conv", [(1, 3)], [(1, 3)]),
    ]
    assert len({key(graph), *map(key, others)}) == 8
    renamed = replace(graph, name="x", ops=(replace(graph.ops[0], name="other"),))
    assert key(renamed) == key(graph)


def test_ops_with_other_bodies_are_other_ops() -> None:
    bodies = [single("onnx", "Relu", [(size,)], [(size,)]) for size in (2, 2, 3)]
    graphs = [single("onnx", "If", [(1,)], [(1,)], subgraphs=(body,)) for body in bodies]
    a, b, c = map(key, graphs)
    assert a == b != c


def test_a_key_is_one_printable_line_of_bounded_length() -> None:
    graph = single("tflite", "CUSTOM:a\n\x00b", [(i,) for i in range(200)], [(1,)])
    other = single("tflite", "CUSTOM:a\n\x00b", [(i + 1,) for i in range(200)], [(1,)])
    assert key(graph).isprintable()
    assert len(key(graph)) <= MOST_CHARACTERS
    assert key(graph) != key(other)


def profile() -> Profile:
    return Profile(
        model="m.onnx", framework="onnx", runtime="onnxruntime 1", device_kind="cpu",
        machine={"cores": "2"}, threads=1, runs=5, warmup=1, overhead_ns=7, total_ns=1000,
        profiled_ns=900, ops=3, not_measured={"Constant": 1},
        times={
            "b": OpTime(ns=5, spread_ns=0, samples=5), "a": OpTime(ns=6, spread_ns=1, samples=7),
        },
    )  # fmt: skip


def test_a_profile_that_is_written_reads_back_equal_and_follows_its_schema(tmp_path: Path) -> None:
    text = profile_to_json(profile())
    assert profile_from_json(text.encode()) == profile()
    path = tmp_path / "p.json"
    path.write_text(text)
    assert read_profile(path) == profile()
    schema = json.loads((SCHEMAS / "profile.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(json.loads(text))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(schema="regal.plan/1"), "has another schema than 'regal.profile/1'"),
        (lambda d: d.pop("schema"), "has another schema than 'regal.profile/1'"),
        (lambda d: d.pop("runs"), "'runs' is missing"),
        (lambda d: d.update(speed=1), "unknown key 'speed'; known keys: device_kind, framework,"),
        (lambda d: d.update(total_ns=-1), "'total_ns' is -1, expected a whole number from 0 to"),
        (
            lambda d: d["times"][0].update(ns=0),
            "times 0: 'ns' is 0, expected a whole number from 1",
        ),
        (lambda d: d["times"][0].update(ns=True), "times 0: 'ns' is True, expected a whole number"),
        (lambda d: d["times"][1].update(key="a"), "times 1: 'a' is there twice"),
        (lambda d: d["times"][1].update(x=2), "times 1: unknown key 'x'; known keys: key, ns,"),
        (lambda d: d.update(times={}), "'times' is {}, expected a list"),
        (lambda d: d.update(machine=[]), "machine is [], expected a table"),
        (lambda d: d["not_measured"].update(x="y"), "not_measured: 'x' is 'y', expected a whole"),
    ],
)
def test_a_file_that_is_no_profile_is_refused_in_one_line(
    change: Callable[[dict[str, Any]], object], message: str
) -> None:
    document = json.loads(profile_to_json(profile()))
    change(document)
    with pytest.raises(UsageError) as caught:
        profile_from_json(json.dumps(document).encode(), "p.json")
    assert str(caught.value).startswith("profile file 'p.json'")
    assert message in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 100_000, b"[]", b"3"])
def test_bytes_that_are_no_object_are_refused(data: bytes) -> None:
    with pytest.raises(UsageError, match=r"^profile file 'p.json'"):
        profile_from_json(data, "p.json")


def test_an_op_that_was_measured_takes_its_kernel_and_the_overhead() -> None:
    graph = single("onnx", "Relu", [(4,)], [(4,)])
    found = replace(profile(), times={key(graph): OpTime(ns=50, spread_ns=0, samples=1)})
    assert found.times_of(graph.ops[0], graph) == {"cpu": 57}
    other = single("onnx", "Relu", [(5,)], [(5,)])
    assert found.times_of(other.ops[0], other) == {}
