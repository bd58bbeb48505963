"""Edge lists of randomly wired networks (IOS): the number of nodes, of edges, then the edges.

The files have neither times nor sizes. Every value takes one byte, so that a peak counts values;
times are left to the devices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.errors import ModelError
from regal.frontends.task_graphs.fields import integer_in, text_of
from regal.frontends.task_graphs.tasks import TaskGraph

if TYPE_CHECKING:
    from regal.graph.types import LoadedModel

MOST_NODES = 1_000_000


def parse(data: bytes, name: str) -> LoadedModel:
    """Return the graph: nodes without predecessors read its input.

    Raises:
        ModelError: names the line.
    """
    lines = [
        (number, line.split()) for number, line in enumerate(text_of(data, name).splitlines(), 1)
    ]
    rows = [(number, words) for number, words in lines if words]
    numbers = [
        [integer_in(word, f"'{name}': line {number}") for word in words] for number, words in rows
    ]
    if len(numbers) < 2 or len(numbers[0]) != 1 or len(numbers[1]) != 1:
        raise ModelError(f"'{name}' does not begin with the numbers of its nodes and edges")
    (nodes,), (edges,) = numbers[:2]
    if nodes > MOST_NODES:
        raise ModelError(f"'{name}' announces {nodes} nodes; at most {MOST_NODES} can be read")
    if len(numbers) - 2 != edges:
        raise ModelError(f"'{name}' announces {edges} edges but lists {len(numbers) - 2}")
    graph = TaskGraph(name.removesuffix(".txt"))
    values = []
    for node in range(nodes):
        task = graph.task(f"node{node}", "node")
        values.append(graph.value(task, 1, name=f"node{node}.out"))
    has_input = [True] * nodes
    for (number, _), pair in zip(rows[2:], numbers[2:], strict=True):
        if len(pair) != 2 or max(pair) >= nodes:
            raise ModelError(
                f"'{name}': line {number} is not an edge between two of the nodes 0 to {nodes - 1}"
            )
        graph.read(pair[1], values[pair[0]])
        has_input[pair[1]] = False
    source = graph.input("input", 1)
    for node in range(nodes):
        if has_input[node]:
            graph.read(node, source)
    return graph.model()
