"""Which ops of a plan lie in which body: the main graph, or a function that it calls once.

The frontend puts the bodies of functions in place of their calls, so that their ops are planned
one by one. The file keeps them as functions: an order can be written inside each body, and for
a body as a whole where it is called.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regal.backends.tensorflow.chain import Unit
from regal.backends.tensorflow.nodes import Nodes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAIN = ""  # the name of the main graph among bodies
Home = tuple[str, str]  # (body, node)
_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})


@dataclass(frozen=True, slots=True)
class Planned:
    """The ops of one entry: the nodes that each stands for, its device, and its position.

    Nodes that are not in the step have a device, but no place in the order: of a loop some
    results may not be asked for, and whoever waited for them would need what makes them.
    """

    homes: Sequence[Sequence[Home]]
    placement: Sequence[int]
    position: Sequence[int]
    in_step: Sequence[Sequence[Home]]  # of these, those in the step


@dataclass(frozen=True, slots=True)
class Body:
    """One body with what is planned in it. `device_of` has a device for every planned node."""

    name: str
    protos: Any  # the repeated NodeDef field of the message
    nodes: Nodes
    units: tuple[Unit, ...]
    unit_of: Mapping[int, int]  # op -> unit that stands for it here
    device_of: Mapping[str, int]


class Library:
    """The bodies of a GraphDef message, and which node calls which function."""

    def __init__(self, graph: Any) -> None:
        self.functions = {f.signature.name: f for f in graph.library.function}
        self._graph = graph
        self._caller: dict[str, Home] = {}
        for name in (MAIN, *self.functions):
            for node in self.protos(name):
                called = called_function(node, self.functions)
                if called:
                    self._caller.setdefault(called, (name, node.name))

    def protos(self, body: str) -> Any:
        """Return the nodes of a body, as the field of the message that holds them."""
        return self.functions[body].node_def if body else self._graph.node

    def arguments(self, body: str) -> list[str]:
        """Return the names of the arguments of a body."""
        return [a.name for a in self.functions[body].signature.input_arg] if body else []

    def path(self, body: str) -> list[Home]:
        """Return the calls that lead from the main graph to `body`, outermost first."""
        path: list[Home] = []
        while body and body in self._caller and len(path) <= len(self.functions):
            path.insert(0, self._caller[body])
            body = self._caller[body][0]
        return path


def called_function(node: Any, functions: Mapping[str, Any]) -> str:
    """Return the function that a node calls, "" if it is no plain call of one."""
    if node.op in functions:
        return str(node.op)
    name = node.attr["f"].func.name if node.op in _CALLS and "f" in node.attr else ""
    return name if name in functions else ""


def bodies_of(library: Library, planned: Planned) -> list[Body]:
    """Return every body that holds planned nodes, with its units."""
    names = dict.fromkeys(body for homes in planned.homes for body, _ in homes)
    for body in list(names):
        names.update(dict.fromkeys(caller for caller, _ in library.path(body)))
    return [_body(library, name, planned) for name in names]


def _body(library: Library, name: str, planned: Planned) -> Body:
    depth = len(library.path(name))
    units: list[Unit] = []
    unit_of: dict[int, int] = {}
    device_of: dict[str, int] = {}
    calls: dict[str, list[int]] = {}  # call -> the ops behind it
    for op, homes in enumerate(planned.homes):
        here = [node for body, node in homes if body == name]
        device_of.update(dict.fromkeys(here, planned.placement[op]))
        own = tuple(node for body, node in planned.in_step[op] if body == name)
        deeper = [library.path(body) for body, _ in planned.in_step[op] if body != name]
        behind = {path[depth][1] for path in deeper if len(path) > depth and path[depth][0] == name}
        if own:
            position = planned.position[op]
            unit_of[op] = len(units)
            members = (*own, *sorted(behind))
            units.append(Unit(members, (planned.placement[op],), position, position))
        else:
            for call in behind:
                calls.setdefault(call, []).append(op)
    for call, ops in calls.items():
        positions = [planned.position[op] for op in ops]
        devices = tuple(sorted({planned.placement[op] for op in ops}))
        unit_of.update(dict.fromkeys(ops, len(units)))
        units.append(Unit((call,), devices, min(positions), max(positions)))
    protos = library.protos(name)
    nodes = Nodes(protos, library.arguments(name))
    return Body(name, protos, nodes, tuple(units), unit_of, device_of)
