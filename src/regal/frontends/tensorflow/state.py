"""What must stay together and in order because of shared state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.frontends.tensorflow.classes import colocated_with
from regal.frontends.tensorflow.kinds import ORDER_INSENSITIVE
from regal.frontends.tensorflow.ops import RESOURCE
from regal.frontends.tensorflow.roles import is_no_op
from regal.frontends.tensorflow.schema import REF

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from regal.frontends.tensorflow.flat import Edge, Flat, Library
    from regal.frontends.tensorflow.frames import Unit
    from regal.frontends.tensorflow.sizes import Sized


def state_order(
    graph: Sized, units: Sequence[Unit], library: Library, effects: Iterable[int]
) -> set[tuple[int, int]]:
    """Return (earlier unit, later unit) edges that keep state right.

    Per resource, whatever may write to it runs after everything that touched it before, and
    whatever reads it after the last that wrote; "before" is the order of `units`. Operators
    with side effects elsewhere run in that order, too.

    Args:
        graph: the nodes and what they access.
        units: what is scheduled, in an order that can run.
        library: which operators have state.
        effects: nodes that run functions with side effects.
    """
    edges: set[tuple[int, int]] = set()
    written: dict[int, int] = {}
    read: dict[int, set[int]] = {}
    last_effect = None
    has_effects = set(effects)
    for i, unit in enumerate(units):
        touched: dict[int, bool] = {}
        for position in unit.nodes:
            for number, writes in graph.resources.accesses.get(position, ()):
                found = graph.resources.find(number)
                touched[found] = touched.get(found, False) or writes
        for number, writes in touched.items():
            if number in written:
                edges.add((written[number], i))
            if writes:
                edges |= {(j, i) for j in read.pop(number, ())}
                written[number] = i
            else:
                read.setdefault(number, set()).add(i)
        if any(n in has_effects or is_effect(graph.flat, n, library) for n in unit.nodes):
            if last_effect is not None:
                edges.add((last_effect, i))
            last_effect = i
    return {(a, b) for a, b in edges if a != b}


def is_effect(flat: Flat, position: int, library: Library) -> bool:
    """Return whether a node has a side effect that is tied to no resource."""
    node = flat.nodes[position]
    if not library.ops.is_stateful(node.kind) or node.kind in ORDER_INSENSITIVE:
        return False
    if is_no_op(node):  # arguments count as stateful, so that nothing folds them
        return False
    return not any(True for _ in handles_of(flat, position))


def handles_of(flat: Flat, position: int) -> Iterator[Edge]:
    """Yield the handles that a node takes or makes.

    Taking the value of a variable of TensorFlow 1 is no such thing: it may be sent.
    """
    node = flat.nodes[position]
    for i, (producer, k) in enumerate(node.inputs):
        dtype = flat.nodes[producer].results[k]
        is_reference = dtype > REF and i < len(node.operands) and node.operands[i] > REF
        if dtype == RESOURCE or is_reference:
            yield producer, k
    for k, dtype in enumerate(node.results):
        if dtype == RESOURCE or dtype > REF:
            yield position, k


def colocation_groups(
    graph: Sized, units: Sequence[Unit], op_of_unit: Mapping[int, int]
) -> dict[int, str]:
    """Return op -> name of its group, for ops that must run on one device.

    The file asks for it (`_class`), or they take or make handles of one resource.

    Args:
        graph: the nodes.
        units: what is scheduled.
        op_of_unit: units that are ops -> their op.
    """
    parent: dict[str, str] = {}

    def find(name: str) -> str:
        root = name
        while parent.setdefault(root, root) != root:
            root = parent[root]
        while parent[name] != root:
            parent[name], name = root, parent[name]
        return root

    def join(a: str, b: str) -> None:
        parent[find(a)] = find(b)

    for i, unit in enumerate(units):
        for position in unit.nodes:
            node = graph.flat.nodes[position]
            join(f"unit {i}", f"node {node.name}")
            for name in colocated_with(node.proto):
                join(f"unit {i}", f"node {name}")
            for edge in handles_of(graph.flat, position):
                number = graph.resources.at(edge)
                if number is not None:
                    join(f"unit {i}", f"resource {number}")
    members: dict[str, list[int]] = {}
    for i in op_of_unit:
        members.setdefault(find(f"unit {i}"), []).append(i)
    groups: dict[int, str] = {}
    for group in members.values():
        if len(group) > 1:
            name = graph.flat.nodes[units[group[0]].nodes[0]].name
            groups |= {op_of_unit[i]: name for i in group}
    return groups
