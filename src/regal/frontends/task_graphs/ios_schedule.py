"""Networks inside the schedules of IOS (MLSys 2021): convolutions and pools in blocks.

One JSON object: an `input` and `blocks` of nodes, each with the shape of its output (channels,
height, width; one image) and its inputs. The schedule in the file (`stages`) is not read: it is
what this project makes. Elements are float32.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from regal.errors import ModelError
from regal.frontends.task_graphs.fields import (
    MOST_BYTES,
    json_of,
    name_of,
    object_of,
    rows_of,
)
from regal.frontends.task_graphs.tasks import TaskGraph

if TYPE_CHECKING:
    from typing import Any

    from regal.graph.types import LoadedModel

ELEMENT_BYTES = 4


def parse(data: bytes, name: str) -> LoadedModel:
    """Return the network.

    Raises:
        ModelError: names the node.
    """
    document = json_of(data, name)
    graph = TaskGraph(name.removesuffix(".json"))
    source = object_of(document["input"], f"'{name}': 'input'")
    shapes = {name_of(source, "name", f"'{name}': 'input'"): _shape(source, f"'{name}': 'input'")}
    nodes: dict[str, dict[str, Any]] = {}
    for i, row in enumerate(rows_of(document, "blocks", f"'{name}'")):
        where = f"'{name}': block {i}"
        block = object_of(row, where)
        for item in [*rows_of(block, "inner_nodes", where), block.get("exit_node")]:
            parts = _parts(object_of(item, f"{where}: a node"), where)
            for label, node in parts:
                if label in nodes or label in shapes:
                    raise ModelError(f"{where}: two nodes are named '{label}'; names are unique")
                nodes[label] = node
    values = {label: graph.input(label, _bytes(shape)) for label, shape in shapes.items()}
    shapes |= {label: _shape(node, f"'{name}': node '{label}'") for label, node in nodes.items()}
    tasks = {}
    for label, node in nodes.items():
        where = f"'{name}': node '{label}'"
        kind = name_of(node, "type", where)
        channels = _channels_read(node, where)
        task = graph.task(
            label,
            kind,
            flops=_flops(node, kind, channels, shapes[label], where),
            parameter_bytes=_parameter_bytes(node, kind, channels, shapes[label], where),
        )
        tasks[label] = task
        values[label] = graph.value(
            task, _bytes(shapes[label]), shape=(1, *shapes[label]), dtype="float32"
        )
    for label, node in nodes.items():
        for read in _names_read(node, f"'{name}': node '{label}'"):
            if read not in values:
                raise ModelError(f"'{name}': node '{label}' reads '{read}', which does not exist")
            graph.read(tasks[label], values[read])
    return graph.model()


def _parts(node: dict[str, Any], where: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the nodes that a node stands for: the last part of a sequence has its name."""
    label = name_of(node, "name", f"{where}: a node")
    if node.get("type") != "sequential":
        return [(label, node)]
    where = f"{where}: node '{label}'"
    parts = [object_of(part, f"{where}: a part") for part in rows_of(node, "nodes", where)]
    if not parts:
        raise ModelError(f"{where} is a sequence of no nodes")
    names = [name_of(part, "name", f"{where}: a part") for part in parts[:-1]]
    return list(zip([*names, label], parts, strict=True))


def _bytes(shape: tuple[int, ...]) -> int:
    return prod(shape) * ELEMENT_BYTES


def _shape(node: dict[str, Any], where: str) -> tuple[int, ...]:
    shape = _sizes(node, "output_shape", where)
    if len(shape) != 3 or _bytes(shape) >= MOST_BYTES:
        raise ModelError(f"{where}: 'output_shape' is {list(shape)}, expected three dimensions")
    return shape


def _sizes(node: dict[str, Any], key: str, where: str) -> tuple[int, ...]:
    sizes = rows_of(node, key, where)
    if not all(type(size) is int and 0 < size < 1 << 31 for size in sizes):
        raise ModelError(f"{where}: '{key}' is {sizes}, expected positive integers")
    return tuple(sizes)


def _values_read(node: dict[str, Any], where: str) -> list[tuple[list[Any], ...]]:
    """Return the terms that a node reads: values [node, first channel, end]; a term adds them."""
    terms = []
    for term in rows_of(node, "inputs", where):
        if not isinstance(term, list) or not all(_is_value(value) for value in term):
            raise ModelError(f"{where}: 'inputs' holds {term}, expected [node, begin, end] lists")
        terms.append(tuple(term))
    return terms


def _is_value(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 3
        and isinstance(value[0], str)
        and type(value[1]) is int
        and type(value[2]) is int
        and 0 <= value[1] < value[2] < 1 << 31
    )


def _names_read(node: dict[str, Any], where: str) -> list[str]:
    return [value[0] for term in _values_read(node, where) for value in term]


def _channels_read(node: dict[str, Any], where: str) -> int:
    """Return the channels of what a node reads: terms are concatenated."""
    return sum(term[0][2] - term[0][1] for term in _values_read(node, where) if term)


def _kernel(node: dict[str, Any], where: str) -> tuple[int, int]:
    """Return elements per window, and groups."""
    groups = node.get("groups", 1)
    if type(groups) is not int or groups < 1:
        raise ModelError(f"{where}: 'groups' is {groups!r}, expected a positive integer")
    return prod(_sizes(node, "kernel", where)), groups


def _flops(
    node: dict[str, Any], kind: str, channels: int, shape: tuple[int, ...], where: str
) -> int:
    """Return two per multiplication and addition of a convolution, one per element of a window."""
    if kind == "conv":
        window, groups = _kernel(node, where)
        return min(2 * prod(shape) * window * channels // groups, MOST_BYTES)
    if kind == "pool":
        return min(prod(shape) * _kernel(node, where)[0], MOST_BYTES)
    return prod(shape)


def _parameter_bytes(
    node: dict[str, Any], kind: str, channels: int, shape: tuple[int, ...], where: str
) -> int:
    """Return the weights and biases of a convolution."""
    if kind != "conv":
        return 0
    window, groups = _kernel(node, where)
    return (shape[0] * (channels // groups) * window + shape[0]) * ELEMENT_BYTES
