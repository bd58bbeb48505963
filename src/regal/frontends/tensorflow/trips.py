"""How often loops run, where the graph says so: counters that are compared with a known limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.frontends.tensorflow.kinds import ENTER, IDENTITIES, MERGE, NEXT, SWITCH

if TYPE_CHECKING:
    from collections.abc import Callable

    from regal.frontends.tensorflow.flat import Edge
    from regal.frontends.tensorflow.frames import Frames
    from regal.frontends.tensorflow.sizes import Sized

_HANDS_ON = (IDENTITIES | SWITCH | {"Cast"}) - NEXT - {"IdentityN"}
_ADDS = frozenset({"Add", "AddV2"})
_ANDS = frozenset({"LogicalAnd"})
# Counter and limit of a comparison: by position, and what is added to the limit.
_COMPARISONS = {"Less": (0, 1, 0), "LessEqual": (0, 1, 1), "Greater": (1, 0, 0)}
MOST_STEPS = 64  # of identities that are followed
Counter = tuple[int, int]  # first value, step


def frame_trips(graph: Sized, frames: Frames) -> dict[int, int]:
    """Return frame -> how often its body runs, for loops of TensorFlow 1 that count."""
    trips: dict[int, int] = {}
    for position, node in enumerate(graph.flat.nodes):
        if node.kind != "LoopCond":
            continue
        found = _trips(
            graph, node.inputs[0], lambda e: _counter(graph, e), lambda e: _known(graph, e)
        )
        if found is not None:
            trips[frames.of[position]] = found
    return trips


def while_trips(graph: Sized, position: int) -> int | None:
    """Return how often the body of a While runs; None where that is not known, or it is none."""
    node = graph.flat.nodes[position]
    bodies = graph.bodies.get(position, ())
    if node.kind not in ("While", "StatelessWhile") or len(bodies) != 2:
        return None
    condition, body = bodies
    if not condition.flat.returns:
        return None

    def variable(edge: Edge) -> int | None:
        """Return which loop variable the condition reads at `edge`."""
        origin = _origin(condition, edge)[0]
        known = condition.flat.arguments
        return known.index(origin) if origin in known else None

    def limit(edge: Edge) -> int | None:
        inner = _known(condition, edge)
        which = variable(edge)
        if inner is not None or which is None or which >= len(body.flat.returns):
            return inner
        # A variable that every round hands on as it is.
        if _origin(body, body.flat.returns[which])[0] != body.flat.arguments[which]:
            return None
        return _known(graph, node.inputs[which])

    def counter(edge: Edge) -> Counter | None:
        which = variable(edge)
        if which is None or which >= len(body.flat.returns):
            return None
        first = _known(graph, node.inputs[which])
        step = _step(body, body.flat.returns[which], body.flat.arguments[which])
        return None if first is None or step is None else (first, step)

    return _trips(condition, condition.flat.returns[0], counter, limit)


def _trips(
    graph: Sized,
    condition: Edge,
    counter: Callable[[Edge], Counter | None],
    limit: Callable[[Edge], int | None],
) -> int | None:
    """Return the fewest rounds after which a part of a condition ends its loop."""
    found = []
    stack = [condition]
    for _ in range(MOST_STEPS):
        if not stack:
            break
        position, _result = _origin(graph, stack.pop())
        node = graph.flat.nodes[position]
        if node.kind in _ANDS:
            stack += node.inputs
        elif node.kind in _COMPARISONS:
            counted, bound, more = _COMPARISONS[node.kind]
            count, last = counter(node.inputs[counted]), limit(node.inputs[bound])
            if count is not None and last is not None and count[1] > 0:
                first, step = count
                found.append(max(-(-(last + more - first) // step), 0))
    return min(found, default=None)


def _origin(graph: Sized, edge: Edge) -> Edge:
    """Return where a value comes from, through nodes that hand it on."""
    for _ in range(MOST_STEPS):
        node = graph.flat.nodes[edge[0]]
        if node.kind not in _HANDS_ON:
            break
        edge = node.inputs[0]
    return edge


def _known(graph: Sized, edge: Edge) -> int | None:
    """Return the value of an integer scalar, if it is known."""
    for _ in range(MOST_STEPS):
        values = graph.values.get(edge)
        if values is not None:
            return values[0] if len(values) == 1 else None
        node = graph.flat.nodes[edge[0]]
        if node.kind not in ENTER and node.kind != "Identity":
            return None
        edge = node.inputs[0]
    return None


def _counter(graph: Sized, edge: Edge) -> Counter | None:
    """Return first value and step of a loop variable of TensorFlow 1 that counts."""
    head = _origin(graph, edge)
    node = graph.flat.nodes[head[0]]
    if node.kind not in MERGE:
        return None
    first = step = None
    for producer, _ in node.inputs:
        kind = graph.flat.nodes[producer].kind
        if kind in ENTER:
            first = _known(graph, (producer, 0))
        elif kind in NEXT:
            step = _step(graph, graph.flat.nodes[producer].inputs[0], head[0])
    return None if first is None or step is None else (first, step)


def _step(graph: Sized, edge: Edge, head: int) -> int | None:
    """Return what is added to the value of `head` to get the one at `edge`."""
    position, _ = _origin(graph, edge)
    node = graph.flat.nodes[position]
    if node.kind not in _ADDS:
        return None
    for own, other in ((0, 1), (1, 0)):
        if _origin(graph, node.inputs[own])[0] == head:
            return _known(graph, _origin(graph, node.inputs[other]))
    return None
