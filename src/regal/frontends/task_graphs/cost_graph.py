"""CostGraphDef (TensorFlow) in protobuf text form: the form of REGAL's synthetic graphs.

A node has an id, `compute_cost` in microseconds, outputs with sizes in bytes, inputs (an output
of another node each), and control inputs. An output with `alias_input_port` of 0 or more lies in
the memory of that input; -1 says that it has its own. `temporary_memory_size` is workspace,
`persistent_memory_size` stays on the device. The files describe no devices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.errors import ModelError
from regal.frontends.task_graphs.fields import MOST_BYTES, ns_of, text_of
from regal.frontends.task_graphs.protos import Fields, message_class, text_message
from regal.frontends.task_graphs.tasks import TaskGraph

if TYPE_CHECKING:
    from typing import Any

    from regal.graph.types import LoadedModel

NS_PER_US = 1000

# tensorflow/core/framework/cost_graph.proto; what is not read is left out.
SCHEMA: dict[str, Fields] = {
    "InputInfo": {"preceding_node": (1, "int32"), "preceding_port": (2, "int32")},
    "OutputInfo": {"size": (1, "int64"), "alias_input_port": (2, "int64")},
    "Node": {
        "name": (1, "string"),
        "id": (3, "int32"),
        "input_info": (4, "repeated InputInfo"),
        "output_info": (5, "repeated OutputInfo"),
        "temporary_memory_size": (6, "int64"),
        "is_final": (7, "bool"),
        "control_input": (8, "repeated int32"),
        "compute_cost": (9, "int64"),
        "persistent_memory_size": (12, "int64"),
    },
    "CostGraphDef": {"node": (1, "repeated Node")},
}


def parse(data: bytes, name: str) -> LoadedModel:
    """Return the graph of a text file.

    Raises:
        ModelError: not a CostGraphDef, or a broken one: names the line or node.
    """
    schema = message_class("regal_cost_graph", SCHEMA, "CostGraphDef")
    document = text_message(schema, text_of(data, name), name)
    graph = TaskGraph(name.split(".")[0])
    nodes = list(document.node)
    tasks: dict[int, int] = {}
    for node in nodes:
        where = f"'{name}': node '{node.name}'"
        if node.id in tasks:
            other = graph.name_of(tasks[node.id])
            raise ModelError(f"{where} has id {node.id}, as node '{other}' has; ids are unique")
        tasks[node.id] = graph.task(
            node.name or f"node{node.id}",
            "node",
            times_ns={"": ns_of(_size(node, "compute_cost", where), NS_PER_US, f"{where}: cost")},
            workspace_bytes=_size(node, "temporary_memory_size", where),
            parameter_bytes=_size(node, "persistent_memory_size", where),
        )
    values = _Values(graph, {node.id: node for node in nodes}, tasks, name)
    for node in nodes:
        _connect(graph, node, values, tasks, f"'{name}': node '{node.name}'")
    return graph.model()


def _connect(
    graph: TaskGraph, node: Any, values: _Values, tasks: dict[int, int], where: str
) -> None:
    for port in range(len(node.output_info)):
        value = values.of(node.id, port, where)
        if node.is_final:
            graph.keep(value)
    for info in node.input_info:
        graph.read(tasks[node.id], values.of(info.preceding_node, info.preceding_port, where))
    for earlier in node.control_input:
        if earlier not in tasks:
            raise ModelError(f"{where} waits for node {earlier}, which does not exist")
        graph.wait(tasks[node.id], tasks[earlier])


class _Values:
    """The outputs of nodes as values of the graph, made when they are first asked for."""

    def __init__(
        self, graph: TaskGraph, nodes: dict[int, Any], tasks: dict[int, int], name: str
    ) -> None:
        self._graph = graph
        self._nodes = nodes
        self._tasks = tasks
        self._name = name
        self._made: dict[tuple[int, int], int] = {}

    def of(self, node: int, port: int, where: str) -> int:
        """Return output `port` of `node`; aliases first get what they are aliases of."""
        chain: list[tuple[int, int]] = []
        at: tuple[int, int] | None = (node, port)
        while at is not None and at not in self._made:
            if at in chain:
                raise ModelError(f"{where}: output {at[1]} of node {at[0]} is an alias of itself")
            chain.append(at)
            at = self._aliased(at, where)
        memory = None if at is None else self._made[at]
        for end in reversed(chain):
            info = self._nodes[end[0]].output_info[end[1]]
            memory = self._made[end] = self._graph.value(
                self._tasks[end[0]],
                _size(info, "size", f"'{self._name}': output {end[1]} of node {end[0]}"),
                same_memory_as=memory,
            )
        return self._made[node, port]

    def _aliased(self, end: tuple[int, int], where: str) -> tuple[int, int] | None:
        node, port = end
        if node not in self._nodes:
            raise ModelError(f"{where} reads node {node}, which does not exist")
        found = self._nodes[node]
        if not 0 <= port < len(found.output_info):
            raise ModelError(
                f"{where} reads output {port} of node '{found.name}', which has"
                f" {len(found.output_info)} outputs"
            )
        # Unset is 0, as always in protobuf: an alias of input 0, if there is one.
        alias = found.output_info[port].alias_input_port
        if not 0 <= alias < len(found.input_info):
            return None
        info = found.input_info[alias]
        return info.preceding_node, info.preceding_port


def _size(message: Any, field: str, where: str) -> int:
    value = int(getattr(message, field))
    if not 0 <= value < MOST_BYTES:
        raise ModelError(f"{where}: '{field}' is {value}, expected 0 to 2^60")
    return value
