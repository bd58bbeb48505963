"""fx graph modules of ATen operators -> Graph. Needs torch, imported by the caller already."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch.fx.node import map_arg

from regal.errors import ModelError
from regal.graph.types import ABSENT, Graph, Op, Role, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from torch.fx import GraphModule, Node

    from regal.graph.types import AttributeValue

ALIGNMENT = 64  # bytes: what PyTorch's CPU allocator aligns to
MOST_ATTRIBUTE_INTS = 16
# Higher-order operators: positions of the bodies and of the operands among the arguments.
BODIES_OF = {"cond": ((1, 2), (0, 3)), "while_loop": ((0, 1), (2, 3)), "scan": ((0,), (1, 2, 3))}


@dataclass(slots=True)
class _Reader:
    """What is known while the nodes of one graph are read in order."""

    module: GraphModule
    roles: Mapping[str, Role]
    is_body: bool
    tensors: list[Tensor] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    values: dict[Node, tuple[int, ...]] = field(default_factory=dict)  # node -> its tensors
    storages: dict[int, int] = field(default_factory=dict)  # identity of memory -> storage
    kept: list[Any] = field(default_factory=list)  # storages whose identity must not be reused
    writer: dict[int, int] = field(default_factory=dict)  # storage -> last op that mutates it
    users: dict[int, list[int]] = field(default_factory=dict)  # storage -> ops since then
    last_effect: int = ABSENT


def graph_of(
    module: GraphModule, name: str, roles: Mapping[str, Role] | None = None, *, is_body: bool = False
) -> Graph:
    """Return the graph of an fx module in the order of its nodes.

    Args:
        module: every tensor node has `meta["val"]`, a fake tensor or a tuple of them.
        name: of the graph.
        roles: placeholder name -> PARAMETER or STATE; the others are inputs.
        is_body: its placeholders are values of the outer graph.

    Tensors share a storage where their fake tensors do. An operator that mutates an input
    comes after all earlier users of that memory and before all later ones. Random operators
    keep their order.

    Raises:
        ModelError: a node without a value, or with sizes that are not numbers.

    Cost: O(nodes + edges).
    """
    reader = _Reader(module, roles or {}, is_body)
    outputs: tuple[int, ...] = ()
    for node in module.graph.nodes:
        if node.op == "placeholder":
            _read_placeholder(reader, node)
        elif node.op == "get_attr":
            _read_attribute(reader, node)
        elif node.op == "call_function":
            _read_call(reader, node)
        elif node.op == "output":
            outputs = tuple(dict.fromkeys(_tensors_in(reader, node.args)))
        else:
            raise ModelError(f"graph '{name}': node '{node.name}' is a {node.op}; export it first")
    return Graph(
        name=name,
        framework="torch",
        ops=tuple(reader.ops),
        tensors=_with_outputs(reader, outputs),
        inputs=() if is_body else tuple(reader.inputs),
        outputs=outputs,
        alignment=ALIGNMENT,
    )


def _with_outputs(reader: _Reader, outputs: Sequence[int]) -> tuple[Tensor, ...]:
    """Return the tensors, the returned activations marked as outputs."""
    from dataclasses import replace

    tensors = list(reader.tensors)
    for index in outputs:
        if tensors[index].role is Role.ACTIVATION:
            tensors[index] = replace(tensors[index], role=Role.OUTPUT)
    return tuple(tensors)


def _read_placeholder(reader: _Reader, node: Node) -> None:
    role = Role.CAPTURED if reader.is_body else reader.roles.get(node.name, Role.INPUT)
    made = tuple(_add(reader, node.name, value, role) for value in _leaves(node))
    reader.values[node] = made
    if role is Role.INPUT:
        reader.inputs += made


def _read_attribute(reader: _Reader, node: Node) -> None:
    """A constant of the module; submodules (bodies) are read by the node that uses them."""
    value = node.meta.get("val")
    target: Any = reader.module
    for part in str(node.target).split("."):
        target = getattr(target, part, None)
    if isinstance(target, torch.nn.Module):
        reader.values[node] = ()
        return
    value = target if value is None else value
    is_tensor = isinstance(value, torch.Tensor)
    role = reader.roles.get(node.name, Role.CONSTANT)
    reader.values[node] = (_add(reader, node.name, value, role),) if is_tensor else ()


def _read_call(reader: _Reader, node: Node) -> None:
    if node.target is operator.getitem and isinstance(node.args[1], int):
        whole = reader.values[node.args[0]]  # type: ignore[index]
        at = _position_of(node.args[0], node.args[1])  # type: ignore[arg-type]
        reader.values[node] = (whole[at],) if at is not None and at < len(whole) else ()
        return
    inputs = tuple(_tensors_in(reader, (node.args, node.kwargs)))
    outputs = tuple(
        _add(reader, f"{node.name}.{i}" if i else node.name, value, Role.ACTIVATION)
        for i, value in enumerate(_leaves(node))
    )
    if not outputs and not inputs:  # arithmetic on sizes
        reader.values[node] = ()
        return
    reader.values[node] = outputs
    mutated = set(_mutated(reader, node))
    bodies = tuple(_bodies(reader, node))
    reader.ops.append(
        Op(
            name=node.name,
            kind=_kind_of(node.target),
            inputs=inputs,
            outputs=outputs,
            control_inputs=tuple(sorted(_order_after(reader, inputs, outputs, mutated, node))),
            captures=0,
            subgraphs=bodies,
            in_place=(),
            attributes=_attributes(node),
        )
    )


def _order_after(
    reader: _Reader,
    inputs: Sequence[int],
    outputs: Sequence[int],
    mutated: set[int],
    node: Node,
) -> set[int]:
    """Return the earlier ops that this one must follow, and note what it does to memory."""
    index = len(reader.ops)
    after: set[int] = set()
    for tensor in {*inputs, *outputs}:
        storage = reader.tensors[tensor].storage
        if storage in reader.writer:
            after.add(reader.writer[storage])
        if storage in mutated:
            after.update(reader.users.get(storage, ()))
    for storage in mutated:
        reader.writer[storage] = index
        reader.users[storage] = []
    for tensor in {*inputs, *outputs}:
        reader.users.setdefault(reader.tensors[tensor].storage, []).append(index)
    if _has_effect(node.target):
        if reader.last_effect != ABSENT:
            after.add(reader.last_effect)
        reader.last_effect = index
    after.discard(index)
    return after


def _has_effect(target: object) -> bool:
    """Return whether the operator draws random numbers or is impure otherwise."""
    tags = getattr(target, "tags", ())
    if torch.Tag.nondeterministic_seeded in tags:
        return True
    schema = getattr(target, "_schema", None)
    return schema is not None and schema.name in ("aten::sym_constrain_range", "aten::_print")


def _mutated(reader: _Reader, node: Node) -> Iterable[int]:
    """Return the storages that the operator writes to among its inputs."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return
    for position, argument in enumerate(schema.arguments):
        alias = argument.alias_info
        if alias is None or not alias.is_write:
            continue
        given = (
            node.args[position]
            if position < len(node.args)
            else node.kwargs.get(argument.name)
        )
        for tensor in _tensors_in(reader, given):
            yield reader.tensors[tensor].storage


def _bodies(reader: _Reader, node: Node) -> Iterable[Graph]:
    positions = BODIES_OF.get(_kind_of(node.target), ((), ()))[0]
    for position in positions:
        attribute = node.args[position]
        body = getattr(reader.module, str(getattr(attribute, "target", "")), None)
        if body is not None:
            yield graph_of(body, f"{node.name}.{position}", is_body=True)


def _leaves(node: Node) -> list[Any]:
    """Return the tensors that a node yields, None for results that are not tensors left out."""
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, tuple | list):
        return [item for item in value if isinstance(item, torch.Tensor)]
    return []


def _position_of(node: Node, index: int) -> int | None:
    """Return where result `index` of a node stands among its tensors."""
    value = node.meta.get("val")
    if not isinstance(value, tuple | list):
        return None
    if not isinstance(value[index], torch.Tensor):
        return None
    return sum(isinstance(item, torch.Tensor) for item in value[: index % len(value)])


def _tensors_in(reader: _Reader, argument: object) -> list[int]:
    found: list[int] = []

    def visit(node: Node) -> Node:
        found.extend(reader.values.get(node, ()))
        return node

    map_arg(argument, visit)  # type: ignore[arg-type]
    return found


def _add(reader: _Reader, name: str, value: torch.Tensor, role: Role) -> int:
    try:
        shape = tuple(int(size) for size in value.shape)
        size = value.element_size() * value.numel()
    except (TypeError, ValueError, RuntimeError):
        raise ModelError(f"value '{name}' has sizes that are not numbers: bind them") from None
    index = len(reader.tensors)
    storage = _storage(reader, value, index)
    reader.tensors.append(
        Tensor(
            name=name,
            shape=shape,
            dtype=str(value.dtype).removeprefix("torch."),
            bytes=int(size),
            role=role if storage == index or role is not Role.ACTIVATION else role,
            storage=storage,
            storage_offset=_offset(value) if storage != index else 0,
        )
    )
    return index


def _storage(reader: _Reader, value: torch.Tensor, index: int) -> int:
    try:
        memory = value.untyped_storage()
        key = memory._cdata
    except (NotImplementedError, RuntimeError):  # sparse and other tensors without one
        return index
    if key not in reader.storages:
        reader.storages[key] = index
        reader.kept.append(memory)
    return reader.storages[key]


def _offset(value: torch.Tensor) -> int:
    """Return where a view begins in its storage; an expanded one never passes the end."""
    offset = int(value.storage_offset()) * value.element_size()
    held = int(value.untyped_storage().nbytes())
    size = value.element_size() * value.numel()
    return offset if offset + size <= held else 0


def _kind_of(target: object) -> str:
    """Return the name of an operator: "aten.add.Tensor", "cond"."""
    if isinstance(target, torch._ops.OpOverload):
        return str(target)
    return str(getattr(target, "__name__", target))


def _attributes(node: Node) -> dict[str, AttributeValue]:
    """Return the plain arguments of a call, by the names of its schema."""
    schema = getattr(node.target, "_schema", None)
    names = [argument.name for argument in schema.arguments] if schema else []
    found: dict[str, AttributeValue] = {}
    for position, value in enumerate(node.args):
        key = names[position] if position < len(names) else str(position)
        _note(found, key, value)
    for key, value in node.kwargs.items():
        _note(found, key, value)
    return found


def _note(found: dict[str, AttributeValue], key: str, value: object) -> None:
    if isinstance(value, bool | int | float):
        found[key] = value
    elif isinstance(value, list | tuple) and len(value) <= MOST_ATTRIBUTE_INTS:
        if value and all(type(item) is int for item in value):
            found[key] = tuple(value)
