"""Nodes of one TensorFlow graph or function body: who reads whom, loops, and conditions.

A node of a v1 loop lives in a *frame*; a control edge may not cross the border of a frame. A
node behind a Switch is *dead* when its branch is not taken, and so is everything that waits for
it, by data or by control edges. Both decide where an order can be written into a graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

ENTERS = frozenset({"Enter", "RefEnter"})
EXITS = frozenset({"Exit", "RefExit"})
MERGES = frozenset({"Merge", "RefMerge"})
SWITCHES = frozenset({"Switch", "RefSwitch"})
BACK_EDGES = frozenset({"NextIteration", "RefNextIteration"})
# Results of a Switch as function bodies name them.
_SWITCH_SLOTS = {"output_false": 0, "output_true": 1}

Frame = tuple[str, ...]  # names of the loops around a node, outermost first
# (value that decides, which result of its Switch): alive only if the value says so. Instead of
# a value, "merge NODE" stands for branches that are not each other's opposite, "case NODE" for
# one of many.
Literal = tuple[str, int]
Condition = frozenset[Literal]


@dataclass(frozen=True, slots=True)
class Edge:
    """What a node reads: result `slot` of the node `source`."""

    source: str
    slot: int


@dataclass(frozen=True, slots=True)
class Facts:
    """What decides where control edges may go. Keys are names of nodes.

    `inside` is the frame in which a node runs, `outside` the one in which its results are:
    they differ for Enter and Exit. `alive` says when a node runs.
    """

    inside: Mapping[str, Frame]
    outside: Mapping[str, Frame]
    alive: Mapping[str, Condition]
    order: tuple[str, ...]  # every node behind those that it reads, back edges of loops aside


class Nodes:
    """The nodes of one body by name, with their inputs taken apart.

    Args:
        nodes: NodeDef messages.
        arguments: names that stand for values from outside: the arguments of a function.
    """

    def __init__(self, nodes: Sequence[Any], arguments: Iterable[str] = ()) -> None:
        self.by_name: dict[str, Any] = {node.name: node for node in nodes}
        self.arguments = frozenset(arguments)
        self.reads: dict[str, list[Edge]] = {}
        self.waits: dict[str, list[str]] = {}  # control inputs
        self.readers: dict[str, list[str]] = {name: [] for name in self.by_name}
        for node in nodes:
            self.reads[node.name] = []
            self.waits[node.name] = []
            for text in node.input:
                if text.startswith("^"):
                    self.waits[node.name].append(text[1:])
                else:
                    self.reads[node.name].append(edge_of(text))
        for name in self.by_name:
            for source in self.sources(name):
                if source in self.readers:
                    self.readers[source].append(name)

    def sources(self, name: str) -> list[str]:
        """Return the nodes that `name` reads from or waits for, each once."""
        names = [*(edge.source for edge in self.reads[name]), *self.waits[name]]
        return [source for source in dict.fromkeys(names) if source in self.by_name]

    def op(self, name: str) -> str:
        """Return the kind of a node."""
        return str(self.by_name[name].op)

    def facts(self) -> Facts | None:
        """Return what decides where control edges may go; None: there is a cycle."""
        order = self._sorted()
        if order is None:
            return None
        inside: dict[str, Frame] = {}
        outside: dict[str, Frame] = {}
        alive: dict[str, Condition] = {}
        for name in order:
            sources = [s for s in self.sources(name) if s in outside]
            frame = max((outside[s] for s in sources), key=len, default=())
            inside[name] = frame
            outside[name] = self._frame_behind(name, frame)
            alive[name] = self._condition(name, frame, alive)
        return Facts(inside=inside, outside=outside, alive=alive, order=tuple(order))

    def _sorted(self) -> list[str] | None:
        """Return the nodes, writers first; edges from NextIteration do not count."""
        waiting: dict[str, int] = {}
        for name in self.by_name:
            sources = [s for s in self.sources(name) if self.op(s) not in BACK_EDGES]
            waiting[name] = len(sources)
        ready = [name for name, count in waiting.items() if count == 0]
        order: list[str] = []
        while ready:
            name = ready.pop()
            order.append(name)
            if self.op(name) in BACK_EDGES:
                continue
            for reader in self.readers[name]:
                waiting[reader] -= 1
                if waiting[reader] == 0:
                    ready.append(reader)
        return order if len(order) == len(self.by_name) else None

    def _frame_behind(self, name: str, frame: Frame) -> Frame:
        op = self.op(name)
        if op in ENTERS:
            return (*frame, self.by_name[name].attr["frame_name"].s.decode(errors="replace"))
        return frame[:-1] if op in EXITS else frame

    def _condition(self, name: str, frame: Frame, alive: Mapping[str, Condition]) -> Condition:
        """Return when `name` runs. Inside loops only the conditions around them count."""
        edges = [edge for edge in self.reads[name] if edge.source in alive]
        found = [self._condition_of_value(edge, frame, alive) for edge in edges]
        waited = frozenset().union(*(alive[s] for s in self.waits[name] if s in alive))
        if self.op(name) in MERGES and found:
            return self._merged(name, found) | waited
        return frozenset(waited).union(*found)

    def _condition_of_value(
        self, edge: Edge, frame: Frame, alive: Mapping[str, Condition]
    ) -> Condition:
        condition = alive[edge.source]
        if not frame and self.op(edge.source) in SWITCHES:
            return condition | {(self.decider(edge.source), edge.slot)}
        if not frame and self.op(edge.source) == "_SwitchN":
            return condition | {(f"case {edge.source}", edge.slot)}
        return condition

    def decider(self, switch: str) -> str:
        """Return the value that decides a Switch, seen through Identity nodes."""
        edge = self.reads[switch][1] if len(self.reads[switch]) > 1 else Edge(switch, 0)
        while edge.source in self.by_name and self.op(edge.source) == "Identity":
            if not self.reads[edge.source]:
                break
            edge = self.reads[edge.source][0]
        return f"{edge.source}:{edge.slot}"

    def _merged(self, name: str, found: Sequence[Condition]) -> Condition:
        """Return when a Merge runs: when one of its inputs is there."""
        common = found[0].intersection(*found[1:])
        rest = [condition - common for condition in found]
        if not all(rest):
            return common  # one input is there whenever the others are
        if len(rest) == 2 and all(len(r) == 1 for r in rest):
            ((value, slot),), ((other, other_slot),) = rest
            if value == other and {slot, other_slot} == {0, 1}:
                return common
        return common | {(f"merge {name}", 0)}


def edge_of(text: str) -> Edge:
    """Return what an input such as "a", "a:1" or, in functions, "a:output:1" reads."""
    source, *rest = text.split(":")
    if not rest:
        return Edge(source, 0)
    if rest[0] in _SWITCH_SLOTS:
        return Edge(source, _SWITCH_SLOTS[rest[0]])
    return Edge(source, int(rest[-1]) if rest[-1].isdecimal() else 0)
