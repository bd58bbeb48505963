"""What is known about the results of a graph while their shapes are being found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from regal.errors import ModelError
from regal.frontends.tensorflow.light import Bound, light_graph, original_names
from regal.frontends.tensorflow.ops import HANDLES, INT32, INT64, base_type
from regal.frontends.tensorflow.roles import INPUTS
from regal.frontends.tensorflow.values import (
    MOST_VALUES,
    Partial,
    Shape,
    full,
    integers_of,
    shape_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from regal.frontends.tensorflow.flat import Edge, Flat, Library
    from regal.frontends.tensorflow.native import NativeTensorFlow
    from regal.frontends.tensorflow.resources import Resources

# What TensorFlow says where the rule of an operator refuses the shapes of its inputs.
REFUSAL = " with input shapes: "


@dataclass(slots=True)
class Inference:
    """Shapes and values of one graph, as far as they are known.

    `bound` is what was decided here, by an exact rule or by an assumption; `partial` what
    TensorFlow inferred from it.
    """

    flat: Flat
    library: Library
    order: Sequence[int]
    resources: Resources
    bound: dict[Edge, Bound] = field(default_factory=dict)
    shapes: dict[Edge, Shape] = field(default_factory=dict)
    partial: dict[Edge, Partial | None] = field(default_factory=dict)
    values: dict[Edge, tuple[int, ...]] = field(default_factory=dict)
    assumed: set[int] = field(default_factory=set)  # nodes whose results are guesses

    def __post_init__(self) -> None:
        """Give all handles the shape of a scalar: nobody asks for it."""
        for position, node in enumerate(self.flat.nodes):
            for k, dtype in enumerate(node.results):
                if base_type(dtype) in HANDLES:
                    self.shapes[position, k] = self.partial[position, k] = ()

    def bind(self, fresh: Mapping[Edge, Bound]) -> None:
        """Take over what was decided about some results."""
        self.bound.update(fresh)
        for edge, bound in fresh.items():
            self.partial[edge] = bound.shape
            shape = full(bound.shape)
            if shape is not None:
                self.shapes[edge] = shape
            if bound.values is not None:
                self.values[edge] = bound.values

    def is_open(self, position: int) -> bool:
        """Return whether a result of a node has no shape yet."""
        results = len(self.flat.nodes[position].results)
        return any((position, k) not in self.shapes for k in range(results))

    def is_ready(self, position: int) -> bool:
        """Return whether everything that a node reads has a shape."""
        return all(edge in self.shapes for edge in self.flat.nodes[position].inputs)

    def open_nodes(self) -> list[int]:
        """Return the nodes with results that have no shape yet, producers first."""
        return [i for i in self.order if self.is_open(i)]


def infer(state: Inference, native: NativeTensorFlow, active: Sequence[int] | None) -> None:
    """Enter what TensorFlow infers into `state`.

    Args:
        state: what is known; it gets more.
        native: TensorFlow.
        active: only these nodes and what computes sizes for them; None: all.

    Raises:
        ModelError: TensorFlow refuses the graph.
    """
    flat = state.flat
    only = None if active is None else _with_sizes(state, active)
    outside = {}
    if only is not None:
        outside = {e: Bound(s) for e, s in state.partial.items() if s is not None}
        outside |= {e: Bound(s, state.values.get(e)) for e, s in state.shapes.items()}
    variables = {
        i: state.resources.known[number]
        for i in range(len(flat.nodes))
        if flat.nodes[i].kind in INPUTS
        and (number := state.resources.at((i, 0))) is not None
        and state.resources.known[number].is_variable
    }
    graph = light_graph(flat, state.library, state.bound, variables, only, outside)
    if not graph.node:
        return
    try:
        answer = native.infer(graph)
    except ModelError as error:
        raise ModelError(original_names(str(error), flat)) from None
    for name, properties in answer.items():
        if name[0] != "n":
            continue
        position = int(name[1:])
        for k, found in enumerate(properties[: len(flat.nodes[position].results)]):
            edge = (position, k)
            if edge not in state.bound:
                _enter(state, edge, found)


def _enter(state: Inference, edge: Edge, found: object) -> None:
    position, k = edge
    dtype = base_type(state.flat.nodes[position].results[k])
    if dtype in HANDLES:
        return
    # Less may be known about a part of the graph than about the whole.
    partial = _combined(state.partial.get(edge), shape_of(found.shape))  # type: ignore[attr-defined]
    state.partial[edge] = partial
    shape = full(partial)
    if shape is None:
        return
    state.shapes[edge] = shape
    if found.HasField("value") and dtype in (INT32, INT64):  # type: ignore[attr-defined]
        numbers = integers_of(found.value)  # type: ignore[attr-defined]
        if numbers is not None:
            state.values[edge] = numbers


def _combined(old: Partial | None, new: Partial | None) -> Partial | None:
    if old is None or new is None or len(old) != len(new):
        return old if new is None else new
    return tuple(b if a is None else a for a, b in zip(old, new, strict=True))


def _with_sizes(state: Inference, active: Iterable[int]) -> set[int]:
    """Return `active` and the nodes that compute integers for them: those steer shapes."""
    chosen = set(active)
    stack = list(chosen)
    while stack:
        for edge in state.flat.nodes[stack.pop()].inputs:
            source = state.flat.nodes[edge[0]]
            if (
                edge[0] not in chosen
                and edge not in state.values
                and edge not in state.bound
                and base_type(source.results[edge[1]]) in (INT32, INT64)
                and _is_small(state.shapes.get(edge))
            ):
                chosen.add(edge[0])
                stack.append(edge[0])
    return chosen


def _is_small(shape: Shape | None) -> bool:
    return shape is None or (len(shape) <= 1 and sum(shape) <= MOST_VALUES)


def require_consistent(
    state: Inference, native: NativeTensorFlow, positions: Sequence[int]
) -> None:
    """Raise if a node refuses its inputs: inference leaves its results open without a word.

    Args:
        state: what is known.
        native: TensorFlow.
        positions: nodes all of whose inputs have shapes, none of whose results has a rank.

    Raises:
        ModelError: names the node, and says what TensorFlow says.
    """
    if not positions:
        return
    known = {e: Bound(s, state.values.get(e)) for e, s in state.shapes.items()}
    graph = light_graph(state.flat, state.library, known, {}, positions)
    said = native.import_error(graph)
    if REFUSAL not in said:
        return  # that it cannot be imported for other reasons is for the notes
    reason = said.split(" for '{{node", 1)[0]
    who = said.split("{{node n", 1)[-1].split("}}", 1)[0]
    position = int(who) if who.isdecimal() else positions[0]
    node = state.flat.nodes[position]
    inputs = ", ".join(str(list(state.shapes[edge])) for edge in node.inputs)
    raise ModelError(
        f"node '{node.name}' ({node.kind}) cannot take inputs of the shapes {inputs}: {reason}"
    )
