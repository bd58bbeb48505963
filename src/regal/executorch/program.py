"""An ExecuTorch program, just before its memory is planned -> Graph."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from executorch.exir import memory
from executorch.exir.memory_planning import filter_nodes, get_node_tensor_specs
from torch.utils._pytree import tree_leaves

from regal.graph.types import Graph, Op, Role, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch.fx import GraphModule, Node

# Namespaces whose operators do what their schemas say and nothing else.
PLAIN = frozenset({"aten", "prims", "quantized_decomposed", "dim_order_ops", "executorch_prim"})


@dataclass(frozen=True, slots=True)
class Program:
    """A graph, and the nodes that each of its ops stands for, in the order in which they run."""

    graph: Graph
    nodes: tuple[tuple[Node, ...], ...]


@dataclass(slots=True)
class _Reader:
    counted: set[Any]  # what the pass will place
    signature: Any
    alignment: int
    tensors: list[Tensor] = field(default_factory=list)
    tensor_of: dict[Any, int] = field(default_factory=dict)  # storage -> its tensor
    made: set[int] = field(default_factory=set)  # tensors that an input or an op made
    writer: dict[Any, int] = field(default_factory=dict)  # storage -> last op that wrote to it
    users: dict[Any, list[int]] = field(default_factory=dict)  # storage -> ops since then
    unit_of: dict[Node, int] = field(default_factory=dict)
    last_effect: int = -1


def program_of(module: GraphModule, counted: set[Any], signature: Any, alignment: int) -> Program:
    """Return the graph of a program whose nodes carry tensor specs.

    An op is a kernel with the allocation of its results, and with the parts of them. A view is
    an op that makes no memory. What a kernel writes to besides its results comes after all
    earlier users of that memory and before all later ones; what may have effects keeps its order.

    Args:
        module: after ExecuTorch made kernels write to given memory.
        counted: the specs that get a place; all others count nothing.
        signature: of the program.
        alignment: bytes, of every size.

    Cost: O(nodes + edges + writes * users of their storages).
    """
    reader = _Reader(counted, signature, alignment)
    inputs, ends = [], []
    ops: list[Op] = []
    nodes: list[tuple[Node, ...]] = []
    for node in module.graph.nodes:
        if node.op == "placeholder":
            given = [_tensor(reader, spec, Role.INPUT) for spec in _storages_at(node)]
            inputs += given
            reader.made.update(given)
            ends += given if _is_mutable(node, signature) else []  # alive from end to end
        elif node.op == "output":
            ends += [_tensor(reader, spec) for spec in _storages_at(node)]
        elif node.op == "call_function" and node.target is not memory.alloc:
            if node.target is operator.getitem and node.args[0] in reader.unit_of:
                unit = reader.unit_of[node] = reader.unit_of[node.args[0]]
                nodes[unit] = (*nodes[unit], node)
            else:
                ops.append(_op(reader, node, len(ops)))
                mine = [n for n in node.all_input_nodes if n.target is memory.alloc]
                mine = [n for n in mine if n not in reader.unit_of]  # lists have several users
                nodes.append((*mine, node))
                reader.unit_of.update(dict.fromkeys(nodes[-1], len(nodes) - 1))
    outputs = {t for t in ends if reader.tensors[t].role is not Role.PARAMETER}
    for t in outputs:
        if reader.tensors[t].role is Role.ACTIVATION:
            reader.tensors[t] = replace(reader.tensors[t], role=Role.OUTPUT)
    graph = Graph(
        name="program",
        framework="torch",
        ops=tuple(ops),
        tensors=tuple(reader.tensors),
        inputs=tuple(t for t in dict.fromkeys(inputs) if reader.tensors[t].role is Role.INPUT),
        outputs=tuple(sorted(outputs)),
        alignment=alignment,
    )
    return Program(graph, tuple(nodes))


def storage_of(spec: Any) -> Any:
    """Return the spec in whose memory a tensor lies: views and backed tensors have another."""
    while True:
        base = spec.__dict__.get("_base") if "_base" in spec.__dict__ else spec.storage_base
        if base is None:
            return spec
        spec = base


def _op(reader: _Reader, node: Node, index: int) -> Op:
    after = {reader.unit_of[n] for n in node.all_input_nodes if n in reader.unit_of}
    touched = {spec: None for n in (node, *filter_nodes((node.args, node.kwargs)))
               for spec in _storages_at(n)}  # fmt: skip
    written = touched if _is_opaque(node) else dict.fromkeys(_written_by(node))
    for spec in touched:
        if spec in reader.writer:
            after.add(reader.writer[spec])
        if spec in written:
            after.update(reader.users.get(spec, ()))
            reader.writer[spec] = index
            reader.users[spec] = []
        reader.users.setdefault(spec, []).append(index)
    if _is_opaque(node) or torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
        if reader.last_effect >= 0:
            after.add(reader.last_effect)
        reader.last_effect = index
    tensors = [_tensor(reader, spec) for spec in touched]
    outputs = [
        t for t in tensors if t not in reader.made and reader.tensors[t].role is not Role.PARAMETER
    ]
    reader.made.update(outputs)
    return Op(
        name=node.name,
        kind=getattr(node.target, "__name__", str(node.target)),
        inputs=tuple(t for t in tensors if t not in outputs),
        outputs=tuple(outputs),
        control_inputs=tuple(sorted(after)),
    )


def _tensor(reader: _Reader, spec: Any, role: Role = Role.ACTIVATION) -> int:
    if spec not in reader.tensor_of:
        index = reader.tensor_of[spec] = len(reader.tensors)
        spec.realign(reader.alignment)
        is_counted = spec in reader.counted
        reader.tensors.append(
            Tensor(
                name=f"t{index}",
                shape=(),
                dtype="uint8",
                bytes=spec.allocated_memory if is_counted else 0,
                role=role if is_counted else Role.PARAMETER,
                storage=index,
            )
        )
    return reader.tensor_of[spec]


def _storages_at(node: Node) -> Iterator[Any]:
    for spec in get_node_tensor_specs(node):
        if hasattr(spec, "storage_base"):
            yield storage_of(spec)


def _written_by(node: Node) -> Iterator[Any]:
    """Yield the storages that a kernel writes to, its results included."""
    schema = getattr(node.target, "_schema", None)
    for position, argument in enumerate(schema.arguments if schema is not None else ()):
        alias = argument.alias_info
        if alias is None or not alias.is_write:
            continue
        given = node.args[position] if position < len(node.args) else None
        given = node.kwargs.get(argument.name, given)
        for leaf in tree_leaves(given):
            if isinstance(leaf, torch.fx.Node):
                yield from _storages_at(leaf)


def _is_opaque(node: Node) -> bool:
    """Return whether a call may do more than its schema says: delegates, bodies, own operators."""
    if node.target in (memory.view, operator.getitem):
        return False
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return getattr(node.target, "__module__", "").split(".")[0] not in ("_operator", "math")
    return schema.name.split("::")[0] not in PLAIN


def _is_mutable(node: Node, signature: Any) -> bool:
    """Return whether a placeholder is a buffer that the program changes: it is never freed."""
    if signature is None:
        return False
    name = signature.inputs_to_buffers.get(node.target)
    return name is not None and name in signature.buffers_to_mutate.values()
