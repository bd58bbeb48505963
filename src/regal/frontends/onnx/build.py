"""Build the project's graph from a model whose values all have sizes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from regal.cost.work import op_flops
from regal.frontends.onnx.kinds import (
    OVERWRITES,
    SHAPE_READERS,
    VIEWS,
    numbers_of,
)
from regal.frontends.onnx.parse import STANDARD_DOMAINS
from regal.frontends.onnx.tidy import bodies_of, is_standard
from regal.graph.types import ABSENT, Graph, Op, Role, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx import GraphProto, ModelProto, NodeProto

    from regal.frontends.onnx.tables import Place, Table, Tables, Value

ALIGNMENT = 64  # of ONNX Runtime's CPU allocator
# Values of these places are the caller's or another graph's: nobody may write over them.
NOT_OVERWRITTEN = frozenset({Role.INPUT, Role.PARAMETER, Role.CONSTANT, Role.CAPTURED})


def build_graph(model: ModelProto, tables: Tables) -> Graph:
    """Return the graph of `model`: op i is node i, and bodies are nested graphs.

    Args:
        model: sorted, without functions.
        tables: the values of each graph; none is missing.
    """
    graph, _ = _build(model.graph, tables, (), [], "")
    return graph


@dataclass(slots=True)
class _Draft:
    """A graph while its tensors are being collected."""

    table: Table
    outer: Sequence[_Draft]
    tensors: list[Tensor] = field(default_factory=list)
    index: dict[str, int] = field(default_factory=dict)
    captured: list[str] = field(default_factory=list)

    def add(self, name: str, value: Value, role: Role, storage: int | None = None) -> int:
        index = len(self.tensors)
        self.tensors.append(
            Tensor(
                name=name,
                shape=value.shape,
                dtype=value.dtype,
                bytes=value.bytes,
                role=role,
                storage=index if storage is None else storage,
            )
        )
        self.index[name] = index
        return index

    def find(self, name: str) -> int:
        """Return the tensor called `name`; one of an outer graph becomes a captured one."""
        if name in self.index:
            return self.index[name]
        owner = next(draft for draft in reversed(self.outer) if name in draft.table.values)
        self.captured.append(name)
        return self.add(name, owner.table.values[name], Role.CAPTURED)


def _build(
    proto: GraphProto,
    tables: Tables,
    place: Place,
    outer: Sequence[_Draft],
    parent: str,
) -> tuple[Graph, list[str]]:
    """Return the graph at `place`, and the names that it takes from graphs around it."""
    draft = _Draft(tables[place], outer)
    filled = dict.fromkeys(t.name for t in proto.initializer)
    filled |= dict.fromkeys(t.values.name for t in proto.sparse_initializer)
    given = [v.name for v in proto.input if v.name not in filled]
    for name in given:
        draft.add(name, draft.table.values[name], Role.INPUT)
    for name in filled:
        draft.add(name, draft.table.values[name], Role.PARAMETER)
    returned = {value.name for value in proto.output if value.name}
    names: set[str] = set()
    ops = []
    for position, node in enumerate(proto.node):
        ops.append(_op(node, position, draft, tables, place, returned, names))
    outputs = tuple(draft.find(value.name) for value in proto.output if value.name)
    graph = Graph(
        name=proto.name or "graph",
        framework="onnx",
        ops=tuple(ops),
        tensors=tuple(_kept_elsewhere(parent, draft.tensors)),
        inputs=tuple(draft.index[name] for name in given),
        outputs=outputs,
        alignment=ALIGNMENT,
        in_place_by_runtime=True,
    )
    return graph, draft.captured


def _op(
    node: NodeProto,
    position: int,
    draft: _Draft,
    tables: Tables,
    place: Place,
    returned: set[str],
    names: set[str],
) -> Op:
    bodies = []
    captured: dict[str, None] = {}
    for number, body in enumerate(bodies_of(node)):
        inner = (*place, (position, number))
        graph, taken = _build(body, tables, inner, [*draft.outer, draft], node.op_type)
        bodies.append(graph)
        captured.update(dict.fromkeys(taken))
    inputs = tuple(draft.find(name) if name else ABSENT for name in node.input)
    captures = tuple(draft.find(name) for name in captured)
    outputs = tuple(
        _result(node, place_of_output, name, inputs, draft, returned)
        for place_of_output, name in enumerate(node.output)
    )
    op = Op(
        name=_unique(node, position, names),
        kind=node.op_type if node.domain in STANDARD_DOMAINS else f"{node.domain}::{node.op_type}",
        inputs=inputs + captures,
        outputs=outputs,
        captures=len(captures),
        workspace_bytes=_pieces(node, outputs, draft, bodies),
        in_place=_in_place(node, inputs + captures, outputs, draft),
        subgraphs=tuple(bodies),
        attributes=numbers_of(node),
    )
    return replace(op, flops=op_flops(op, draft.tensors, "onnx"))


def _result(
    node: NodeProto,
    position: int,
    name: str,
    inputs: tuple[int, ...],
    draft: _Draft,
    returned: set[str],
) -> int:
    """Return the tensor of one result of `node`: its role, and whose bytes it shares."""
    if not name:
        return ABSENT
    value = draft.table.values[name]
    if is_standard(node, "Constant", *SHAPE_READERS):
        return draft.add(name, value, Role.CONSTANT)
    if name in returned:
        # The runtime copies a view that it returns.
        return draft.add(name, value, Role.OUTPUT)
    is_view = position == 0 and is_standard(node, *VIEWS)
    if is_view and inputs and inputs[0] != ABSENT:
        source = draft.tensors[inputs[0]]
        return draft.add(name, value, Role.ACTIVATION, source.storage)
    return draft.add(name, value, Role.ACTIVATION)


def _in_place(
    node: NodeProto, inputs: tuple[int, ...], outputs: tuple[int, ...], draft: _Draft
) -> tuple[tuple[int, int], ...]:
    """Return the pairs that ONNX Runtime's memory planner would take: at most the first.

    It needs equal static shapes and element sizes, reads the input once, and spares the
    caller's memory and weights.
    """
    if not is_standard(node, *OVERWRITES):
        return ()
    if not inputs or not outputs or ABSENT in (inputs[0], outputs[0]):
        return ()
    read, written = draft.tensors[inputs[0]], draft.tensors[outputs[0]]
    before, after = draft.table.values.get(read.name), draft.table.values[written.name]
    owner = draft.tensors[read.storage]
    allowed = (
        before is not None
        and before.is_static
        and after.is_static
        and not (before.container or after.container)
        and "string" not in (before.dtype, after.dtype)
        and read.shape == written.shape
        and read.bytes == written.bytes
        and written.role is Role.ACTIVATION
        and owner.role not in NOT_OVERWRITTEN
        and owner.role is not Role.OUTPUT
        and inputs.count(inputs[0]) == 1
    )
    return ((0, 0),) if allowed else ()


def _pieces(
    node: NodeProto, outputs: tuple[int, ...], draft: _Draft, bodies: Sequence[Graph]
) -> int:
    """Return the bytes of a Loop's scan outputs: kept per iteration, then joined."""
    if not is_standard(node, "Loop") or not bodies:
        return 0
    carried = max(len(bodies[0].inputs) - 2, 0)
    return sum(draft.tensors[t].bytes for t in outputs[carried:] if t != ABSENT)


def _kept_elsewhere(parent: str, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors of a body without the bytes that the op around it holds already.

    An If's branch writes its results into the If's own outputs; a Scan hands its body slices
    of its inputs and of its outputs.
    """
    roles = {"If": {Role.OUTPUT}, "Scan": {Role.OUTPUT, Role.INPUT}}.get(parent, set())
    return [replace(t, bytes=0) if t.role in roles else t for t in tensors]


def _unique(node: NodeProto, position: int, names: set[str]) -> str:
    name = node.name or next((out for out in node.output if out), f"{position}:{node.op_type}")
    if name in names:
        name = f"{name}#{position}"
    while name in names:
        name += "#"
    names.add(name)
    return name
