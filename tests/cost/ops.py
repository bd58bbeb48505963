"""Single ops as the cost rules see them."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from regal.cost.operands import BITS
from regal.graph.types import ABSENT, Graph, Op, Role, Tensor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from regal.graph.types import AttributeValue

Shape = tuple[int, ...]


def tensor(
    shape: Shape, dtype: str = "float32", role: Role = Role.ACTIVATION, index: int = 0
) -> Tensor:
    size = prod(shape) * BITS[dtype] // 8
    return Tensor(name=f"t{index}", shape=shape, dtype=dtype, bytes=size, role=role, storage=index)


def single(
    framework: str,
    kind: str,
    inputs: Sequence[Shape | Tensor | None],
    outputs: Sequence[Shape | Tensor],
    attributes: Mapping[str, AttributeValue] | None = None,
    **fields: object,
) -> Graph:
    """Return a graph of one op; shapes become float32 activations."""
    tensors: list[Tensor] = []

    def add(item: Shape | Tensor | None) -> int:
        if item is None:
            return ABSENT
        tensors.append(item if isinstance(item, Tensor) else tensor(item, index=len(tensors)))
        return len(tensors) - 1

    op = Op(
        name="op",
        kind=kind,
        inputs=tuple(add(item) for item in inputs),
        outputs=tuple(add(item) for item in outputs),
        attributes=dict(attributes or {}),
        **fields,  # type: ignore[arg-type]
    )
    return Graph(
        name="one",
        framework=framework,
        ops=(op,),
        tensors=tuple(tensors),
        inputs=(),
        outputs=(),
    )
