"""A graph while its tensors are being collected."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from regal.frontends.tensorflow.kinds import MERGE
from regal.frontends.tensorflow.ops import RESOURCE, dtype_name
from regal.frontends.tensorflow.order import is_back_edge
from regal.frontends.tensorflow.roles import INPUTS, is_handle, is_no_op, is_source
from regal.frontends.tensorflow.schema import REF
from regal.frontends.tensorflow.storages import view_of
from regal.frontends.tensorflow.values import bytes_of
from regal.graph.types import ABSENT, Graph, Role, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from regal.frontends.tensorflow.flat import Edge, Flat, Library
    from regal.frontends.tensorflow.frames import Frames
    from regal.frontends.tensorflow.sizes import Sized

# What is the caller's, a weight, or counted elsewhere: nobody writes over it.
_OWNED_ELSEWHERE = frozenset({Role.INPUT, Role.CONSTANT, Role.STATE, Role.CAPTURED})


@dataclass(frozen=True, slots=True)
class Built:
    """A graph, the nodes of each of its ops, and what its ops do besides computing."""

    graph: Graph
    op_nodes: tuple[tuple[int, ...], ...]
    needs_host: bool
    has_effects: bool

    @property
    def captures(self) -> int:
        """Return how many values it takes from the graph around it."""
        return sum(tensor.role is Role.CAPTURED for tensor in self.graph.tensors)


@dataclass(slots=True)
class Material:
    """What is built from one `Sized`: shared by its graph and the bodies of its loops."""

    sized: Sized
    library: Library
    frames: Frames
    readers: dict[Edge, list[int]]
    contents: dict[int, int]  # resource -> bytes of what lies in it
    trips: dict[int, int]  # frame -> how often its body runs, where that is known
    bodies: dict[int, tuple[Built, ...]] = field(default_factory=dict)  # node -> what it runs


@dataclass(slots=True)
class Draft:
    """Some nodes of a `Sized` on their way to a graph.

    `outputs` are results that the graph returns; `captured` what it takes from outside.
    """

    material: Material
    members: set[int]
    outputs: set[Edge]
    tensors: list[Tensor] = field(default_factory=list)
    index: dict[Edge, int] = field(default_factory=dict)
    captured: list[Edge] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)

    @property
    def flat(self) -> Flat:
        """Return the nodes, of which some are members."""
        return self.material.sized.flat

    def find(self, edge: Edge) -> int:
        """Return the tensor of a result; one from outside becomes a captured one."""
        if edge in self.index:
            return self.index[edge]
        position, _ = edge
        if position not in self.members:
            return self.capture(edge)
        node = self.flat.nodes[position]
        if not is_no_op(node):
            return ABSENT  # from the end of a loop to its beginning
        if node.kind in INPUTS and node.results[0] != RESOURCE:
            self.inputs.append(self.add(edge, Role.INPUT))
            return self.inputs[-1]
        if is_handle(node) or node.kind in INPUTS:
            return self.add(edge, Role.STATE)
        return self.add(edge, Role.CONSTANT)

    def capture(self, edge: Edge) -> int:
        """Return the tensor of a result that is counted outside."""
        self.captured.append(edge)
        return self.add(edge, Role.CAPTURED)

    def add(self, edge: Edge, role: Role, storage: int | None = None, offset: int = 0) -> int:
        """Return a new tensor for a result."""
        position, k = edge
        sized = self.material.sized
        node = self.flat.nodes[position]
        dtype, shape = node.results[k], sized.shapes[edge]
        size = bytes_of(shape, dtype)
        number = sized.resources.at(edge)
        if number is not None and (dtype == RESOURCE or dtype > REF):
            known = sized.resources.known[number]
            if known.is_variable:
                # A handle stands for the variable and its bytes.
                dtype = known.dtype
                shape = self._shape_read(edge) if known.shape is None else known.shape
                size = bytes_of(shape, dtype)
            elif role is Role.ACTIVATION:
                size = self.material.contents.get(number, 0)
        if edge in sized.lists:
            size = sized.lists[edge].bytes
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
        for reader in self.material.readers.get(edge, ()):
            if self.flat.nodes[reader].kind == "ReadVariableOp":
                return self.material.sized.shapes[reader, 0]
        return ()

    def add_result(self, position: int, k: int, inputs: tuple[int, ...]) -> int:
        """Return a new tensor for a result of an op that reads the tensors `inputs`."""
        edge = (position, k)
        role = Role.OUTPUT if edge in self.outputs else Role.ACTIVATION
        if is_source(self.flat.nodes[position]):
            return self.add(edge, Role.STATE)
        if not self._begins_round(position):
            view = view_of(self.material.sized, position, k)
            if view is not None and inputs[view[0]] != ABSENT:
                source = self.tensors[inputs[view[0]]]
                return self.add(edge, role, source.storage, source.storage_offset + view[1])
        return self.add(edge, role)

    def _begins_round(self, position: int) -> bool:
        """Return whether a node begins a round of a loop: from the second on, its value is new."""
        node = self.flat.nodes[position]
        return node.kind in MERGE and any(
            is_back_edge(self.flat, producer, position) for producer, _ in node.inputs
        )

    def legal_pairs(
        self, pairs: Iterable[tuple[int, int]], inputs: tuple[int, ...], outputs: tuple[int, ...]
    ) -> tuple[tuple[int, int], ...]:
        """Return the (input, output) pairs whose input is the runtime's to write over."""
        legal = []
        for source, target in pairs:
            if ABSENT in (inputs[source], outputs[target]):
                continue
            owner = self.tensors[self.tensors[inputs[source]].storage]
            if owner.role not in _OWNED_ELSEWHERE:
                legal.append((source, target))
        return tuple(legal)
