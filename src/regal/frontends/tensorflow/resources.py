"""Variables, queues, iterators and the like: which nodes touch which, and how."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from regal.frontends.tensorflow.kinds import IDENTITIES, MERGE, READS, SWITCH, WHILES
from regal.frontends.tensorflow.ops import FLOAT, RESOURCE
from regal.frontends.tensorflow.roles import is_source
from regal.frontends.tensorflow.schema import REF
from regal.frontends.tensorflow.values import Shape, full, shape_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from regal.frontends.tensorflow.flat import Edge, Flat, Node

VARIABLES = frozenset({"VarHandleOp", "Variable", "VariableV2", "TemporaryVariable"})


@dataclass(frozen=True, slots=True)
class Resource:
    """Something that nodes share. A variable has a type, and a shape where the file says it."""

    name: str
    dtype: int = FLOAT
    shape: Shape | None = None
    is_variable: bool = False


@dataclass(slots=True)
class Resources:
    """What the nodes of one graph share.

    `of` maps a handle, or a value that lies in a variable of TensorFlow 1, to a number; handles
    of one resource have one number. `accesses` says per node what it does with them.
    """

    of: dict[Edge, int] = field(default_factory=dict)
    known: list[Resource] = field(default_factory=list)
    accesses: dict[int, list[tuple[int, bool]]] = field(default_factory=dict)  # (resource, writes)
    aliases: set[Edge] = field(default_factory=set)  # plain values that lie in a variable
    _same_as: list[int] = field(default_factory=list)

    def add(self, resource: Resource) -> int:
        """Return the number of a new resource."""
        self.known.append(resource)
        self._same_as.append(len(self._same_as))
        return len(self.known) - 1

    def find(self, number: int) -> int:
        """Return the number that stands for all that turned out to be one resource."""
        while self._same_as[number] != number:
            self._same_as[number] = self._same_as[self._same_as[number]]
            number = self._same_as[number]
        return number

    def join(self, a: int, b: int) -> int:
        """Note that two resources may be one, and return its number."""
        a, b = sorted((self.find(a), self.find(b)))
        self._same_as[b] = a
        return a

    def at(self, edge: Edge) -> int | None:
        """Return the resource behind a result, or None."""
        number = self.of.get(edge)
        return None if number is None else self.find(number)


def find_resources(
    flat: Flat, order: Sequence[int], given: Mapping[int, Resource] | None = None
) -> Resources:
    """Return the resources of `flat`.

    Args:
        flat: the graph.
        order: its nodes, producers first, but for the ends of loops.
        given: arguments -> what they stand for outside.
    """
    resources = Resources()
    named: dict[tuple[str, str], int] = {}
    for position in order:
        node = flat.nodes[position]
        if given is not None and position in given:
            resources.of[position, 0] = resources.add(given[position])
            continue
        if is_source(node):
            for k in range(len(node.results)):
                resources.of[position, k] = _number_of_source(resources, named, node)
            continue
        _pass_on(resources, position, node)
    for position in order:
        if flat.nodes[position].kind in MERGE:
            # What comes round a loop was not known when its Merge was looked at.
            _pass_on(resources, position, flat.nodes[position])
    for position in order:
        _note_accesses(resources, flat, position)
    return resources


def _number_of_source(resources: Resources, named: dict[tuple[str, str], int], node: Node) -> int:
    attributes = node.proto.attr
    shared = (
        attributes["shared_name"].s.decode(errors="replace") if "shared_name" in attributes else ""
    )
    key = (node.kind, shared or f"^{node.name}")
    if key not in named:
        resource = Resource(shared or node.name)
        if node.kind in VARIABLES:
            shape = shape_of(attributes["shape"].shape) if "shape" in attributes else None
            resource = Resource(node.name, attributes["dtype"].type, full(shape), True)
        named[key] = resources.add(resource)
    return named[key]


def _pass_on(resources: Resources, position: int, node: Node) -> None:
    """Find out what the handles that a node yields stand for."""
    incoming = [resources.of.get(edge) for edge in node.inputs]
    if node.kind in IDENTITIES or node.kind in SWITCH or node.kind in MERGE:
        for k, dtype in enumerate(node.results):
            if node.kind == "IdentityN":
                sources = incoming[k : k + 1]
            else:
                sources = incoming if node.kind in MERGE else incoming[:1]
            numbers = [number for number in sources if number is not None]
            if not numbers or (node.kind in MERGE and k > 0):
                continue
            joint = numbers[0]
            for other in numbers[1:]:
                joint = resources.join(joint, other)
            resources.of[position, k] = joint
            if dtype != RESOURCE and dtype < REF:
                resources.aliases.add((position, k))
        return
    for k, dtype in enumerate(node.results):
        if dtype > REF:
            # An assignment hands on the variable that it was given.
            number = next((n for n in incoming if n is not None), None)
            if number is None:
                number = resources.add(_made_by(node))
            resources.of[position, k] = number
        elif dtype == RESOURCE and (position, k) not in resources.of:
            # A loop hands back the handles that it was given.
            number = incoming[k] if node.kind in WHILES else None
            if number is None:
                number = resources.add(Resource(node.name))
            resources.of[position, k] = number


def _made_by(node: Node) -> Resource:
    if node.kind in VARIABLES and "shape" in node.proto.attr:
        shape = full(shape_of(node.proto.attr["shape"].shape))
        return Resource(node.name, node.proto.attr["dtype"].type, shape, True)
    return Resource(node.name)


def _note_accesses(resources: Resources, flat: Flat, position: int) -> None:
    node = flat.nodes[position]
    hands_on = node.kind in IDENTITIES or node.kind in SWITCH or node.kind in MERGE
    for k, edge in enumerate(node.inputs):
        number = resources.at(edge)
        if number is None:
            continue
        is_handle = flat.nodes[edge[0]].results[edge[1]] == RESOURCE
        takes_reference = k < len(node.operands) and node.operands[k] > REF
        if hands_on:
            # Taking the value of a variable of TensorFlow 1 reads it.
            if is_handle or all(dtype > REF for dtype in node.results):
                continue
            writes = False
        elif is_handle or takes_reference:
            writes = node.kind not in READS
        else:
            writes = False
        note_access(resources, position, number, writes=writes)


def note_access(resources: Resources, position: int, number: int, *, writes: bool) -> None:
    """Note that a node reads or writes a resource."""
    accesses = resources.accesses.setdefault(position, [])
    if (number, False) in accesses and writes:
        accesses.remove((number, False))
    if (number, True) not in accesses and (number, writes) not in accesses:
        accesses.append((number, writes))
