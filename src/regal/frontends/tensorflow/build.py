"""Build the project's graph from nodes whose results all have shapes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from regal.frontends.tensorflow.attributes import attributes_of
from regal.frontends.tensorflow.draft import Built, Draft, Material
from regal.frontends.tensorflow.exact import Elements
from regal.frontends.tensorflow.frames import ROOT, Unit, find_frames, units_of
from regal.frontends.tensorflow.kinds import (
    ALIGNMENT,
    ENTER,
    EXIT,
    MERGE,
    NEXT,
    SWITCH,
    WHILES,
    needs_host,
)
from regal.frontends.tensorflow.ops import STRING, base_type
from regal.frontends.tensorflow.roles import INPUTS, is_no_op
from regal.frontends.tensorflow.state import colocation_groups, is_effect, state_order
from regal.frontends.tensorflow.storages import in_place_pairs
from regal.frontends.tensorflow.trips import frame_trips, while_trips
from regal.frontends.tensorflow.values import bytes_of
from regal.graph.types import ABSENT, Graph, Op, Role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.frontends.tensorflow.flat import Edge, Library, Node
    from regal.frontends.tensorflow.sizes import Sized
    from regal.graph.types import AttributeValue

LOOP = "WhileFrame"  # kind of an op that is a whole loop of TensorFlow 1
RING = "Region"  # kind of an op that is several loops which need each other
HOST = ("cpu",)


def build_graph(sized: Sized, library: Library, name: str, outputs: Sequence[Edge]) -> Built:
    """Return the graph of an entry, with `outputs` as its outputs."""
    draft = Draft(_material(sized, library), set(range(len(sized.flat.nodes))), set(outputs))
    for position, node in enumerate(sized.flat.nodes):
        if node.kind in INPUTS:
            draft.find((position, 0))
    return _graph(draft, name, ROOT, outputs)


def _material(sized: Sized, library: Library) -> Material:
    readers: dict[Edge, list[int]] = {}
    for position, node in enumerate(sized.flat.nodes):
        for edge in node.inputs:
            readers.setdefault(edge, []).append(position)
    frames = find_frames(sized.flat, sized.order)
    material = Material(
        sized, library, frames, readers, contents={}, trips=frame_trips(sized, frames)
    )
    material.contents = _contents(material)
    for position, bodies in sized.bodies.items():
        is_loop = sized.flat.nodes[position].kind in WHILES
        material.bodies[position] = tuple(_body(body, library, is_loop=is_loop) for body in bodies)
    return material


def _body(sized: Sized, library: Library, *, is_loop: bool) -> Built:
    """Return the graph of a function that a node runs.

    What it is given lies outside. What it returns becomes the results of the node, which count
    outside; only a loop holds the results of this round beside the values of the last.
    """
    flat = sized.flat
    draft = Draft(_material(sized, library), set(range(len(flat.nodes))), set(flat.returns))
    for position in flat.arguments:
        draft.capture((position, 0))
    built = _graph(draft, flat.name, ROOT, flat.returns)
    if is_loop:
        return built
    return replace(built, graph=_without_bytes(built.graph, set(built.graph.outputs)))


def _contents(material: Material) -> dict[int, int]:
    """Return resource -> bytes of the tensors in it, for arrays and stacks of tensors.

    Where nobody knows how often a loop pushes or writes, once is counted.
    """
    sized, frames = material.sized, material.frames
    elements = Elements(sized)
    dtypes: dict[int, int] = {}
    rounds: dict[int, int] = {}
    for position, node in enumerate(sized.flat.nodes):
        for edge in ((position, 0), *node.inputs[:1]):
            number = sized.resources.at(edge)
            if number is None:
                continue
            for key in ("dtype", "elem_type"):
                if key in node.proto.attr:
                    dtypes.setdefault(number, node.proto.attr[key].type)
            inside = frames.child_of(ROOT, position)
            rounds[number] = max(rounds.get(number, 1), material.trips.get(inside, 1))
    return {
        number: bytes_of(shape, dtypes.get(number, 1))
        * elements.counts.get(number, rounds.get(number, 1))
        for number, shape in elements.shapes.items()
    }


def _graph(draft: Draft, name: str, frame: int | None, outputs: Sequence[Edge]) -> Built:
    """Return the graph of all members of `draft`, which are those of `frame`."""
    material, flat = draft.material, draft.flat
    units = units_of(flat, material.frames, draft.members, frame)
    chosen = [
        i
        for i, unit in enumerate(units)
        if unit.frame is not None or not is_no_op(flat.nodes[unit.nodes[0]])
    ]
    op_of_unit = {i: number for number, i in enumerate(chosen)}
    op_nodes = [units[i].nodes for i in chosen]
    effects = {n for n, bodies in material.bodies.items() if any(b.has_effects for b in bodies)}
    waits = _waits(draft, op_nodes)
    for a, b in state_order(material.sized, units, material.library, effects):
        if a in op_of_unit and b in op_of_unit:
            waits[op_of_unit[b]].add(op_of_unit[a])
    groups = colocation_groups(material.sized, units, op_of_unit)
    names: set[str] = set()
    ops: list[Op] = []
    for number, i in enumerate(chosen):
        unit = units[i]
        op = _op(draft, unit.nodes[0]) if unit.frame is None else _loop(draft, unit)
        ops.append(
            replace(
                op,
                name=_unique(op.name, names),
                control_inputs=tuple(sorted(waits[number])),
                colocation=groups.get(number, ""),
            )
        )
    returned = [draft.find(edge) for edge in outputs]
    graph = Graph(
        name=name,
        framework="tensorflow",
        ops=tuple(ops),
        tensors=tuple(draft.tensors),
        inputs=tuple(draft.inputs),
        outputs=tuple(dict.fromkeys(t for t in returned if t != ABSENT)),
        alignment=ALIGNMENT,
        in_place_by_runtime=True,
    )
    return Built(
        graph=graph,
        op_nodes=tuple(op_nodes),
        needs_host=any(op.devices == HOST for op in ops),
        has_effects=any(
            n in effects or is_effect(flat, n, material.library) for n in draft.members
        ),
    )


def _op(draft: Draft, position: int) -> Op:
    """Return the op of one node."""
    material = draft.material
    node = draft.flat.nodes[position]
    inputs = tuple(draft.find(edge) for edge in node.inputs)
    outputs = tuple(draft.add_result(position, k, inputs) for k in range(len(node.results)))
    bodies = material.bodies.get(position, ())
    attributes: dict[str, AttributeValue] = attributes_of(node)
    trips = while_trips(material.sized, position)
    if trips is not None:
        attributes["trip_count"] = trips
    return Op(
        name=node.name,
        kind=node.kind,
        inputs=inputs,
        outputs=outputs,
        captures=max((body.captures for body in bodies), default=0),
        in_place=draft.legal_pairs(in_place_pairs(material.sized, position), inputs, outputs),
        subgraphs=tuple(body.graph for body in bodies),
        devices=HOST if _is_on_host(draft, node, bodies) else (),
        attributes=attributes,
    )


def _is_on_host(draft: Draft, node: Node, bodies: Sequence[Built]) -> bool:
    types = [draft.flat.nodes[i].results[k] for i, k in node.inputs] + list(node.results)
    return (
        any(base_type(dtype) == STRING for dtype in types)
        or needs_host(node.kind)
        or any(body.needs_host for body in bodies)
    )


def _loop(draft: Draft, unit: Unit) -> Op:
    """Return one op for all nodes of a loop; its body is one round.

    The value that a loop variable has now is the result of the op, which counts outside; the
    value that it will have next counts in the body.
    """
    material, flat = draft.material, draft.flat
    inside = set(unit.nodes)
    exits = [
        (n, k)
        for n in unit.nodes
        for k in range(len(flat.nodes[n].results))
        if (n, k) in draft.outputs
        or any(reader not in inside for reader in material.readers.get((n, k), ()))
    ]
    is_frame = unit.frame != ROOT
    rounds = [
        (n, 0)
        for n in unit.nodes
        if flat.nodes[n].kind in NEXT and (not is_frame or material.frames.of[n] == unit.frame)
    ]
    name = material.frames.names[unit.frame or ROOT] or "region"
    body = Draft(material, inside, {*exits, *rounds})
    built = _graph(body, name, unit.frame if is_frame else None, [*exits, *rounds])
    graph = _without_bytes(built.graph, {body.index[e] for e in exits if e in body.index})
    inputs = tuple(draft.find(edge) for edge in body.captured)
    outputs = tuple(
        draft.add(edge, Role.OUTPUT if edge in draft.outputs else Role.ACTIVATION) for edge in exits
    )
    entered = {edge: i for i, edge in enumerate(body.captured)}
    pairs = [
        (entered[first], k)
        for k, edge in enumerate(exits)
        if (first := _first_value(draft, edge)) in entered
    ]
    attributes: dict[str, AttributeValue] = {"_nodes": len(unit.nodes)}
    if unit.frame in material.trips:
        attributes["trip_count"] = material.trips[unit.frame]
    return Op(
        name=name,
        kind=LOOP if is_frame else RING,
        inputs=inputs,
        outputs=outputs,
        captures=len(inputs),
        in_place=draft.legal_pairs(pairs, inputs, outputs),
        subgraphs=(graph,),
        devices=HOST if built.needs_host else (),
        attributes=attributes,
    )


def _first_value(draft: Draft, edge: Edge) -> Edge:
    """Return what enters a loop for the value that leaves it at `edge`; else `edge` itself."""
    position = edge[0]
    for kinds in (EXIT, SWITCH, MERGE):
        node = draft.flat.nodes[position]
        if node.kind not in kinds:
            return edge
        position = next(
            (i for i, _ in node.inputs if kinds is not MERGE or draft.flat.nodes[i].kind in ENTER),
            position,
        )
    node = draft.flat.nodes[position]
    return node.inputs[0] if node.kind in ENTER else edge


def _waits(draft: Draft, op_nodes: Sequence[tuple[int, ...]]) -> list[set[int]]:
    """Return, per op, the ops that it waits for by control edges of the file.

    Nodes that are no ops hand on what they wait for.
    """
    flat = draft.flat
    op_of = {node: i for i, nodes in enumerate(op_nodes) for node in nodes}
    known: dict[int, frozenset[int]] = {}

    def ops_at(start: int) -> frozenset[int]:
        """Return the ops that are done once a node is done."""
        stack = [start]
        while stack:
            position = stack[-1]
            if position in op_of:
                known[position] = frozenset({op_of[position]})
            elif position not in draft.members:
                known[position] = frozenset()
            else:
                earlier = flat.nodes[position].controls
                missing = [i for i in earlier if i not in known]
                if missing:
                    stack += missing
                    continue
                known[position] = frozenset().union(*(known[i] for i in earlier))
            stack.pop()
        return known[start]

    waits: list[set[int]] = []
    for i, nodes in enumerate(op_nodes):
        found: set[int] = set()
        for position in nodes:
            node = flat.nodes[position]
            handed = [p for p, _ in node.inputs if is_no_op(flat.nodes[p])]
            for earlier in (*node.controls, *handed):
                found |= ops_at(earlier)
        waits.append(found - {i})
    return waits


def _without_bytes(graph: Graph, tensors: set[int]) -> Graph:
    """Return `graph` with the storages of some tensors counted elsewhere."""
    storages = {graph.tensors[t].storage for t in tensors}
    return replace(
        graph,
        tensors=tuple(
            replace(t, bytes=0, storage_offset=0) if t.storage in storages else t
            for t in graph.tensors
        ),
    )


def _unique(name: str, names: set[str]) -> str:
    while name in names:
        name += "#"
    names.add(name)
    return name
