"""Lists of tensors that are passed on as values: what TensorFlow 2 makes of arrays in loops."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from regal.frontends.tensorflow.kinds import IDENTITIES, MERGE, SWITCH
from regal.frontends.tensorflow.light import Bound
from regal.frontends.tensorflow.ops import FLOAT, VARIANT
from regal.frontends.tensorflow.values import Shape, bytes_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from regal.frontends.tensorflow.flat import Edge, Flat, Node

PREFIX = "TensorList"
_MAKERS = frozenset({"TensorListFromTensor", "TensorListScatter", "TensorListScatterV2"})
_RESERVERS = frozenset({"EmptyTensorList", "TensorListReserve"})
# Operators that change a list in place if nobody else holds it -> the input that they put in.
_WRITERS: Mapping[str, int | None] = {
    "TensorListSetItem": 2,
    "TensorListPushBack": 1,
    "TensorListPopBack": None,
    "TensorListResize": None,
}
KEEPERS = frozenset(_WRITERS)


@dataclass(frozen=True, slots=True)
class TensorList:
    """What is known about a list. One whose length nobody knows is counted with one element."""

    dtype: int = FLOAT
    shape: Shape | None = None  # of an element
    count: int | None = None

    @property
    def bytes(self) -> int:
        """Return what the elements take."""
        return 0 if self.shape is None else bytes_of(self.shape, self.dtype) * (self.count or 1)


def find_lists(
    flat: Flat,
    order: Sequence[int],
    shapes: Mapping[Edge, Shape],
    values: Mapping[Edge, tuple[int, ...]],
    given: Mapping[Edge, TensorList],
) -> dict[Edge, TensorList]:
    """Return what is known about the lists of a graph.

    Args:
        flat: the graph.
        order: its nodes, producers first.
        shapes: shapes that are known.
        values: integers that are known.
        given: lists that come from outside, or out of functions.
    """
    lists = dict(given)
    for position in order:
        node = flat.nodes[position]
        edge = (position, 0)
        if edge in given or not node.results or VARIANT not in node.results:
            continue
        if node.kind in _MAKERS:
            whole = shapes.get(node.inputs[0])
            if whole:
                lists[edge] = TensorList(_dtype(node), whole[1:], whole[0])
        elif node.kind in _RESERVERS:
            shape, count = (values.get(e) for e in node.inputs)
            is_whole = shape is not None and min(shape, default=0) >= 0
            length = count[0] if count and node.kind == "TensorListReserve" else None
            lists[edge] = TensorList(_dtype(node), shape if is_whole else None, length)
        elif node.kind in _WRITERS and node.inputs[0] in lists:
            lists[edge] = _written(node, lists[node.inputs[0]], shapes)
        elif node.kind in IDENTITIES or node.kind in SWITCH or node.kind in MERGE:
            source = next((lists[e] for e in node.inputs if e in lists), None)
            for k in range(len(node.results)):
                if source is not None:
                    lists[position, k] = source
    return lists


def _dtype(node: Node) -> int:
    return int(node.proto.attr["element_dtype"].type) or FLOAT


def _written(node: Node, before: TensorList, shapes: Mapping[Edge, Shape]) -> TensorList:
    which = _WRITERS[node.kind]
    if which is None or before.shape is not None:
        return before
    return replace(before, shape=shapes.get(node.inputs[which]))


def read_bounds(
    flat: Flat, open_nodes: Sequence[int], lists: Mapping[Edge, TensorList]
) -> dict[Edge, Bound]:
    """Return the shapes of what `open_nodes` read from lists."""
    fresh: dict[Edge, Bound] = {}
    for position in open_nodes:
        node = flat.nodes[position]
        found = lists.get(node.inputs[0]) if node.kind.startswith(PREFIX) and node.inputs else None
        if found is None or found.shape is None:
            continue
        rows = found.count or 1
        if node.kind == "TensorListGetItem":
            fresh[position, 0] = Bound(found.shape)
        elif node.kind == "TensorListPopBack":
            fresh[position, 1] = Bound(found.shape)
        elif node.kind in ("TensorListStack", "TensorListGather"):
            fresh[position, 0] = Bound((rows, *found.shape))
        elif node.kind in ("TensorListConcat", "TensorListConcatV2") and found.shape:
            fresh[position, 0] = Bound((rows * found.shape[0], *found.shape[1:]))
            fresh[position, 1] = Bound((rows,))
    return fresh
