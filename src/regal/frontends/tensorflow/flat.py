"""A graph of nodes with numbered edges: what the stages of this frontend work on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from regal.errors import ModelError
from regal.frontends.tensorflow.ops import FLOAT, MOST_RESULTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from regal.frontends.tensorflow.ops import OpTable
    from regal.frontends.tensorflow.schema import Proto

Edge = tuple[int, int]  # (node, which of its results)


@dataclass(slots=True)
class Node:
    """One node. `inputs` are its data inputs; `controls` nodes that must run earlier.

    `results` and `operands` are data types. `home` is the function that the node comes from
    and its name there; ("", name) in the main graph.
    """

    name: str
    kind: str  # the operator
    proto: Proto  # its NodeDef, whose name and inputs are no longer looked at
    inputs: list[Edge]
    controls: list[int]
    results: tuple[int, ...]
    operands: tuple[int, ...]
    home: tuple[str, str]


@dataclass(slots=True)
class Flat:
    """Nodes in the order of the file, and what is taken from them.

    `returns` and `arguments` are those of a function; a main graph has none.
    """

    name: str
    nodes: list[Node]
    arguments: list[int] = field(default_factory=list)
    returns: list[Edge] = field(default_factory=list)
    control_returns: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Library:
    """What nodes may name: operators, and functions of the file. Unknown ones are opaque."""

    ops: OpTable
    functions: Mapping[str, Proto]
    producer: int  # version of TensorFlow's graph format that wrote the file


def flat_graph(name: str, protos: Sequence[Proto], library: Library) -> Flat:
    """Return the main graph made of the NodeDefs `protos`.

    Raises:
        ModelError: a name is given twice or never, or an input does not exist.
    """
    index: dict[str, int] = {}
    for position, proto in enumerate(protos):
        if not proto.name or not proto.op:
            raise ModelError(f"node {position} of '{name}' has no name or no operator")
        if proto.name in index:
            raise ModelError(
                f"nodes {index[proto.name]} and {position} are both named '{proto.name}'"
            )
        index[proto.name] = position
    nodes = []
    for proto in protos:
        inputs, controls = [], []
        for text in proto.input:
            is_control, producer, result = _parse(text)
            if producer not in index:
                raise ModelError(
                    f"node '{proto.name}' ({proto.op}) reads '{text}', which is not in the graph"
                )
            if is_control:
                controls.append(index[producer])
            else:
                inputs.append((index[producer], result))
        nodes.append(new_node(proto, inputs, controls, library, ("", proto.name)))
    flat = Flat(name=name, nodes=nodes)
    _complete_opaque(flat, library)
    require_results(flat)
    return flat


def new_node(
    proto: Proto, inputs: list[Edge], controls: list[int], library: Library, home: tuple[str, str]
) -> Node:
    """Return a node with its types.

    Raises:
        ModelError: an attribute is missing.
    """
    results: tuple[int, ...] = ()
    operands: tuple[int, ...] = ()
    signature = library.functions.get(proto.op)
    if signature is not None:
        results = types_of_arguments(proto, signature.signature.output_arg, library)
        operands = types_of_arguments(proto, signature.signature.input_arg, library)
    elif proto.op in library.ops.defs:
        library.ops.require_attributes(proto)
        results = library.ops.results(proto)
        operands = library.ops.operands(proto)
        if len(operands) != len(inputs):
            raise ModelError(
                f"node '{proto.name}' ({proto.op}) has {len(inputs)} inputs;"
                f" its attributes say {len(operands)}"
            )
    return Node(proto.name, proto.op, proto, inputs, controls, results, operands, home)


def types_of_arguments(
    node: Proto, arguments: Iterable[Proto], library: Library
) -> tuple[int, ...]:
    """Return the types of the arguments of a function that `node` calls with its attributes."""
    return tuple(t for argument in arguments for t in library.ops.types_of(node, argument))


def is_opaque(node: Node, library: Library) -> bool:
    """Return whether nobody knows the operator of `node`."""
    return node.kind not in library.ops.defs and node.kind not in library.functions


def _complete_opaque(flat: Flat, library: Library) -> None:
    """Give nodes of unknown operators as many results as others read."""
    wanted: dict[int, int] = {}
    for node in flat.nodes:
        for producer, result in node.inputs:
            wanted[producer] = max(wanted.get(producer, 0), result + 1)
    for position, node in enumerate(flat.nodes):
        if is_opaque(node, library):
            attributes = node.proto.attr
            dtype = next((attributes[a].type for a in ("T", "dtype") if a in attributes), FLOAT)
            listed = (
                len(attributes["_output_shapes"].list.shape)
                if "_output_shapes" in attributes
                else 0
            )
            count = max(wanted.get(position, 0), listed)
            node.results = (dtype or FLOAT,) * min(count, MOST_RESULTS)
            node.operands = tuple(FLOAT for _ in node.inputs)


def require_results(flat: Flat) -> None:
    """Raise unless every edge starts at a result that its node has.

    Raises:
        ModelError: names reader and producer.
    """
    for node in flat.nodes:
        for producer, result in node.inputs:
            source = flat.nodes[producer]
            if result >= len(source.results):
                raise ModelError(
                    f"node '{node.name}' ({node.kind}) reads result {result} of '{source.name}'"
                    f" ({source.kind}), which has {len(source.results)}"
                )


def kept(flat: Flat, keep: set[int]) -> Flat:
    """Return `flat` with the nodes `keep` alone; they need no others."""
    if len(keep) == len(flat.nodes):
        return flat
    order = sorted(keep)
    number = {old: new for new, old in enumerate(order)}
    nodes = []
    for old in order:
        node = flat.nodes[old]
        inputs = [(number[producer], result) for producer, result in node.inputs]
        controls = [number[earlier] for earlier in node.controls]
        nodes.append(replace(node, inputs=inputs, controls=controls))
    return Flat(
        name=flat.name,
        nodes=nodes,
        arguments=[number[i] for i in flat.arguments if i in number],
        returns=[(number[i], k) for i, k in flat.returns],
        control_returns=[number[i] for i in flat.control_returns],
    )


def needed_by(flat: Flat, targets: Iterable[int]) -> set[int]:
    """Return the nodes that `targets` need, themselves included."""
    needed: set[int] = set()
    stack = list(targets)
    while stack:
        position = stack.pop()
        if position not in needed:
            needed.add(position)
            node = flat.nodes[position]
            stack += [producer for producer, _ in node.inputs]
            stack += node.controls
    return needed


def edge_name(flat: Flat, edge: Edge) -> str:
    """Return TensorFlow's name of a tensor: "node:0"."""
    return f"{flat.nodes[edge[0]].name}:{edge[1]}"


def _parse(text: str) -> tuple[bool, str, int]:
    """Return (is control, node, result) of an input such as "^a", "a" or "a:1"."""
    if text.startswith("^"):
        return True, text[1:], 0
    name, colon, number = text.rpartition(":")
    if colon and number.isascii() and number.isdecimal() and len(number) < 10:
        return False, name, int(number)
    return False, text, 0
