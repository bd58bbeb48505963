"""Broken task graphs: one line each that says where and what, never a traceback."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from regal.errors import ModelError
from regal.frontends import load
from tests.frontends.test_task_graphs import COST_GRAPH, IOS, OLLA, PIPEDREAM, STG, dnn, layer, node
from tests.hostile_json import spoiled

SAGA: dict[str, Any] = {
    "task_graph": {
        "tasks": [{"name": "a", "cost": 1.0}, {"name": "b", "cost": 1.0}],
        "dependencies": [{"source": "a", "target": "b", "size": 1.0}],
    },
    "network": {
        "nodes": [{"name": "x", "speed": 1.0}, {"name": "y", "speed": 1.0}],
        "edges": [{"source": "x", "target": "y", "speed": 1.0}],
    },
}
PIPER: dict[str, Any] = {
    "maxDevices": 2,
    "maxMemoryPerDevice": 9.0,
    "bandwidth": 8.0,
    "nodes": [layer(0), layer(1)],
    "edges": [{"sourceId": 0, "destId": 1, "communicationCost": 3.0}],
}
DOPPLER = "4\n0,\n0, 1,\n1, 2,\n1,1\n1,1\n1,1\n"


def saga(**changes: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(SAGA))
    for path, value in changes.items():
        *parts, last = path.split("__")
        place: Any = document
        for part in parts:
            place = place[int(part) if part.isdigit() else part]
        place[int(last) if last.isdigit() else last] = value
    return document


CASES: list[tuple[str, Any, str]] = [
    ("a.stg", "", "does not begin with its number of tasks"),
    ("a.stg", "5\n0 1 0\n", "announces 5 tasks (and perhaps an entry and an exit) but has 1 tasks"),
    ("a.stg", "1\n0 1\n", "line 2 has 2 numbers; a task has at least 3"),
    ("a.stg", "2\n0 1 0\n1 x 1 0\n", "line 3: the time of task 1 is 'x', expected a number"),
    ("a.stg", "2\n0 1 0\n1 1 1 7\n", "line 3: task 1 names task 7, which does not exist"),
    ("a.stg", "2\n0 1 0\n1 1 3 0\n", "announces 3 predecessors but lists 1 numbers"),
    ("a.stg", "2\n0 1 0\n0 1 0\n", "line 3 is another task 0"),
    ("a.stg", "2\n0 1 1 1\n1 1 1 0\n", "in a circle: task0 -> task1 -> task0"),
    ("a.stg", "1\n0 -3 0\n", "is -3.0, expected a number from 0 to 2^60"),
    ("a.stg", "1\n0 nan 0\n", "is nan, expected a number from 0 to 2^60"),
    ("a.stg", "1\n0 1e12 0\n", "the longest time is 2^53 ns"),
    ("a.stg", b"\xff\xfe1\n", "is not a text file: byte 0 is not UTF-8"),
    ("g.json", dnn(maxFPGAs=0), "'maxFPGAs' is 0, expected an integer, 1 to 256"),
    ("g.json", dnn(maxFPGAs=10**9), "'maxFPGAs' is 1000000000, expected an integer, 1 to 256"),
    ("g.json", dnn(nodes=[], edges=[]), "has no tasks"),
    ("g.json", dnn(nodes=[node(1), node(1)]), "node 1 has id 1, as an earlier node has"),
    (
        "g.json",
        dnn(nodes=[node(1, fpgaLatency=-1)]),
        "node 0 ('n1'): 'fpgaLatency' is -1",
    ),
    ("g.json", dnn(nodes=[node(1, cpuLatency="x")]), "'cpuLatency' is 'x', expected a number"),
    ("g.json", dnn(nodes=[node(1, size=float("inf"))]), "'size' is inf, expected a number from 0"),
    ("g.json", dnn(nodes=[node(1, supportedOnFpga=2)]), "'supportedOnFpga' is 2, expected 0 or 1"),
    ("g.json", dnn(nodes=[7]), "node 0 is int, expected an object"),
    ("g.json", dnn(edges=[{"sourceId": 7, "destId": 3, "cost": 1}]), "edge 0 names node 3, which"),
    ("g.json", dnn(edges=[{"sourceId": 7, "destId": 8}]), "edge 0: 'cost' is None, expected a"),
    ("g.json", dnn(edges={}), "'edges' is {}, expected a list"),
    ("p.json", {**PIPER, "bandwidth": 0}, "'bandwidth' is 0 bytes/s, expected 1 or more"),
    ("p.json", {**PIPER, "nodes": [{"id": 0, "TMPCs": {"2": []}}]}, "cannot run on one device"),
    ("p.json", {**PIPER, "nodes": [{"id": 0, "TMPCs": {"1": []}}]}, "of degree 1 is empty"),
    ("s.json", saga(task_graph__tasks__1__name="a"), "two tasks are named 'a'"),
    ("s.json", saga(task_graph__dependencies__0__target="z"), "names task 'z', which is none"),
    ("s.json", saga(network__nodes__0__speed=0), "machine 'x': 'speed' is 0, expected more than 0"),
    ("s.json", saga(network__edges=[]), "its network has no link from 'x' to 'y'"),
    ("s.json", saga(network__nodes=[]), "its network has 0 machines, expected 1 to 256"),
    ("i.json", {**IOS, "blocks": [{"inner_nodes": []}]}, "a node is NoneType, expected an object"),
    (
        "c.pbtxt",
        COST_GRAPH.replace("preceding_node: 1", "preceding_node: 9"),
        "reads node 9, which",
    ),
    ("c.pbtxt", COST_GRAPH.replace("id: 2", "id: 1"), "has id 1, as node 'a' has; ids are unique"),
    ("c.pbtxt", COST_GRAPH.replace("size: 70", "size: -1"), "'size' is -1, expected 0 to 2^60"),
    ("c.pbtxt", COST_GRAPH.replace("control_input: 0", "control_input: 5"), "waits for node 5"),
    ("c.pbtxt", COST_GRAPH + "}", "is not such a protobuf text"),
    ("w.txt", "2\n1\n0 5\n", "line 3 is not an edge between two of the nodes 0 to 1"),
    ("w.txt", "2\n9\n0 1\n", "announces 9 edges but lists 1"),
    ("w.txt", "2000000\n0\n", "announces 2000000 nodes; at most 1000000 can be read"),
    ("w.txt", "2\n2\n0 1\n1 0\n", "in a circle: node0 -> node1 -> node0"),
    ("d.txt", DOPPLER.replace("1, 2,", "1,"), "has 2 sources of edges but 1 targets"),
    ("d.txt", DOPPLER.replace("1, 2,", "1, 9,"), "edge 1 from op 1 to op 9; there are 3 ops"),
    ("d.txt", DOPPLER.replace("4\n", "7\n", 1), "announces 7 nodes, 1 of them inputs, but lists 3"),
    ("d.txt", DOPPLER.replace("1,1\n", "1\n", 1), "op 0 is '1', expected flops,bytes"),
    ("d.txt", "4\n0,\n", "has 2 lines; a DOPPLER graph has at least 5"),
    ("graph.txt", PIPEDREAM.replace("node2 -- node4", "node2 -- node9"), "names layer 'node9'"),
    ("graph.txt", PIPEDREAM.replace("parameter_size", "parameters"), "has no 'parameter_size'"),
    ("graph.txt", PIPEDREAM.replace("=1.500", "=fast"), "'forward_compute_time' is 'fast'"),
    ("graph.txt", PIPEDREAM + "node2 -- x -- y\n", "is another layer 'node2'; ids are unique"),
    ("notes.txt", "hello", "is no task graph of a known form"),
    ("empty.txt", "", "is no task graph of a known form"),
    ("b.py", "x = (", "is not a Python program"),
    ("b.py", "import os\n", "has no call of 'add_node'"),
    ("b.py", "A = g.add_node(name=1)", "line 1: 'name' must be a literal text"),
    ("b.py", "A = g.add_node(size=f())", "'size' must be a number, or a sum or product"),
    ("b.py", "A = g.add_node()\ng.add_edge([A], [B], size=1)", "line 2: 'B' is not a node"),
    ("b.py", "A = g.add_node()\ng.add_edge(A, [A], size=1)", "'sources' must be a list of names"),
    ("b.py", "A = g.add_node(speed=1)", "has the argument 'speed'; known: name, op_type, size"),
    ("b.py", "g.add_node()", "a node must be assigned to a name to be read"),
    ("m.pb", b"\n\x00", "m.pb"),
]


@pytest.mark.parametrize(("name", "content", "message"), CASES)
def test_a_broken_file_is_refused_in_one_line(
    tmp_path: Path, name: str, content: Any, message: str
) -> None:
    path = tmp_path / name
    if not isinstance(content, bytes):
        content = (content if isinstance(content, str) else json.dumps(content)).encode()
    path.write_bytes(content)
    with pytest.raises(ModelError) as failure:
        load(path)
    assert message in str(failure.value)
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize(
    "document", [dnn(), SAGA, PIPER, dict(IOS)], ids=["dnn", "saga", "piper", "ios"]
)
def test_spoiled_json_is_read_or_refused(tmp_path: Path, document: dict[str, Any]) -> None:
    rng = random.Random(7)
    path = tmp_path / "g.json"
    refused = 0
    for _ in range(400):
        path.write_bytes(spoiled(document, rng))
        try:
            load(path)
        except ModelError:
            refused += 1
    assert 0 < refused < 400


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.stg", STG),
        ("d.txt", DOPPLER),
        ("graph.txt", PIPEDREAM),
        ("w.txt", "3\n2\n0 2\n1 2\n"),
        ("c.pbtxt", COST_GRAPH),
        ("b.py", OLLA),
    ],
)
def test_spoiled_texts_are_read_or_refused(tmp_path: Path, name: str, text: str) -> None:
    rng = random.Random(11)
    path = tmp_path / name
    refused = 0
    for _ in range(300):
        data = bytearray(text.encode())
        for _ in range(rng.choice((1, 2, 5))):
            at = rng.randrange(len(data) + 1)
            if rng.random() < 0.5:
                data[at : at + 1] = [rng.choice(b" \n\t-,;0123456789abc[]{}()\xff\x00")]
            else:
                del data[at : at + rng.randint(1, 6)]
        path.write_bytes(bytes(data))
        try:
            load(path)
        except ModelError:
            refused += 1
    assert refused > 0
