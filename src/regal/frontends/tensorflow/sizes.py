"""Give every result of a graph, and of the functions that it runs, a shape."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

from regal.frontends.tensorflow.assume import assumed
from regal.frontends.tensorflow.exact import CONTAINER_READS, exact_bounds
from regal.frontends.tensorflow.flat import edge_name
from regal.frontends.tensorflow.fold import folded
from regal.frontends.tensorflow.functions import body_of, called
from regal.frontends.tensorflow.inference import Inference, infer, require_consistent
from regal.frontends.tensorflow.inline import inlined
from regal.frontends.tensorflow.kinds import MERGE, WHILES
from regal.frontends.tensorflow.light import Bound
from regal.frontends.tensorflow.lists import TensorList, find_lists, read_bounds
from regal.frontends.tensorflow.ops import HANDLES, base_type
from regal.frontends.tensorflow.order import is_back_edge, node_order
from regal.frontends.tensorflow.resources import Resource, Resources, find_resources, note_access

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from regal.frontends.tensorflow.flat import Edge, Flat, Library
    from regal.frontends.tensorflow.native import NativeTensorFlow
    from regal.frontends.tensorflow.schema import Proto
    from regal.frontends.tensorflow.values import Shape

MOST_ROUNDS = 40  # of inference, assumption, inference, ...
MOST_BODY_NODES = 200_000  # of all functions that are planned as bodies, per call
MOST_LEVELS = 24  # of functions that run functions
# Node -> the functions that it runs, with their attributes.
Calls = dict[int, list[tuple[str, "Mapping[str, Proto]"]]]


@dataclass(slots=True)
class Sized:
    """A graph all of whose results have shapes; `bodies` are those of its nodes that run some."""

    flat: Flat
    order: Sequence[int]
    resources: Resources
    shapes: Mapping[Edge, Shape]
    values: Mapping[Edge, tuple[int, ...]]
    lists: Mapping[Edge, TensorList]
    bodies: dict[int, tuple[Sized, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outside:
    """What the arguments of a function stand for besides values."""

    resources: dict[int, Resource] = field(default_factory=dict)
    lists: dict[Edge, TensorList] = field(default_factory=dict)


@dataclass(slots=True)
class Reading:
    """What all graphs of one file share while they are read."""

    native: NativeTensorFlow
    library: Library
    sites: Mapping[str, int] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    assumptions: dict[str, list[str]] = field(default_factory=dict)  # rule -> tensors
    bodies: dict[object, Sized] = field(default_factory=dict)
    body_nodes: int = 0


def sized(
    reading: Reading,
    flat: Flat,
    bound: Mapping[Edge, Bound],
    outside: Outside | None = None,
    running: tuple[str, ...] = (),
) -> Sized:
    """Return `flat` with the shape of every result.

    Args:
        reading: TensorFlow and the file's functions; gets notes.
        flat: the graph.
        bound: shapes of its inputs.
        outside: what its arguments stand for.
        running: the functions in which this one runs.

    Raises:
        ModelError: TensorFlow refuses the graph, or a node its inputs.

    Cost: one pass of inference, and one over what is still open per layer of results that
    depend on data.
    """
    order = node_order(flat)
    outside = outside or Outside()
    resources = find_resources(flat, order, outside.resources)
    state = Inference(flat, reading.library, order, resources)
    state.bind(bound)
    lists = dict(outside.lists)  # grows with what comes out of functions
    result = Sized(flat, order, resources, state.shapes, state.values, lists)
    calls = {
        i: functions
        for i, node in enumerate(flat.nodes)
        if (functions := called(node, reading.library))
    }
    active: list[int] | None = None
    for _ in range(MOST_ROUNDS):
        infer(state, reading.native, active)
        active = state.open_nodes()
        result.lists = find_lists(flat, order, state.shapes, state.values, lists)
        fresh = _bodies_that_are_ready(reading, result, state, calls, running)
        lists |= _returned_lists(result)
        if active:
            fresh |= folded(state)
            fresh |= exact_bounds(state, active)
            fresh |= read_bounds(flat, active, result.lists)
        if not fresh and not active:
            return result
        if not fresh:
            fresh = _assumptions(reading, state, active)
        state.bind(fresh)
    _assume_the_rest(reading, state)
    _bodies_that_are_ready(reading, result, state, calls, running)
    result.lists = find_lists(flat, order, state.shapes, state.values, lists)
    return result


def _returned_lists(result: Sized) -> dict[Edge, TensorList]:
    """Return the lists that functions return."""
    return {
        (position, k): body.lists[edge]
        for position, bodies in result.bodies.items()
        for body in bodies
        for k, edge in enumerate(body.flat.returns)
        if edge in body.lists
    }


def _assumptions(reading: Reading, state: Inference, active: Sequence[int]) -> dict[Edge, Bound]:
    """Return shapes for the first results that nothing else will give one."""
    first = _without_ancestors(state, set(active))
    # What lies in an array is known once what is put there is.
    first = [i for i in first if state.flat.nodes[i].kind not in CONTAINER_READS] or first
    guessed = _downstream(state, state.assumed)
    doubtful = [
        i
        for i in first
        if i not in guessed
        and state.is_ready(i)
        and state.flat.nodes[i].kind not in MERGE
        and state.flat.nodes[i].kind in reading.library.ops.defs
        and not called(state.flat.nodes[i], reading.library)
        and all(state.partial.get((i, k)) is None for k in range(len(state.flat.nodes[i].results)))
    ]
    require_consistent(state, reading.native, doubtful)
    fresh: dict[Edge, Bound] = {}
    for position in first:
        fresh |= _assume(reading, state, position)
    return fresh


def _without_ancestors(state: Inference, members: set[int]) -> list[int]:
    """Return those of `members` that need no other member, the ends of loops aside."""
    found = []
    below: set[int] = set()
    for position in state.order:
        node = state.flat.nodes[position]
        waits = any(i in below or i in members for i, _ in node.inputs if i != position)
        if waits and not _begins_round(state, position):
            below.add(position)
        elif position in members:
            found.append(position)
    return found


def _begins_round(state: Inference, position: int) -> bool:
    """Return whether a node begins a round of a loop and knows what it gets for the first."""
    node = state.flat.nodes[position]
    return (
        node.kind in MERGE
        and any(is_back_edge(state.flat, producer, position) for producer, _ in node.inputs)
        and any(edge in state.shapes for edge in node.inputs)
    )


def _downstream(state: Inference, sources: set[int]) -> set[int]:
    """Return `sources` and all nodes that need one of them."""
    found = set(sources)
    for position in state.order if sources else ():
        if any(i in found for i, _ in state.flat.nodes[position].inputs):
            found.add(position)
    return found


def _assume(reading: Reading, state: Inference, position: int) -> dict[Edge, Bound]:
    bounds, why = assumed(state, position)
    state.assumed.add(position)
    names = reading.assumptions.setdefault(why, [])
    names += [edge_name(state.flat, edge) for edge in bounds]
    return bounds


def _assume_the_rest(reading: Reading, state: Inference) -> None:
    for position in state.order:
        if state.is_open(position):
            state.bind(_assume(reading, state, position))


def _bodies_that_are_ready(
    reading: Reading, result: Sized, state: Inference, calls: Calls, running: tuple[str, ...]
) -> dict[Edge, Bound]:
    """Size the bodies of nodes whose inputs are known; return the shapes that they yield."""
    fresh: dict[Edge, Bound] = {}
    for position, functions in calls.items():
        if position in result.bodies or not state.is_ready(position):
            continue
        node = state.flat.nodes[position]
        result.bodies[position] = _bodies(reading, result, state, position, functions, running)
        bodies = result.bodies[position]
        # The first body of a While is its condition, which yields nothing.
        for body in bodies[1:] if node.kind in WHILES else bodies:
            for k, edge in enumerate(body.flat.returns[: len(node.results)]):
                shape = body.shapes[edge]
                known = fresh.get((position, k))
                if (position, k) not in state.shapes and (
                    known is None or prod(shape) > prod(d or 0 for d in known.shape)
                ):
                    fresh[position, k] = Bound(shape)
    return fresh


def _bodies(
    reading: Reading,
    result: Sized,
    state: Inference,
    position: int,
    functions: Sequence[tuple[str, Mapping[str, Proto]]],
    running: tuple[str, ...],
) -> tuple[Sized, ...]:
    """Return the functions that a node runs; none where they run each other without end."""
    bodies = []
    for name, attributes in functions:
        if name in running or len(running) >= MOST_LEVELS:
            reading.notes[f"'{name}' runs itself: what it takes is not counted"] = None
            return ()
        flat = body_of(name, attributes, reading.library)
        edges = _arguments(state, position, len(flat.arguments))
        shapes = tuple(state.shapes[edge] for edge in edges)
        given = _outside(result, flat, edges)
        key = (name, str(sorted(attributes.items(), key=str)), shapes, str(given))
        if key not in reading.bodies:
            reading.body_nodes += len(flat.nodes)
            if reading.body_nodes > MOST_BODY_NODES:
                reading.notes[
                    f"functions have more than {MOST_BODY_NODES} nodes with all their calls:"
                    " what the rest takes is not counted"
                ] = None
                return ()
            flat = inlined(flat, reading.library, reading.sites)
            bound = {
                (argument, 0): Bound(shape)
                for argument, shape in zip(flat.arguments, shapes, strict=True)
                if base_type(flat.nodes[argument].results[0]) not in HANDLES
            }
            reading.bodies[key] = sized(reading, flat, bound, given, (*running, name))
        bodies.append(reading.bodies[key])
    _note_accesses(state, position, bodies)
    return tuple(bodies)


def _outside(result: Sized, flat: Flat, edges: Sequence[Edge]) -> Outside:
    """Return what the arguments of a function stand for, given the values that it gets."""
    given = Outside()
    for argument, edge in zip(flat.arguments, edges, strict=True):
        number = result.resources.at(edge)
        if number is not None:
            given.resources[argument] = result.resources.known[number]
        if edge in result.lists:
            given.lists[argument, 0] = result.lists[edge]
    return given


def _arguments(state: Inference, position: int, count: int) -> list[Edge]:
    """Return the inputs of a node that its functions get: the last ones."""
    inputs = state.flat.nodes[position].inputs
    return list(inputs[len(inputs) - count :]) if count else []


def _note_accesses(state: Inference, position: int, bodies: Sequence[Sized]) -> None:
    """Note what the bodies of a node do with the resources that they are given."""
    state.resources.accesses.pop(position, None)
    for body in bodies:
        written = {
            number
            for accesses in body.resources.accesses.values()
            for number, writes in accesses
            if writes
        }
        edges = _arguments(state, position, len(body.flat.arguments))
        for argument, edge in zip(body.flat.arguments, edges, strict=True):
            outer = state.resources.at(edge)
            inner = body.resources.at((argument, 0))
            if outer is not None and inner is not None:
                writes = inner in {body.resources.find(number) for number in written}
                note_access(state.resources, position, outer, writes=writes)
