"""Calls of PyTorch operators, one after another -> Graph: storages, mutation, order of effects."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

import torch

from regal.cost.work import op_flops
from regal.errors import ModelError
from regal.frontends.torch.dtypes import dtype_name
from regal.graph.types import ABSENT, Graph, Op, Role, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from regal.graph.types import AttributeValue

ALIGNMENT = 64  # bytes: what PyTorch's CPU allocator aligns to
MOST_ATTRIBUTE_INTS = 16
MOST_CHARACTERS = 64
# Kernels that write to arguments when training, although their schemas do not say so.
RUNNING = ("running_mean", "running_var")
UNDECLARED = {  # operator -> the argument that says so, what is written
    "aten::native_batch_norm": ("training", RUNNING),
    "aten::cudnn_batch_norm": ("training", RUNNING),
    "aten::batch_norm": ("training", RUNNING),
    "aten::instance_norm": ("use_input_stats", RUNNING),
}
IMPURE = frozenset({"aten::sym_constrain_range", "aten::_print", "aten::_assert_async"})
# Operators of other namespaces may do anything besides computing: they keep their order.
PURE_NAMESPACES = frozenset({"aten", "prims", "quantized", "quantized_decomposed", "torchvision"})


@dataclass(slots=True)
class Builder:
    """A graph while its calls are read, in the order in which they run.

    Values share a storage where their tensors (fake ones do) share memory. A call that writes
    to an input comes after all earlier users of that memory and before all later ones; calls
    that draw random numbers keep their order.
    """

    tensors: list[Tensor] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    storages: dict[int, int] = field(default_factory=dict)  # identity of memory -> storage
    kept: list[Any] = field(default_factory=list)  # memory whose identity must not be reused
    writer: dict[int, int] = field(default_factory=dict)  # storage -> last op that mutates it
    users: dict[int, list[int]] = field(default_factory=dict)  # storage -> ops since then
    latest: dict[int, int] = field(default_factory=dict)  # storage -> its newest tensor
    last_effect: int = ABSENT
    number_of: Callable[[Any], int] = int  # a size -> its number; symbols are bound here


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of an operator: `arguments` by name where the operator has names for them."""

    name: str
    target: object
    arguments: Mapping[str, object]
    inputs: tuple[int, ...]
    results: tuple[torch.Tensor, ...]
    mutated: tuple[int, ...]  # tensors among the inputs that it writes to
    bodies: tuple[Graph, ...] = ()
    after: tuple[int, ...] = ()  # ops whose results are no tensors and are needed here
    in_place: tuple[tuple[int, int], ...] = ()  # see `Op.in_place`


def add_value(builder: Builder, name: str, value: torch.Tensor, role: Role) -> int:
    """Add one tensor and return its number; inputs become inputs of the graph.

    Raises:
        ModelError: its sizes are not numbers.
    """
    try:
        shape = tuple(builder.number_of(size) for size in value.shape)
        size = value.element_size() * prod(shape)
    except (TypeError, ValueError, RuntimeError):
        raise ModelError(f"value '{name}' has sizes that are not numbers: bind them") from None
    index = len(builder.tensors)
    storage = _storage_of(builder, value, index)
    held = _held_bytes(builder, value, size)
    builder.tensors.append(
        Tensor(
            name=name,
            shape=shape,
            dtype=dtype_name(value.dtype),
            # An expanded view is larger than what it lies in; of what is first seen by one of
            # its parts, all is alive.
            bytes=held if storage == index else min(size, held),
            role=role,
            storage=storage,
            storage_offset=_offset_of(builder, value, size, held) if storage != index else 0,
        )
    )
    builder.latest[storage] = index
    if role is Role.INPUT:
        builder.inputs.append(index)
    return index


def known_value(builder: Builder, value: torch.Tensor) -> int | None:
    """Return the newest tensor that lies in the memory of `value`, None if there is none."""
    key = memory_of(value)
    storage = builder.storages.get(key[0]) if key is not None else None
    return None if storage is None else builder.latest[storage]


def add_call(builder: Builder, call: Call) -> tuple[int, ...]:
    """Add one op and return the numbers of its results."""
    outputs = tuple(
        add_value(builder, f"{call.name}.{i}" if i else call.name, value, Role.ACTIVATION)
        for i, value in enumerate(call.results)
    )
    mutated = {builder.tensors[t].storage for t in call.mutated}
    op = Op(
        name=call.name,
        kind=kind_of(call.target),
        inputs=call.inputs,
        outputs=outputs,
        control_inputs=_earlier_ops(builder, call, outputs, mutated),
        in_place=call.in_place,
        subgraphs=call.bodies,
        attributes=dict(_attributes(call.arguments)),
    )
    builder.ops.append(replace(op, flops=op_flops(op, builder.tensors, "torch")))
    return outputs


def finished_graph(builder: Builder, name: str, outputs: Iterable[int], *, is_body: bool) -> Graph:
    """Return the graph of all calls so far.

    Returned activations become outputs; parameters that were written to are state.
    """
    tensors = list(builder.tensors)
    given = tuple(dict.fromkeys(outputs))
    for index in given:
        if tensors[index].role is Role.ACTIVATION:
            tensors[index] = replace(tensors[index], role=Role.OUTPUT)
    for index, tensor in enumerate(tensors):
        if tensor.role is Role.PARAMETER and tensor.storage in builder.writer:
            tensors[index] = replace(tensor, role=Role.STATE)
    return Graph(
        name=name,
        framework="torch",
        ops=tuple(builder.ops),
        tensors=tuple(tensors),
        inputs=() if is_body else tuple(builder.inputs),
        outputs=given,
        alignment=ALIGNMENT,
    )


def kind_of(target: object) -> str:
    """Return the name of an operator: "aten.add.Tensor", "cond"."""
    if isinstance(target, torch._ops.OpOverload):
        return str(target)
    return str(getattr(target, "__name__", target))


def named_arguments(
    target: object, args: Sequence[object], kwargs: Mapping[str, object]
) -> dict[str, object]:
    """Return the arguments of a call by the names of its schema; without one, by position."""
    schema = getattr(target, "_schema", None)
    names = [argument.name for argument in schema.arguments] if schema is not None else []
    found = {
        names[position] if position < len(names) else str(position): value
        for position, value in enumerate(args)
    }
    return found | dict(kwargs)


def mutated_arguments(target: object, arguments: Mapping[str, object]) -> Iterator[object]:
    """Return the arguments that a call writes to: as its schema says, or as its kernel does."""
    schema = getattr(target, "_schema", None)
    if schema is not None and schema.name in UNDECLARED:
        condition, written = UNDECLARED[schema.name]
        if arguments.get(condition):
            yield from (arguments.get(name) for name in written)
    for argument in schema.arguments if schema is not None else ():
        alias = argument.alias_info
        if alias is not None and alias.is_write and argument.name in arguments:
            yield arguments[argument.name]


def memory_of(value: torch.Tensor) -> tuple[int, torch.UntypedStorage] | None:
    """Return the identity of the memory of a tensor; None: sparse ones and their like."""
    try:
        memory = value.untyped_storage()
        return memory._cdata, memory
    except (NotImplementedError, RuntimeError):
        return None


def has_effect(target: object) -> bool:
    """Return whether a call draws random numbers or is impure otherwise."""
    if torch.Tag.nondeterministic_seeded in getattr(target, "tags", ()):
        return True
    if not isinstance(target, torch._ops.OpOverload):
        return False
    return target._schema.name in IMPURE or target.namespace not in PURE_NAMESPACES


def _earlier_ops(
    builder: Builder, call: Call, outputs: Sequence[int], mutated: set[int]
) -> tuple[int, ...]:
    """Return the ops that a call must follow, and note what it does to memory."""
    index = len(builder.ops)
    after: set[int] = set(call.after)
    touched = {builder.tensors[t].storage for t in (*call.inputs, *outputs)}
    for storage in touched:
        if storage in builder.writer:
            after.add(builder.writer[storage])
        if storage in mutated:
            after.update(builder.users.get(storage, ()))
    for storage in mutated:
        builder.writer[storage] = index
        builder.users[storage] = []
    for storage in touched:
        builder.users.setdefault(storage, []).append(index)
    if has_effect(call.target):
        if builder.last_effect != ABSENT:
            after.add(builder.last_effect)
        builder.last_effect = index
    return tuple(sorted(after))


def _storage_of(builder: Builder, value: torch.Tensor, index: int) -> int:
    found = memory_of(value)
    if found is None:
        return index
    key, memory = found
    if key not in builder.storages:
        builder.storages[key] = index
        builder.kept.append(memory)
    return builder.storages[key]


def _held_bytes(builder: Builder, value: torch.Tensor, size: int) -> int:
    """Return the bytes of the memory in which a tensor lies; `size` where that is not known."""
    found = memory_of(value)
    return size if found is None else builder.number_of(value.untyped_storage().nbytes())


def _offset_of(builder: Builder, value: torch.Tensor, size: int, held: int) -> int:
    """Return where a view begins in its storage; an expanded one never passes the end."""
    if memory_of(value) is None:
        return 0
    offset = builder.number_of(value.storage_offset()) * value.element_size()
    return offset if offset + size <= held else 0


def _attributes(arguments: Mapping[str, object]) -> Iterator[tuple[str, AttributeValue]]:
    """Return the plain arguments: numbers, short texts, and short lists of integers."""
    for name, value in arguments.items():
        if isinstance(value, bool | int | float | str) and len(str(value)) <= MOST_CHARACTERS:
            yield name, value
        elif numbers := _short_list(value):
            yield name, numbers


def _short_list(value: object) -> tuple[int, ...]:
    """Return a short list of integers; () for what is none."""
    if not isinstance(value, list | tuple) or len(value) > MOST_ATTRIBUTE_INTS:
        return ()
    return tuple(value) if all(type(item) is int for item in value) else ()
