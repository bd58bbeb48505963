"""Readers of task graphs: one hand-made file per format, its numbers by hand."""

import json
from pathlib import Path
from textwrap import dedent

import pytest

from regal.errors import ModelError
from regal.frontends import load
from regal.frontends.task_graphs import dnn_partitioning
from regal.graph.types import Graph, LoadedModel, Role

MS = 1_000_000


def read(tmp_path: Path, name: str, content: str | bytes | dict[str, object]) -> LoadedModel:
    path = tmp_path / name
    if isinstance(content, dict):
        content = json.dumps(content)
    path.write_bytes(dedent(content).encode() if isinstance(content, str) else content)
    return load(path)


def edges_of(graph: Graph) -> set[tuple[str, str]]:
    writers = {tensor: op.name for op in graph.ops for tensor in op.outputs}
    return {(writers[t], op.name) for op in graph.ops for t in op.inputs if t in writers}


def times_of(graph: Graph, kind: str = "") -> dict[str, int]:
    return {op.name: op.times_ns[kind] for op in graph.ops}


def parameters_of(graph: Graph) -> dict[str, int]:
    return {
        op.name: sum(
            graph.tensors[t].bytes for t in op.inputs if graph.tensors[t].role is Role.PARAMETER
        )
        for op in graph.ops
    }


STG = """\
        3
    0     0     0
    1     5     1     0
    2     7     1     0
    3     2     2     1     2
    4     0     1     3     # exit
    # what follows the last task is a remark
    """


def test_a_standard_task_graph_with_its_dummy_entry_and_exit(tmp_path: Path) -> None:
    graph = read(tmp_path, "a.stg", STG).graph
    assert times_of(graph) == {
        "task0": 0,
        "task1": 5 * MS,
        "task2": 7 * MS,
        "task3": 2 * MS,
        "task4": 0,
    }
    assert edges_of(graph) == {
        ("task0", "task1"),
        ("task0", "task2"),
        ("task1", "task3"),
        ("task2", "task3"),
        ("task3", "task4"),
    }
    assert {(t.bytes, t.transfer_ns) for t in graph.tensors} == {(0, 0)}


@pytest.mark.parametrize("text", ["2\n0 5 0\n1 7 1 0 3\n", "2\n0 5 0\n1 7 1\n 0 3\n"])
def test_a_standard_task_graph_with_communication_times(tmp_path: Path, text: str) -> None:
    (tensor,) = read(tmp_path, "a.stg", text).graph.tensors
    assert tensor.transfer_ns == 3 * MS


def node(number: int, **fields: object) -> dict[str, object]:
    usual = {"name": f"n{number}", "id": number, "supportedOnFpga": 1, "isBackwardNode": 0}
    return {**usual, "cpuLatency": 10.0, "fpgaLatency": 1.5, "size": 100.0, **fields}


def dnn(**changes: object) -> dict[str, object]:
    document: dict[str, object] = {
        "maxSizePerFPGA": 250.0,
        "maxFPGAs": 3,
        "maxCPUs": 1,
        "nodes": [
            node(7, colorClass=1),
            node(8, supportedOnFpga=0, colorClass=2),
            node(9, colorClass=1, isBackwardNode=True, size=50),
        ],
        "edges": [
            {"sourceId": 7, "destId": 8, "cost": 0.25, "size": 64.0},
            {"sourceId": 7, "destId": 9, "cost": 0.5, "size": 64.0},
            {"sourceId": 8, "destId": 9, "cost": 1},
        ],
    }
    return {**document, **changes}


def test_a_dnn_partitioning_graph_with_its_cost_model(tmp_path: Path) -> None:
    model = read(tmp_path, "g.json", dnn())
    graph, system = model.graph, model.system
    assert times_of(graph) == {"n7": 1_500_000, "n8": 10 * MS, "n9": 1_500_000}
    assert times_of(graph, "cpu") == {"n7": 10 * MS, "n8": 10 * MS, "n9": 10 * MS}
    assert parameters_of(graph) == {"n7": 100, "n8": 100, "n9": 50}
    # Twice the cost of the edge; two costs of one source are two values.
    sent = {t.name: (t.bytes, t.transfer_ns) for t in graph.tensors if t.transfer_ns is not None}
    assert sent == {"n7.0": (64, 500_000), "n7.1": (64, MS), "n8.0": (0, 2 * MS)}
    assert [op.kind for op in graph.ops] == ["forward", "forward", "backward"]
    assert not any(op.colocation for op in graph.ops)
    assert system is not None
    assert [device.memory_bytes for device in system.devices] == [250] * 3
    assert not system.has_contention
    assert not system.capacity_counts_live


def test_colors_colocate_only_when_asked_for() -> None:
    data = json.dumps(dnn()).encode()
    graph = dnn_partitioning.parse(data, "g.json", with_colors=True).graph
    assert [op.colocation for op in graph.ops] == ["color 1", "color 2", "color 1"]


def test_a_placement_by_an_expert_is_no_graph(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is a placement by a human expert"):
        read(tmp_path, "expert.json", {"cpus": [], "fpgas": [], "maxLoad": -1})


COST_GRAPH = """\
    node { name: "_SOURCE" }
    node {
      name: "a"
      id: 1
      output_info { size: 70 alias_input_port: -1 }
      control_input: 0
      compute_cost: 58
    }
    node {
      name: "b" id: 2
      input_info { preceding_node: 1 }
      output_info { size: 70 alias_input_port: 0 }
      temporary_memory_size: 9
      persistent_memory_size: 33
      compute_cost: 2
      is_final: true
    }
    """


def test_a_cost_graph_with_an_alias_and_a_control_edge(tmp_path: Path) -> None:
    model = read(tmp_path, "g.costgraph.pbtxt", COST_GRAPH)
    graph = model.graph
    assert model.system is None
    assert graph.name == "g"
    assert times_of(graph) == {"_SOURCE": 0, "a": 58_000, "b": 2_000}
    assert graph.ops[1].control_inputs == (0,)
    assert graph.ops[2].workspace_bytes == 9
    assert parameters_of(graph) == {"_SOURCE": 0, "a": 0, "b": 33}
    first, second = (t for t in graph.tensors if t.bytes == 70)
    assert first.storage == second.storage
    assert second.role is Role.OUTPUT


def test_tensorflow_and_onnx_texts_are_not_taken_for_cost_graphs(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as failure:
        read(tmp_path, "g.pbtxt", 'node { name: "a" op: "Add" }')
    assert "cost" not in str(failure.value)


def layer(number: int, **fields: object) -> dict[str, object]:
    variant = {
        "id": "vanilla",
        "timePerSample": 0.25,
        "parameterSize": 10.0,
        "memoryUsageA": 5.0,
        "memoryUsageB": 20.0,
    }
    return {"id": number, "name": "layer", "TMPCs": {"1": [{**variant, **fields}]}}


def test_a_piper_input(tmp_path: Path) -> None:
    document: dict[str, object] = {
        "maxDevices": 2,
        "maxMemoryPerDevice": 100.0,
        "bandwidth": 8.0,
        "nodes": [layer(0), layer(1, timePerSample=0.5)],
        "edges": [{"sourceId": 0, "destId": 1, "communicationCost": 3.0}],
    }
    model = read(tmp_path, "p.json", document)
    assert times_of(model.graph) == {"layer#0": 250 * MS, "layer#1": 500 * MS}
    assert parameters_of(model.graph) == {"layer#0": 25, "layer#1": 25}
    assert [t.bytes for t in model.graph.tensors if t.role is Role.ACTIVATION] == [6]
    assert model.system is not None
    assert model.system.links[0, 1].bytes_per_s == 8
    assert len(model.system.devices) == 2


def test_a_saga_graph_with_machines_of_different_speeds(tmp_path: Path) -> None:
    document: dict[str, object] = {
        "name": "x",
        "task_graph": {
            "tasks": [{"name": "b", "cost": 3}, {"name": "a", "cost": 4.0}],
            "dependencies": [{"source": "a", "target": "b", "size": 2.5}],
        },
        "network": {
            "nodes": [{"name": "slow", "speed": 1.0}, {"name": "fast", "speed": 2.0}],
            "edges": [
                {"source": "slow", "target": "slow", "speed": 1e9},
                {"source": "slow", "target": "fast", "speed": 5.0},
            ],
        },
    }
    model = read(tmp_path, "s.json", document)
    graph, system = model.graph, model.system
    assert [op.name for op in graph.ops] == ["a", "b"]  # writers first
    assert graph.ops[0].times_ns == {"": 4 * MS, "speed 1": 4 * MS, "speed 2": 2 * MS}
    assert system is not None
    assert [(d.name, d.kind) for d in system.devices] == [("slow", "speed 1"), ("fast", "speed 2")]
    # 2.5 units are 2500 thousandths; at 5 units per ms they take half a millisecond, both ways.
    assert graph.tensors[0].bytes == 2500
    assert system.links[0, 1] == system.links[1, 0]
    assert graph.tensors[0].bytes / system.links[0, 1].bytes_per_s == pytest.approx(0.5e-3)


PIPEDREAM = """\
node1 -- Input0 -- forward_compute_time=0.000, backward_compute_time=0.000, activation_size=8.0, parameter_size=0.000
node2 -- LSTM(4, 4) -- forward_compute_time=1.500, backward_compute_time=2.500, activation_size=[6.0; 4.0], parameter_size=32.000
node3 -- __getitem__(1) -- forward_compute_time=0.000, backward_compute_time=0.000, activation_size=4.0, parameter_size=0.000
node4 -- Add -- forward_compute_time=0.500, backward_compute_time=0.250, activation_size=4.0, parameter_size=0.000 -- stage_id=1
\tnode1 -- node2
\tnode2 -- node3
\tnode2 -- node4
\tnode3 -- node4
"""  # noqa: E501


def test_a_pipedream_profile_is_a_training_step(tmp_path: Path) -> None:
    graph = read(tmp_path, "graph.txt", PIPEDREAM).graph
    names = [op.name for op in graph.ops]
    assert names[:3] == ["node2", "node3", "node4"]
    assert names[3:] == ["node4.backward", "node3.backward", "node2.backward"]
    assert times_of(graph)["node2"] == 1_500_000
    assert times_of(graph)["node2.backward"] == 2_500_000
    assert {op.name: op.colocation for op in graph.ops}["node2.backward"] == "node2"
    sizes = {t.name: t.bytes for t in graph.tensors}
    assert sizes["node1"] == 8
    assert (sizes["node2.out0"], sizes["node2.out1"]) == (6, 4)
    assert sizes["node3.gradient of node2"] == 4  # of the one output that it reads
    assert sizes["node4.gradient of node2"] == 10
    reads = {op.name: {graph.tensors[t].name for t in op.inputs} for op in graph.ops}
    assert reads["node3"] == {"node2.out1"}
    assert reads["node2.backward"] == {
        "node3.gradient of node2",
        "node4.gradient of node2",
        "node1",
        "node2.parameters",
    }
    results = {graph.tensors[t].name for t in graph.outputs}
    assert results == {"node4.out0", "node2.gradient of its parameters"}


def test_an_edge_list_counts_one_byte_per_value(tmp_path: Path) -> None:
    graph = read(tmp_path, "ws.txt", "3\n2\n0 2\n1 2\n").graph
    assert edges_of(graph) == {("node0", "node2"), ("node1", "node2")}
    assert {t.bytes for t in graph.tensors} == {1}
    assert [op.name for op in graph.ops if graph.inputs[0] in op.inputs] == ["node0", "node1"]


def test_a_doppler_graph_takes_milliseconds_of_ten_billion_units(tmp_path: Path) -> None:
    text = "5\n0, 1,\n0, 1,\n2, 2,\n10000000000,20000000000\n30000000000,1\n100000,4,matmul\n"
    model = read(tmp_path, "mm.txt", text)
    assert times_of(model.graph) == {"op0": MS, "op1": 3 * MS, "op2": 10}
    assert [t.transfer_ns for t in model.graph.tensors] == [2 * MS, 0, 0]
    assert model.graph.ops[2].kind == "matmul"
    assert model.system is not None
    assert len(model.system.devices) == 4


IOS = {
    "name": "net",
    "input": {"type": "placeholder", "name": "0", "output_shape": [3, 8, 8]},
    "blocks": [
        {
            "inner_nodes": [
                {
                    "type": "conv",
                    "name": "1",
                    "inputs": [[["0", 0, 3]]],
                    "kernel": [3, 3],
                    "groups": 1,
                    "output_shape": [6, 8, 8],
                }
            ],
            "exit_node": {
                "type": "identity",
                "name": "2",
                "inputs": [[["1", 0, 4]], [["1", 4, 6]]],
                "output_shape": [6, 8, 8],
            },
            "stages": [],
        }
    ],
}


def test_the_network_of_an_ios_schedule(tmp_path: Path) -> None:
    graph = read(tmp_path, "v100.json", dict(IOS)).graph
    conv, identity = graph.ops
    assert (conv.name, conv.kind) == ("1", "conv")
    assert conv.flops == 2 * 6 * 64 * 27
    assert parameters_of(graph) == {"1": 4 * (6 * 27 + 6), "2": 0}
    assert graph.tensors[conv.outputs[0]].bytes == 4 * 6 * 64
    assert identity.inputs == conv.outputs


OLLA = """\
    from model_opt import dataflow_graph

    graph = dataflow_graph.Graph()
    A = graph.add_node(name="INPUT")
    B = graph.add_node()
    W = graph.add_node(name="WEIGHT", size=123)
    C = graph.add_node(name="SUM", op_type="add")
    graph.add_edge([W], [C], size=0, name="REF")
    graph.add_edge([A, B], [C], size=3 * 10)
    graph.canonicalize()
    """


def test_a_builder_of_olla_is_parsed(tmp_path: Path) -> None:
    graph = read(tmp_path, "build.py", OLLA).graph
    assert [op.name for op in graph.ops] == ["INPUT", "B", "SUM"]
    assert parameters_of(graph)["SUM"] == 123
    first, second = (t for t in graph.tensors if t.bytes == 30)
    assert first.storage == second.storage  # one value that two nodes write


def test_a_builder_is_never_run(tmp_path: Path) -> None:
    witness = tmp_path / "ran"
    program = f"""\
        import pathlib
        pathlib.Path({str(witness)!r}).touch()
        A = graph.add_node(name="A")
        """
    read(tmp_path, "build.py", program)
    assert not witness.exists()


def test_the_order_of_the_file_is_kept_where_it_can_be(tmp_path: Path) -> None:
    graph = read(tmp_path, "g.stg", "4\n0 1 1 3\n1 1 0\n2 1 1 0\n3 1 0\n").graph
    assert [op.name for op in graph.ops] == ["task1", "task3", "task0", "task2"]
