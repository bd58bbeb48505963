"""Which operators may write their result over an argument that dies, and how they are told to."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch.fx import Node

    Way = tuple[torch._ops.OpOverload, str]

# Element by element like those with the tag "pointwise", which PyTorch 2.13 forgets on them.
ALSO_POINTWISE = frozenset(
    {
        "aten::elu_backward",
        "aten::hardsigmoid_backward",
        "aten::hardtanh_backward",
        "aten::leaky_relu_backward",
        "aten::log_sigmoid_backward",
        "aten::softplus_backward",
    }
)


def overwritable_arguments(node: Node) -> Iterator[int]:
    """Yield the positions of the arguments over which a call may write its one result.

    An argument has the shape, strides and dtype of the result, for all sizes that symbols may
    take. Whether it dies there, and whose memory it is, is asked elsewhere.
    """
    target = node.target
    result = node.meta.get("val")
    if not isinstance(target, torch._ops.OpOverload) or not isinstance(result, torch.Tensor):
        return
    for position, argument in enumerate(node.args):
        value = getattr(argument, "meta", {}).get("val")
        if (
            isinstance(value, torch.Tensor)
            and way_of(target, position) is not None
            and layout_of(value) == layout_of(result)
        ):
            yield position


def is_pointwise(target: torch._ops.OpOverload) -> bool:
    """Return whether every element of the result depends on one element of each argument."""
    return torch.Tag.pointwise in target.tags or target._schema.name in ALSO_POINTWISE


@cache
def way_of(target: torch._ops.OpOverload, position: int) -> Way | None:
    """Return the operator that writes the result of `target` over an argument; None: no such one.

    The second part is the name of the argument that takes the result: "" if the operator
    overwrites its first argument anyhow. Kernels that PyTorch generates from others are left
    out: they compute elsewhere and copy.
    """
    if target.namespace != "aten" or len(target._schema.returns) != 1:
        return None
    if any(argument.alias_info is not None for argument in target._schema.arguments):
        return None
    if position == 0 and (found := _mutating(target)) is not None:
        return found, ""
    return _with_out(target) if is_pointwise(target) else None


def layout_of(value: torch.Tensor) -> tuple[object, ...]:
    """Return what two tensors that may take each other's memory have in common.

    Symbolic sizes compare as expressions: no guard is added.
    """
    if value.layout is not torch.strided:
        return (id(value),)
    numbers = (*value.shape, *value.stride())
    return value.dtype, value.device, value.dim(), *map(_expression, numbers)


def _mutating(target: torch._ops.OpOverload) -> torch._ops.OpOverload | None:
    """Return relu_ for relu, if it has a kernel of its own."""
    name = target._schema.name.removeprefix("aten::")
    packet = getattr(torch.ops.aten, f"{name}_", None)
    overload = target._overloadname
    if packet is None or overload not in packet.overloads():
        return None
    found = getattr(packet, overload)
    first = found._schema.arguments[0].alias_info
    matches = _signature(found) == _signature(target)
    if not matches or first is None or not first.is_write or torch.Tag.generated in found.tags:
        return None
    return found


def _with_out(target: torch._ops.OpOverload) -> Way | None:
    """Return the operator that takes where to write, and the name of that argument."""
    packet = target.overloadpacket
    for overload in packet.overloads():
        found = getattr(packet, overload)
        arguments = found._schema.arguments
        if (
            arguments
            and arguments[-1].kwarg_only
            and arguments[-1].is_out
            and _signature(found)[:-1] == _signature(target)
            and torch.Tag.generated not in found.tags
        ):
            return found, str(arguments[-1].name)
    return None


def _signature(operator: torch._ops.OpOverload) -> list[tuple[str, str]]:
    return [(argument.name, str(argument.type)) for argument in operator._schema.arguments]


def _expression(number: Any) -> object:
    return number.node.expr if isinstance(number, torch.SymInt) else int(number)
