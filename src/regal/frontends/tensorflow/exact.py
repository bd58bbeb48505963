"""Shapes that TensorFlow's inference leaves open although they follow from the graph."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from regal.frontends.tensorflow.light import Bound
from regal.frontends.tensorflow.values import Shape, full, shape_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Protocol

    from regal.frontends.tensorflow.flat import Edge, Flat, Node
    from regal.frontends.tensorflow.inference import Inference
    from regal.frontends.tensorflow.resources import Resources

    class Known(Protocol):
        """A graph and what is known about its results."""

        @property
        def flat(self) -> Flat:
            """Return the graph."""

        @property
        def resources(self) -> Resources:
            """Return what its nodes share."""

        @property
        def shapes(self) -> Mapping[Edge, Shape]:
            """Return the shapes that are known."""

        @property
        def values(self) -> Mapping[Edge, tuple[int, ...]]:
            """Return the integers that are known."""


_READS = frozenset(
    {"StackPop", "StackPopV2", "TensorArrayReadV2", "TensorArrayReadV3", "TensorArrayRead"}
)
_GATHERS = frozenset({"TensorArrayGatherV2", "TensorArrayGatherV3", "TensorArrayGather"})
_CONCATS = frozenset({"TensorArrayConcatV2", "TensorArrayConcatV3", "TensorArrayConcat"})
_GRADIENTS = frozenset(
    {"TensorArrayGradV2", "TensorArrayGradV3", "TensorArrayGrad", "TensorArrayGradWithShape"}
)
CONTAINER_READS = _READS | _GATHERS | _CONCATS


def exact_bounds(state: Inference, open_nodes: list[int]) -> dict[Edge, Bound]:
    """Return results of `open_nodes` that follow exactly from what is known."""
    rules: Mapping[str, Callable[[Inference, int, Elements], dict[Edge, Bound]]] = {
        **dict.fromkeys(_READS, _read),
        **dict.fromkeys(_GATHERS, _gather),
        **dict.fromkeys(_CONCATS, _concat),
        "Reshape": _reshape,
        "ReadVariableOp": _read_variable,
    }
    wanted = [i for i in open_nodes if state.flat.nodes[i].kind in rules]
    if not wanted:
        return {}
    elements = Elements(state)
    fresh: dict[Edge, Bound] = {}
    for position in wanted:
        fresh |= rules[state.flat.nodes[position].kind](state, position, elements)
    return fresh


class Elements:
    """What lies in stacks and arrays of tensors: the shape of an element, and how many."""

    def __init__(self, state: Known) -> None:
        self.shapes: dict[int, Shape] = {}
        self.counts: dict[int, int] = {}
        twins: list[tuple[int, int]] = []
        for position, node in enumerate(state.flat.nodes):
            if ("TensorArray" not in node.kind and "Stack" not in node.kind) or not node.inputs:
                continue
            made = state.resources.at((position, 0))
            handle = state.resources.at(node.inputs[0])
            if node.kind in _GRADIENTS and made is not None and handle is not None:
                twins.append((handle, made))
            elif node.kind.startswith("TensorArrayV") and made is not None:
                self._note_array(state, position, made)
            elif handle is not None:
                self._note_write(state, node, handle)
        for first, second in [*twins, *twins[::-1]]:  # a gradient looks like its array
            for a, b in ((first, second), (second, first)):
                if a in self.shapes:
                    self.shapes.setdefault(b, self.shapes[a])
                if a in self.counts:
                    self.counts.setdefault(b, self.counts[a])

    def _note_array(self, state: Known, position: int, made: int) -> None:
        node = state.flat.nodes[position]
        if "element_shape" in node.proto.attr:
            shape = full(shape_of(node.proto.attr["element_shape"].shape))
            # No shape at all is how older files say that it is not known.
            if shape:
                self.shapes.setdefault(made, shape)
        size = state.values.get(node.inputs[0])
        if size and size[0] > 0:  # an array that grows begins with 0
            self.counts.setdefault(made, size[0])

    def _note_write(self, state: Known, node: Node, handle: int) -> None:
        which = {"Push": 1, "Write": 2, "Scatter": 2, "Unpack": 1, "Split": 1}
        for word, operand in which.items():
            if word in node.kind and operand < len(node.inputs):
                value = state.shapes.get(node.inputs[operand])
                if value is None:
                    return
                if word in ("Push", "Write"):
                    self.shapes.setdefault(handle, value)
                elif value:
                    rest = value[1:]
                    if word == "Split":
                        parts = state.shapes.get(node.inputs[2], (1,))
                        count = max(prod(parts), 1)
                        rest = (-(-value[0] // count), *rest)
                        self.counts.setdefault(handle, count)
                    else:
                        self.counts.setdefault(handle, value[0])
                    self.shapes.setdefault(handle, rest)
                return

    def at(self, state: Known, edge: Edge) -> tuple[Shape | None, int | None]:
        """Return (shape of an element, number of elements) behind a handle."""
        number = state.resources.at(edge)
        if number is None:
            return None, None
        return self.shapes.get(number), self.counts.get(number)


def _read(state: Inference, position: int, elements: Elements) -> dict[Edge, Bound]:
    shape, _ = elements.at(state, state.flat.nodes[position].inputs[0])
    return {} if shape is None else {(position, 0): Bound(shape)}


def _gather(state: Inference, position: int, elements: Elements) -> dict[Edge, Bound]:
    node = state.flat.nodes[position]
    shape, count = elements.at(state, node.inputs[0])
    indices = state.shapes.get(node.inputs[1])
    if shape is None:
        return {}
    first = indices[0] if indices else count or 1
    return {(position, 0): Bound((first, *shape))}


def _concat(state: Inference, position: int, elements: Elements) -> dict[Edge, Bound]:
    shape, count = elements.at(state, state.flat.nodes[position].inputs[0])
    if not shape:
        return {}
    # How often a loop writes is not known: once is counted.
    parts = count or 1
    whole = (parts * shape[0], *shape[1:])
    return {(position, 0): Bound(whole), (position, 1): Bound((parts,))}


def _reshape(state: Inference, position: int, elements: Elements) -> dict[Edge, Bound]:
    """Return the one dimension of a Reshape that is open, from the number of elements."""
    del elements
    node = state.flat.nodes[position]
    source = state.shapes.get(node.inputs[0])
    partial = state.partial.get((position, 0))
    if partial is None or source is None or partial.count(None) != 1:
        return {}
    known = prod(size for size in partial if size is not None)
    if known == 0 or prod(source) % known:
        return {}
    shape = tuple(prod(source) // known if size is None else size for size in partial)
    return {(position, 0): Bound(shape)}


def _read_variable(state: Inference, position: int, elements: Elements) -> dict[Edge, Bound]:
    """Return the shape that a variable states; if none, that of what is assigned to it."""
    del elements
    variable = state.resources.at(state.flat.nodes[position].inputs[0])
    stated = None if variable is None else state.resources.known[variable].shape
    if stated is not None:  # the handle came out of a loop, or inference would know
        return {(position, 0): Bound(stated)}
    for other, accesses in state.resources.accesses.items():
        node = state.flat.nodes[other]
        if (variable, True) in accesses and node.kind == "AssignVariableOp":
            shape = state.shapes.get(node.inputs[1])
            if shape is not None:
                return {(position, 0): Bound(shape)}
    return {}
