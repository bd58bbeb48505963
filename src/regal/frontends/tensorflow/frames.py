"""Loops of TensorFlow 1: which nodes lie in which frame, and what is scheduled as one op.

A frame is entered by Enter nodes and left by Exit nodes; its nodes run many times, so that a
schedule cannot order them: the outermost frame is one op, and its body a graph of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from regal.errors import ModelError
from regal.frontends.tensorflow.kinds import ENTER, EXIT
from regal.frontends.tensorflow.order import cycles, is_back_edge, stable_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from regal.frontends.tensorflow.flat import Flat, Node

ROOT = 0


@dataclass(slots=True)
class Frames:
    """The frames of a graph; number 0 is the graph outside all of them."""

    of: list[int]  # node -> frame
    parents: list[int] = field(default_factory=lambda: [ROOT])
    names: list[str] = field(default_factory=lambda: [""])
    depths: list[int] = field(default_factory=lambda: [0])

    def child_of(self, frame: int, node: int) -> int:
        """Return the frame directly inside `frame` in which `node` lies, or `frame` itself."""
        inner = self.of[node]
        last = frame
        while self.depths[inner] > self.depths[frame]:
            last, inner = inner, self.parents[inner]
        return last

    def outside_of(self, position: int, node: Node) -> int:
        """Return the frame in which the results of a node are there for others."""
        frame = self.of[position]
        return self.parents[frame] if node.kind in EXIT else frame


def find_frames(flat: Flat, order: Sequence[int]) -> Frames:
    """Return the frames of `flat`.

    Args:
        flat: the graph.
        order: its nodes, producers first but for the ends of loops.
    """
    frames = Frames([ROOT] * len(flat.nodes))
    numbers: dict[tuple[int, str], int] = {}
    for position in order:
        node = flat.nodes[position]
        before = [producer for producer, _ in node.inputs]
        # A frame that is not left through an Exit reaches the reader; the innermost wins.
        outside = ROOT
        for earlier in (*before, *node.controls):
            if is_back_edge(flat, earlier, position):
                continue
            frame = frames.outside_of(earlier, flat.nodes[earlier])
            if frames.depths[frame] > frames.depths[outside]:
                outside = frame
        if node.kind in ENTER:
            name = node.proto.attr["frame_name"].s.decode(errors="replace")
            if (outside, name) not in numbers:
                numbers[outside, name] = len(frames.names)
                frames.names.append(name)
                frames.parents.append(outside)
                frames.depths.append(frames.depths[outside] + 1)
            outside = numbers[outside, name]
        frames.of[position] = outside
    return frames


@dataclass(frozen=True, slots=True)
class Unit:
    """What is scheduled as one: a node, or all nodes of a frame.

    `frame` is None for a single node, and ROOT for nodes that only wait for each other once
    frames are drawn together.
    """

    nodes: tuple[int, ...]
    frame: int | None = None


def units_of(flat: Flat, frames: Frames, members: Iterable[int], frame: int | None) -> list[Unit]:
    """Return the units that `members` form, in an order that can run.

    Args:
        flat: the graph.
        frames: its frames.
        members: nodes of it; those in a frame directly inside `frame` become one unit.
        frame: where the members are; None: every node is a unit, whatever frame it is in.

    Raises:
        ModelError: there is a cycle that is no loop.
    """
    groups: dict[tuple[bool, int], list[int]] = {}
    chosen = sorted(members)
    for node in chosen:
        inner = frame if frame is None else frames.child_of(frame, node)
        key = (False, node) if inner in (None, frame) else (True, inner or ROOT)
        groups.setdefault(key, []).append(node)
    units = [
        Unit(tuple(nodes), inner if is_frame else None)
        for (is_frame, inner), nodes in groups.items()
    ]
    while True:
        units.sort(key=lambda unit: unit.nodes[0])
        edges = _edges(flat, units)
        order, left = stable_order(len(units), edges)
        if not left:
            return [units[i] for i in order]
        units = _joined(flat, units, cycles(len(units), edges, left))


def _edges(flat: Flat, units: Sequence[Unit]) -> list[tuple[int, int]]:
    unit_of = {node: i for i, unit in enumerate(units) for node in unit.nodes}
    edges = set()
    for i, unit in enumerate(units):
        for position in unit.nodes:
            node = flat.nodes[position]
            for earlier in (*(producer for producer, _ in node.inputs), *node.controls):
                j = unit_of.get(earlier, i)
                if j != i and not is_back_edge(flat, earlier, position):
                    edges.add((j, i))
    return sorted(edges)


def _joined(flat: Flat, units: Sequence[Unit], rings: Sequence[Sequence[int]]) -> list[Unit]:
    """Return the units with each ring of them drawn together."""
    gone: set[int] = set()
    fresh = []
    for ring in rings:
        if all(units[i].frame is None for i in ring):
            node = flat.nodes[units[ring[0]].nodes[0]]
            raise ModelError(
                f"node '{node.name}' ({node.kind}) waits for itself: a cycle of {len(ring)} nodes"
            )
        gone.update(ring)
        fresh.append(Unit(tuple(sorted(n for i in ring for n in units[i].nodes)), ROOT))
    return [unit for i, unit in enumerate(units) if i not in gone] + fresh
