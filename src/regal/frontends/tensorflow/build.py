"""Build the project's graph from nodes whose results all have shapes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from regal.frontends.tensorflow.attributes import attributes_of
from regal.frontends.tensorflow.exact import Elements
from regal.frontends.tensorflow.frames import ROOT, Frames, Unit, find_frames, units_of
from regal.frontends.tensorflow.kinds import (
    ALIGNMENT,
    ENTER,
    EXIT,
    MERGE,
    NEXT,
    SWITCH,
    needs_host,
)
from regal.frontends.tensorflow.light import INPUTS
from regal.frontends.tensorflow.ops import RESOURCE, STRING, base_type, dtype_name
from regal.frontends.tensorflow.order import is_back_edge
from regal.frontends.tensorflow.resources import is_source
from regal.frontends.tensorflow.schema import REF
from regal.frontends.tensorflow.sizes import WHILES
from regal.frontends.tensorflow.state import colocation_groups, is_effect, state_order
from regal.frontends.tensorflow.storages import in_place_pairs, view_of
from regal.frontends.tensorflow.values import bytes_of
from regal.graph.types import ABSENT, Graph, Op, Role, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from regal.frontends.tensorflow.flat import Edge, Flat, Library, Node
    from regal.frontends.tensorflow.sizes import Sized

CONSTANTS = frozenset({"Const", "HostConst", "ImmutableConst", "_HostConst"})
LOOP = "WhileFrame"  # kind of an op that is a whole loop of TensorFlow 1
RING = "Region"  # kind of an op that is several loops which need each other
HOST = ("cpu",)
_OWNED_ELSEWHERE = frozenset({Role.INPUT, Role.CONSTANT, Role.STATE, Role.CAPTURED})


@dataclass(frozen=True, slots=True)
class Built:
    """A graph, the nodes of each of its ops, and what its ops do besides computing."""

    graph: Graph
    op_nodes: tuple[tuple[int, ...], ...]
    needs_host: bool
    has_effects: bool


@dataclass(slots=True)
class Shop:
    """What is built from one `Sized`: shared by its graph and the bodies of its loops."""

    sized: Sized
    library: Library
    frames: Frames
    readers: dict[Edge, list[int]]
    contents: dict[int, int]  # resource -> bytes of what lies in it
    bodies: dict[int, tuple[Built, ...]] = field(default_factory=dict)  # node -> functions it runs


def build_graph(sized: Sized, library: Library, name: str, outputs: Sequence[Edge]) -> Built:
    """Return the graph of an entry, with `outputs` as its outputs."""
    shop = _open_shop(sized, library)
    draft = _Draft(shop, set(range(len(sized.flat.nodes))), set(outputs))
    for position, node in enumerate(sized.flat.nodes):
        if node.kind in INPUTS:
            draft.find((position, 0))
    return draft.build(name, ROOT, list(outputs))


def _open_shop(sized: Sized, library: Library) -> Shop:
    readers: dict[Edge, list[int]] = {}
    for position, node in enumerate(sized.flat.nodes):
        for edge in node.inputs:
            readers.setdefault(edge, []).append(position)
    shop = Shop(sized, library, find_frames(sized.flat, sized.order), readers, _contents(sized))
    for position, bodies in sized.bodies.items():
        node = sized.flat.nodes[position]
        shop.bodies[position] = tuple(
            _build_body(body, library, is_copied=node.kind in WHILES) for body in bodies
        )
    return shop


def _build_body(sized: Sized, library: Library, *, is_copied: bool) -> Built:
    """Return the graph of a function that a node runs.

    What it is given lies outside. What it returns becomes the results of the node, which count
    outside; only a loop holds the results of this round beside the values of the last.
    """
    shop = _open_shop(sized, library)
    flat = sized.flat
    draft = _Draft(shop, set(range(len(flat.nodes))), set(flat.returns))
    for position in flat.arguments:
        draft.capture((position, 0))
    built = draft.build(flat.name, ROOT, list(flat.returns))
    if is_copied:
        return built
    return replace(built, graph=_without_bytes(built.graph, set(built.graph.outputs)))


def _contents(sized: Sized) -> dict[int, int]:
    """Return resource -> bytes of the tensors in it, for arrays and stacks of tensors.

    How often a loop pushes on a stack is not known: once is counted.
    """
    elements = Elements(sized)
    dtypes: dict[int, int] = {}
    for position, node in enumerate(sized.flat.nodes):
        number = sized.resources.at((position, 0))
        for key in ("dtype", "elem_type"):
            if number is not None and key in node.proto.attr:
                dtypes.setdefault(number, node.proto.attr[key].type)
    return {
        number: bytes_of(shape, dtypes.get(number, 1)) * elements.counts.get(number, 1)
        for number, shape in elements.shapes.items()
    }


class _Draft:
    """A graph while it is being built from some nodes of a `Sized`."""

    def __init__(self, shop: Shop, members: set[int], outputs: set[Edge]) -> None:
        self.shop = shop
        self.flat: Flat = shop.sized.flat
        self.members = members
        self.outputs = outputs
        self.tensors: list[Tensor] = []
        self.index: dict[Edge, int] = {}
        self.captured: list[Edge] = []
        self.inputs: list[int] = []
        self.op_of_node: dict[int, int] = {}
        self.waits_of: dict[int, list[int]] = {}

    def build(self, name: str, frame: int | None, outputs: Sequence[Edge]) -> Built:
        """Return the graph of all members, which are those of `frame`."""
        units = units_of(self.flat, self.shop.frames, self.members, frame)
        ops: list[Op] = []
        op_nodes: list[tuple[int, ...]] = []
        op_of_unit: dict[int, int] = {}
        effects = {
            n for n, bodies in self.shop.bodies.items() if any(b.has_effects for b in bodies)
        }
        names: set[str] = set()
        for i, unit in enumerate(units):
            if unit.frame is None and is_no_op(self.flat.nodes[unit.nodes[0]]):
                continue
            op = self._op(unit) if unit.frame is None else self._loop(unit, frame)
            op_of_unit[i] = len(ops)
            self.op_of_node.update(dict.fromkeys(unit.nodes, len(ops)))
            op_nodes.append(unit.nodes)
            ops.append(replace(op, name=_unique(op.name, names)))
        self._add_waits(ops, op_nodes)
        order = state_order(self.shop.sized, units, self.shop.library, effects)
        later: dict[int, set[int]] = {}
        for a, b in order:
            if a in op_of_unit and b in op_of_unit:
                later.setdefault(op_of_unit[b], set()).add(op_of_unit[a])
        groups = colocation_groups(self.shop.sized, units, op_of_unit)
        ops = [
            replace(
                op,
                control_inputs=tuple(sorted({*op.control_inputs, *later.get(i, ())} - {i})),
                colocation=groups.get(i, ""),
            )
            for i, op in enumerate(ops)
        ]
        graph = Graph(
            name=name,
            framework="tensorflow",
            ops=tuple(ops),
            tensors=tuple(self.tensors),
            inputs=tuple(self.inputs),
            outputs=tuple(dict.fromkeys(t for e in outputs if (t := self.find(e)) != ABSENT)),
            alignment=ALIGNMENT,
            in_place_by_runtime=True,
        )
        return Built(
            graph=replace(graph, tensors=tuple(self.tensors)),
            op_nodes=tuple(op_nodes),
            needs_host=any(op.devices == HOST for op in ops),
            has_effects=bool(effects & self.members)
            or any(is_effect(self.flat, n, self.shop.library) for n in self.members),
        )

    def find(self, edge: Edge) -> int:
        """Return the tensor of a result; one from outside becomes a captured one."""
        if edge in self.index:
            return self.index[edge]
        position, _ = edge
        if position not in self.members:
            return self.capture(edge)
        node = self.flat.nodes[position]
        if not is_no_op(node):
            return ABSENT  # from the end of the loop to its beginning
        if node.kind in INPUTS and node.results[0] != RESOURCE:
            index = self._add(edge, Role.INPUT)
            self.inputs.append(index)
            return index
        if is_source(node) or node.kind in INPUTS:
            return self._add(edge, Role.STATE)
        return self._add(edge, Role.CONSTANT)

    def capture(self, edge: Edge) -> int:
        """Return the tensor of a result that is counted outside."""
        self.captured.append(edge)
        return self._add(edge, Role.CAPTURED)

    def _add(self, edge: Edge, role: Role, storage: int | None = None, offset: int = 0) -> int:
        position, k = edge
        sized = self.shop.sized
        node = self.flat.nodes[position]
        dtype, shape = node.results[k], sized.shapes[edge]
        size = bytes_of(shape, dtype)
        number = sized.resources.at(edge)
        if number is not None and (dtype == RESOURCE or dtype > REF):
            known = sized.resources.known[number]
            if known.is_variable:
                dtype, shape = known.dtype, known.shape or self._shape_read(edge)
                size = bytes_of(shape, dtype)
            elif role is Role.ACTIVATION:
                size = self.shop.contents.get(number, 0)
        index = len(self.tensors)
        self.tensors.append(
            Tensor(
                name=f"{node.name}:{k}",
                shape=shape,
                dtype=dtype_name(dtype),
                bytes=size,
                role=role,
                storage=index if storage is None else storage,
                storage_offset=offset,
            )
        )
        self.index[edge] = index
        return index

    def _shape_read(self, edge: Edge) -> tuple[int, ...]:
        """Return the shape of what is read from a variable whose shape the file leaves open."""
        for reader in self.shop.readers.get(edge, ()):
            if self.flat.nodes[reader].kind == "ReadVariableOp":
                return self.shop.sized.shapes[reader, 0]
        return ()

    def _op(self, unit: Unit) -> Op:
        (position,) = unit.nodes
        node = self.flat.nodes[position]
        inputs = tuple(self.find(e) for e in node.inputs)
        outputs = tuple(self._result(position, k, inputs) for k in range(len(node.results)))
        bodies = self.shop.bodies.get(position, ())
        return Op(
            name=node.name,
            kind=node.kind,
            inputs=inputs,
            outputs=outputs,
            captures=max((_captures(b.graph) for b in bodies), default=0),
            in_place=self._legal_pairs(in_place_pairs(self.shop.sized, position), inputs, outputs),
            subgraphs=tuple(body.graph for body in bodies),
            devices=HOST if self._is_on_host(node, bodies) else (),
            attributes=attributes_of(node),
        )

    def _result(self, position: int, k: int, inputs: tuple[int, ...]) -> int:
        edge = (position, k)
        role = Role.OUTPUT if edge in self.outputs else Role.ACTIVATION
        if not self._is_loop_head(position):
            view = view_of(self.shop.sized, position, k)
            if view is not None and inputs[view[0]] != ABSENT:
                source = self.tensors[inputs[view[0]]]
                return self._add(edge, role, source.storage, source.storage_offset + view[1])
        return self._add(edge, role)

    def _is_loop_head(self, position: int) -> bool:
        """Return whether a node begins a round: its value is the last one's after the first."""
        node = self.flat.nodes[position]
        return node.kind in MERGE and any(
            is_back_edge(self.flat, producer, position) for producer, _ in node.inputs
        )

    def _legal_pairs(
        self,
        pairs: Iterable[tuple[int, int]],
        inputs: tuple[int, ...],
        outputs: tuple[int, ...],
    ) -> tuple[tuple[int, int], ...]:
        """Return the pairs whose input is the runtime's to reuse: not the caller's, no weight."""
        legal = []
        for source, target in pairs:
            if ABSENT in (inputs[source], outputs[target]):
                continue
            owner = self.tensors[self.tensors[inputs[source]].storage]
            if owner.role not in _OWNED_ELSEWHERE:
                legal.append((source, target))
        return tuple(legal)

    def _is_on_host(self, node: Node, bodies: Sequence[Built]) -> bool:
        types = [self.flat.nodes[i].results[k] for i, k in node.inputs] + list(node.results)
        return (
            any(base_type(dtype) == STRING for dtype in types)
            or needs_host(node.kind)
            or any(body.needs_host for body in bodies)
        )

    def _loop(self, unit: Unit, frame: int | None) -> Op:
        """Return one op for all nodes of a frame; its body is one round."""
        inside = set(unit.nodes)
        exits = [
            (n, k)
            for n in unit.nodes
            for k in range(len(self.flat.nodes[n].results))
            if (n, k) in self.outputs
            or any(r not in inside for r in self.shop.readers.get((n, k), ()))
        ]
        rounds = [(n, 0) for n in unit.nodes if self.flat.nodes[n].kind in NEXT]
        body = _Draft(self.shop, inside, {*exits, *rounds})
        is_frame = unit.frame != ROOT
        built = body.build(
            self.shop.frames.names[unit.frame or ROOT] or "region",
            unit.frame if is_frame else None,
            [*exits, *rounds],
        )
        graph = _without_bytes(built.graph, {body.index[e] for e in exits if e in body.index})
        inputs = tuple(self.find(e) for e in body.captured)
        outputs = tuple(
            self._add(e, Role.OUTPUT if e in self.outputs else Role.ACTIVATION) for e in exits
        )
        pairs = [
            (body.captured.index(first), k)
            for k, e in enumerate(exits)
            if (first := self._first_value(e)) in body.captured
        ]
        return Op(
            name=graph.name,
            kind=LOOP if is_frame else RING,
            inputs=inputs,
            outputs=outputs,
            captures=len(inputs),
            in_place=self._legal_pairs(pairs, inputs, outputs),
            subgraphs=(graph,),
            devices=HOST if built.needs_host else (),
            attributes={"nodes": len(unit.nodes)},
        )

    def _first_value(self, edge: Edge) -> Edge | None:
        """Return what enters the loop for the value that leaves it at `edge`."""
        position = edge[0]
        for kinds in (EXIT, SWITCH, MERGE):
            node = self.flat.nodes[position]
            if node.kind not in kinds:
                return None
            if kinds is MERGE:
                enters = [i for i, _ in node.inputs if self.flat.nodes[i].kind in ENTER]
                return self.flat.nodes[enters[0]].inputs[0] if enters else None
            position = node.inputs[0][0]
        return None

    def _add_waits(self, ops: list[Op], op_nodes: Sequence[tuple[int, ...]]) -> None:
        """Enter control inputs; nodes that are no ops hand on what they wait for."""
        for i, nodes in enumerate(op_nodes):
            waits: set[int] = set()
            for position in nodes:
                node = self.flat.nodes[position]
                for earlier in node.controls:
                    waits.update(self._ops_at(earlier))
                for producer, _ in node.inputs:
                    if is_no_op(self.flat.nodes[producer]):
                        waits.update(self._ops_at(producer))
            ops[i] = replace(ops[i], control_inputs=tuple(sorted(waits - {i})))

    def _ops_at(self, position: int) -> list[int]:
        """Return the ops that are done once a node is done."""
        if position in self.op_of_node:
            return [self.op_of_node[position]]
        if position not in self.members:
            return []
        if position not in self.waits_of:
            found = [i for c in self.flat.nodes[position].controls for i in self._ops_at(c)]
            self.waits_of[position] = list(dict.fromkeys(found))
        return self.waits_of[position]


def is_no_op(node: Node) -> bool:
    """Return whether a node is no op of the graph: a constant, an input, a handle, a mark."""
    return (
        node.kind in CONSTANTS or node.kind in INPUTS or node.kind == "_Retval" or is_source(node)
    )


def _captures(graph: Graph) -> int:
    return sum(tensor.role is Role.CAPTURED for tensor in graph.tensors)


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
