"""Find a shape for inputs about which the file says nothing, not even the number of dimensions."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from regal.errors import ModelError
from regal.frontends.tensorflow.light import Bound
from regal.frontends.tensorflow.values import full

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from regal.frontends.tensorflow.flat import Edge, Flat
    from regal.frontends.tensorflow.values import Partial

MOST_RANK = 4  # that is tried


def bound_edges(
    flat: Flat,
    shapes: Mapping[int, Partial | None],
    inferred: Callable[[Mapping[Edge, Bound]], Mapping[Edge, Partial | None]],
    refusal: Callable[[Mapping[Edge, Bound], list[int]], str],
) -> tuple[dict[Edge, Bound], list[str]]:
    """Return a full shape for every input, and notes on those whose rank nobody knows.

    Such an input takes the shape that a Reshape of it yields; else the lowest rank of ones,
    from a scalar on, that TensorFlow's rules for its readers accept.

    Args:
        flat: the entry.
        shapes: what is fixed; None where not even the rank is known.
        inferred: what TensorFlow infers under some bounds.
        refusal: what TensorFlow says against some nodes under some bounds, or "".

    Raises:
        ModelError: no such shape fits an input.
    """
    bound: dict[Edge, Bound] = {}
    for node, shape in shapes.items():
        whole = full(shape)
        if whole is not None:
            bound[node, 0] = Bound(whole)
    unknown = [node for node, shape in shapes.items() if shape is None]
    if not unknown:
        return bound, []
    found = inferred(bound)
    notes = []
    for node in unknown:
        shape = _from_reshape(flat, node, found)
        readers = [i for i, n in enumerate(flat.nodes) if any(p == node for p, _ in n.inputs)]
        if shape is None:
            shape = _lowest_rank(node, bound, readers, refusal)
        if shape is None:
            raise ModelError(
                f"nothing is known about the shape of input '{flat.nodes[node].name}'"
                f" - give --shape {flat.nodes[node].name}=DIMS"
            )
        bound[node, 0] = Bound(shape)
        said = ",".join(map(str, shape)) or "scalar"
        notes.append(
            f"input '{flat.nodes[node].name}' has no shape in the file: planned for {said}"
        )
    return bound, notes


def _from_reshape(
    flat: Flat, node: int, found: Mapping[Edge, Partial | None]
) -> tuple[int, ...] | None:
    for position, reader in enumerate(flat.nodes):
        if reader.kind == "Reshape" and reader.inputs[0][0] == node:
            shape = found.get((position, 0))
            if shape and prod(size or 1 for size in shape) > 1:
                return tuple(1 if size is None else size for size in shape)
    return None


def _lowest_rank(
    node: int,
    bound: Mapping[Edge, Bound],
    readers: list[int],
    refusal: Callable[[Mapping[Edge, Bound], list[int]], str],
) -> tuple[int, ...] | None:
    for rank in range(MOST_RANK + 1):
        shape = (1,) * rank
        if not refusal({**bound, (node, 0): Bound(shape)}, readers):
            return shape
    return None
