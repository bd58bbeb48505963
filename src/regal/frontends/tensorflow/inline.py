"""Put the bodies of functions in place of their calls, as TensorFlow does before it runs them.

Source of the rules: tensorflow/core/common_runtime/inline_function_utils.cc of TensorFlow 2.21.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from regal.errors import ModelError
from regal.frontends.tensorflow.classes import colocated_with, set_colocated
from regal.frontends.tensorflow.flat import Edge, Flat, Library, Node
from regal.frontends.tensorflow.functions import CALLS, body_of, called
from regal.frontends.tensorflow.schema import Proto, new

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# Functions with these attributes stay what they are: one kernel, or not to be looked into.
_CLOSED = ("_noinline", "_XlaMustCompile")
MOST_INLINED = 1_000_000  # nodes


def inlined(flat: Flat, library: Library, sites: Mapping[str, int]) -> Flat:
    """Return `flat` with the bodies of functions in place of their calls.

    Only functions that are called at one place in the whole entry are inlined: then a node of
    the function is one op, and can be placed by itself. Calls are not strict: a node of the
    body runs as soon as its own inputs are there and what the call waits for is done.

    Args:
        flat: a graph or the body of a function.
        library: the functions.
        sites: function -> places that call it (`call_sites`).

    Raises:
        ModelError: a function is broken, or hands its results round in a circle.
    """
    while True:
        calls = [i for i, node in enumerate(flat.nodes) if _is_open(node, library, sites)]
        if not calls:
            return flat
        flat = _with_bodies(flat, calls, library)


def _is_open(node: Node, library: Library, sites: Mapping[str, int]) -> bool:
    if node.kind not in CALLS and node.kind not in library.functions:
        return False
    names = [name for name, _ in called(node, library)]
    if len(names) != 1 or sites.get(names[0]) != 1:
        return False
    attributes = (node.proto.attr, library.functions[names[0]].attr)
    return not any(key in a and a[key].b for a in attributes for key in _CLOSED)


OUTER = -1
Scoped = tuple[int, int]  # (call whose body it is, or OUTER; node there)


@dataclass(slots=True)
class _Joint:
    """The outer graph and the bodies of its calls, while they become one graph."""

    outer: Flat
    bodies: dict[int, Flat] = field(default_factory=dict)  # call -> body
    number: dict[Scoped, int] = field(default_factory=dict)  # node -> where it will stand
    ends: dict[int, list[int]] = field(default_factory=dict)  # call -> last nodes of its body

    def edge(self, scope: int, edge: Edge) -> Edge:
        """Return where a value comes from in the joint graph."""
        node, result = edge
        for _ in range(2 * len(self.outer.nodes) + 2):
            if scope == OUTER:
                if node not in self.bodies:
                    return self.number[OUTER, node], result
                scope, (node, result) = node, self.bodies[node].returns[result]
            elif node < len(self.bodies[scope].arguments):
                node, result = self.outer.nodes[scope].inputs[node]
                scope = OUTER
            else:
                return self.number[scope, node], result
        raise ModelError(f"'{self.outer.name}': functions hand a value round in a circle")

    def waits(self, scope: int, earlier: Iterable[int]) -> list[int]:
        """Return the nodes of the joint graph that are done when `earlier` are done."""
        found: dict[int, None] = {}
        seen: set[Scoped] = set()
        stack = [(scope, i) for i in reversed(list(earlier))]
        while stack:
            where, node = place = stack.pop()
            if place in seen:
                continue
            seen.add(place)
            if where == OUTER and node in self.bodies:
                call = self.outer.nodes[node]
                # An empty body is done as soon as its call could begin.
                inner = [(node, i) for i in self.ends[node]] or [
                    (OUTER, i) for i in (*call.controls, *(i for i, _ in call.inputs))
                ]
                stack += reversed(inner)
            elif where != OUTER and node < len(self.bodies[where].arguments):
                stack.append((OUTER, self.outer.nodes[where].inputs[node][0]))
            else:
                found[self.number[place]] = None
        return list(found)


def _with_bodies(flat: Flat, calls: Sequence[int], library: Library) -> Flat:
    """Replace the nodes `calls` by their bodies; calls in the bodies stay."""
    joint = _Joint(flat)
    for call in calls:
        node = flat.nodes[call]
        ((name, attributes),) = called(node, library)
        body = body_of(name, attributes, library)
        if len(body.arguments) != len(node.inputs) or len(body.returns) != len(node.results):
            raise ModelError(
                f"node '{node.name}' calls '{name}' with {len(node.inputs)} values for"
                f" {len(node.results)}; it takes {len(body.arguments)} for {len(body.returns)}"
            )
        joint.bodies[call] = body
        joint.ends[call] = _ends(body)
    places = list(_places(joint))
    if len(places) > MOST_INLINED:
        raise ModelError(f"'{flat.name}' has more than {MOST_INLINED} nodes with its functions")
    joint.number = {place: i for i, place in enumerate(places)}
    out = Flat(name=flat.name, nodes=_renamed([_moved(joint, *place) for place in places]))
    out.arguments = [joint.number[OUTER, i] for i in flat.arguments]
    out.returns = [joint.edge(OUTER, edge) for edge in flat.returns]
    out.control_returns = joint.waits(OUTER, flat.control_returns)
    return out


def _places(joint: _Joint) -> Iterable[Scoped]:
    """Yield the nodes of the joint graph in order: a body stands where its call stood."""
    for position in range(len(joint.outer.nodes)):
        body = joint.bodies.get(position)
        if body is None:
            yield OUTER, position
        else:
            yield from ((position, i) for i in range(len(body.arguments), len(body.nodes)))


def _moved(joint: _Joint, scope: int, position: int) -> Node:
    """Return a node with the edges that it has in the joint graph."""
    if scope == OUTER:
        node = joint.outer.nodes[position]
        return replace(
            node,
            inputs=[joint.edge(OUTER, edge) for edge in node.inputs],
            controls=joint.waits(OUTER, node.controls),
        )
    call, body = joint.outer.nodes[scope], joint.bodies[scope]
    node = body.nodes[position]
    controls = joint.waits(scope, node.controls)
    if not controls and all(i < len(body.arguments) for i, _ in node.inputs):
        controls = joint.waits(OUTER, call.controls)  # the body begins when the call may
    return replace(
        node,
        name=f"{call.name}/{node.name}",
        proto=_with_outer_classes(joint, scope, node),
        inputs=[joint.edge(scope, edge) for edge in node.inputs],
        controls=controls,
    )


def _with_outer_classes(joint: _Joint, scope: int, node: Node) -> Proto:
    """Return a node of a body that asks to be beside nodes by the names they have outside."""
    wanted = colocated_with(node.proto)
    if not wanted:
        return node.proto
    call, body = joint.outer.nodes[scope], joint.bodies[scope]
    given = {
        body.nodes[argument].name: joint.outer.nodes[call.inputs[i][0]].name
        for i, argument in enumerate(body.arguments)
    }
    inside = {inner.name for inner in body.nodes[len(body.arguments) :]}
    proto = new("NodeDef")
    proto.CopyFrom(node.proto)
    names = [f"{call.name}/{name}" if name in inside else given.get(name) for name in wanted]
    set_colocated(proto, [name for name in names if name is not None])
    return proto


def _ends(body: Flat) -> list[int]:
    """Return the nodes of a body after which all of it is done."""
    used = {i for node in body.nodes for i, _ in node.inputs}
    used |= {i for node in body.nodes for i in node.controls}
    return [i for i in range(len(body.arguments), len(body.nodes)) if i not in used]


def _renamed(nodes: Sequence[Node]) -> list[Node]:
    """Return `nodes` with names that differ."""
    seen: set[str] = set()
    fresh = []
    for node in nodes:
        name = node.name
        number = 0
        while name in seen:
            number += 1
            name = f"{node.name}_{number}"
        seen.add(name)
        fresh.append(node if name == node.name else replace(node, name=name))
    return fresh
