"""Turn an order per device into control edges that make TensorFlow follow it.

Each op waits for the op before it on its device. That alone is not always possible: no control
edge may enter or leave the frame of a loop, and an op that waits for a dead node is dead, too.
So an op has *entries* (nodes that can wait for others) and *exits* (nodes that others can wait
for), and where an op that may be dead comes before one that is not, a *gate*
stands between: a Merge of what follows the op and of the branch that is taken instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from regal.backends.tensorflow.nodes import SWITCHES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from regal.backends.tensorflow.nodes import Condition, Facts, Literal, Nodes

HELPER = "regal_order"  # the name of every node that is added begins with it


@dataclass(frozen=True, slots=True)
class Helper:
    """A node to add: "NoOp", or a "Switch", "Identity" or "Merge" of one bool.

    Inputs are (node, result) pairs; `waits` are nodes for control edges.
    """

    name: str
    op: str
    device: int
    inputs: tuple[tuple[str, int], ...] = ()
    waits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unit:
    """Nodes that run as one: an op, or the call of a function whose ops are planned one by one.

    `first` and `last` are positions in the order: of the op, or of the ops of the function.
    """

    names: tuple[str, ...]
    devices: tuple[int, ...]
    first: int
    last: int


@dataclass(slots=True)
class Chain:
    """What makes TensorFlow follow the order: edges (earlier node, later node), added nodes.

    `loose` are pairs of units whose order cannot be written into the graph.
    """

    edges: dict[tuple[str, str], None] = field(default_factory=dict)
    helpers: list[Helper] = field(default_factory=list)
    loose: dict[tuple[int, int], None] = field(default_factory=dict)


def chain_of(
    nodes: Nodes,
    facts: Facts,
    units: Sequence[Unit],
    waits: Iterable[tuple[int, int]] = (),
    free: frozenset[str] = frozenset(),
) -> Chain:
    """Return the control edges that keep the order of `units` on every device.

    Args:
        nodes: of one graph or function body.
        facts: about them.
        units: what is planned in this body, in any sequence.
        waits: (earlier unit, later unit) pairs that must hold across devices, too.
        free: nodes that may not wait for more than they do.

    Cost: O(nodes + edges of the graph + added edges).
    """
    builder = _Builder(nodes, facts, units, free)
    for unit in sorted(range(len(units)), key=lambda i: (units[i].first, units[i].last, i)):
        builder.append(unit)
    for earlier, later in waits:
        if free.isdisjoint(units[later].names):
            builder.link(earlier, later)
    return builder.chain


class _Builder:
    """Appends unit after unit to the chain of its device."""

    def __init__(
        self, nodes: Nodes, facts: Facts, units: Sequence[Unit], free: frozenset[str]
    ) -> None:
        self.chain = Chain()
        self._nodes = nodes
        self._facts = facts
        self._units = units
        self._alive: dict[str, Condition] = dict(facts.alive)
        self._prefix = HELPER
        while any(name.startswith(f"{self._prefix}/") for name in nodes.by_name):
            self._prefix += "_"  # the file has an order from an earlier plan
        self._is_free = [not free.isdisjoint(unit.names) for unit in units]
        self._entries = [self._entries_of(unit.names) for unit in units]
        self._exits = [self._exits_of(unit.names) for unit in units]
        self._device_of = {name: unit.devices[0] for unit in units for name in unit.names}
        self._gates: dict[tuple[str, Condition], str | None] = {}
        self._switches: dict[tuple[str, int], str] = {}
        # Device -> unit -> its exits that nothing later on the device stands for yet.
        self._pending: dict[int, dict[int, list[str]]] = {}

    def append(self, unit: int) -> None:
        """Let `unit` wait for all that runs before it on its devices."""
        for device in self._units[unit].devices:
            pending = self._pending.setdefault(device, {})
            linked: list[int] = []
            if not self._is_free[unit]:
                linked = [earlier for earlier in pending if self.link(earlier, unit)]
            for earlier in linked:
                left = [name for name in pending[earlier] if not self._is_covered(name, unit)]
                if left:
                    pending[earlier] = left
                else:
                    del pending[earlier]
            if self._exits[unit]:
                pending[unit] = self._exits[unit]

    def link(self, earlier: int, later: int) -> bool:
        """Let the entries of `later` wait for the exits of `earlier`; return whether they do."""
        exits, entries = self._exits[earlier], self._entries[later]
        if not exits or not entries or self._units[earlier].last > self._units[later].first:
            self.chain.loose[earlier, later] = None
            return False
        if len(exits) > 1 and len(entries) > 1 and len({self._alive[e] for e in exits}) == 1:
            exits = [self._joined(earlier, exits)]
        pairs = [
            (self._source_for(name, entry), entry)
            for entry in entries
            for name in exits
            if name not in self._nodes.sources(entry)
        ]
        for source, entry in pairs:
            if source is not None:
                self.chain.edges[source, entry] = None
        if any(source is None for source, _ in pairs):
            self.chain.loose[earlier, later] = None
            return False
        return True

    def _is_covered(self, name: str, unit: int) -> bool:
        """Return whether some exit of `unit` runs whenever `name` does."""
        return any(self._alive[leaving] <= self._alive[name] for leaving in self._exits[unit])

    def _entries_of(self, names: Sequence[str]) -> list[str]:
        """Return the nodes of a unit that start it, of those that may wait for others."""
        own = set(names)
        outer = [name for name in names if not self._facts.inside[name]]
        return [
            name
            for name in outer
            if not any(s in own and not self._facts.outside[s] for s in self._nodes.sources(name))
        ]

    def _exits_of(self, names: Sequence[str]) -> list[str]:
        """Return the nodes of a unit that end it, of those that others may wait for."""
        own = set(names)
        outer = [name for name in names if not self._facts.outside[name]]
        return [
            name
            for name in outer
            if not any(r in own and not self._facts.inside[r] for r in self._nodes.readers[name])
        ]

    def _joined(self, unit: int, exits: Sequence[str]) -> str:
        """Return one node that is there when all exits of a unit are."""
        name = f"{self._prefix}/end_{unit}"
        if name not in self._alive:
            self._alive[name] = self._alive[exits[0]]
            self._add("NoOp", name, self._units[unit].devices[0], waits=tuple(exits))
        return name

    def _source_for(self, name: str, entry: str) -> str | None:
        """Return what `entry` waits for so that it runs after `name`; None: nothing can do."""
        extra = self._alive[name] - self._alive[entry]
        if not extra:
            return name
        key = (name, extra)
        if key not in self._gates:
            self._gates[key] = self._gate(name, extra, self._alive[entry])
        return self._gates[key]

    def _gate(self, name: str, extra: Condition, allowed: Condition) -> str | None:
        """Return a node that is there after `name`, or as soon as `name` cannot run any more.

        The innermost condition comes first: its opposite is there whenever the outer ones hold.
        """
        literals = sorted(extra, key=lambda literal: (-len(self._alive_of(literal)), literal))
        for number, (value, _) in enumerate(literals):
            outer = self._alive_of(literals[number])
            if " " in value or not set(literals[number + 1 :]) <= outer:
                return None
        if not self._alive_of(literals[-1]) <= allowed:
            return None
        device, current = self._device_of[name], name
        for value, slot in literals:
            switch = self._switch(value, device)
            stem = f"{self._prefix}/gate_{len(self.chain.helpers)}"
            self._add("Identity", f"{stem}/then", device, ((switch, slot),), (current,))
            self._add("Identity", f"{stem}/else", device, ((switch, 1 - slot),))
            current = stem
            self._add("Merge", stem, device, ((f"{stem}/then", 0), (f"{stem}/else", 0)))
            self._alive[stem] = self._alive_of((value, slot))
        return current

    def _switch(self, value: str, device: int) -> str:
        """Return a Switch of a value by itself: one of its results says which branch runs."""
        if (value, device) not in self._switches:
            name = f"{self._prefix}/switch_{len(self._switches)}"
            source, _, slot = value.rpartition(":")
            self._add("Switch", name, device, ((source, int(slot)), (source, int(slot))))
            self._switches[value, device] = name
        return self._switches[value, device]

    def _alive_of(self, literal: Literal) -> Condition:
        """Return when the value that decides a literal is there."""
        source, _, slot = literal[0].rpartition(":")
        alive = self._alive.get(source, frozenset())
        if source in self._nodes.by_name and self._nodes.op(source) in SWITCHES:
            return alive | {(self._nodes.decider(source), int(slot))}
        return alive

    def _add(
        self,
        op: str,
        name: str,
        device: int,
        inputs: tuple[tuple[str, int], ...] = (),
        waits: tuple[str, ...] = (),
    ) -> None:
        self.chain.helpers.append(Helper(name, op, device, inputs, waits))
        self._device_of[name] = device
