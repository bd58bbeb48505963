"""Assume a size where nothing tells it: a result is like what its node reads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import onnx

from regal.frontends.onnx.tables import Table, Tables, Value, dense
from regal.frontends.onnx.tidy import bodies_of, is_standard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx import GraphProto, NodeProto

    from regal.frontends.onnx.tables import Place

# What a value is when nothing at all is known of it.
NUMBER = Value(kind=onnx.TensorProto.FLOAT, shape=(), bytes=4, is_static=False)


def assume_values(graph: GraphProto, tables: Tables, *, only_ready: bool) -> dict[str, Value]:
    """Fill gaps in `tables`; return what was assumed for values of the main graph.

    Args:
        graph: the main graph.
        tables: of all its bodies too.
        only_ready: leave a node alone whose inputs have gaps; rules may find more first.
    """
    assumed: dict[str, Value] = {}
    for value in graph.input:
        if value.name not in tables[()].values:
            assumed[value.name] = tables[()].values[value.name] = _like(
                tables[()], value.name, [], graph_input=True
            )
    _walk(graph, tables, (), [], assumed, only_ready=only_ready)
    return assumed


def _walk(
    graph: GraphProto,
    tables: Tables,
    place: Place,
    outer: Sequence[Table],
    assumed: dict[str, Value],
    *,
    only_ready: bool,
) -> None:
    table = tables[place]
    scopes = [*outer, table]
    gaps: set[str] = set()  # values assumed in this pass: nothing is built on them if only_ready
    for position, node in enumerate(graph.node):
        read = [_find(scopes, name) for name in node.input if name]
        ready = all(name not in gaps for name in node.input) and None not in read
        if only_ready and not ready:
            gaps.update(name for name in node.output if name not in table.values)
            continue
        bodies = []
        for number, body in enumerate(bodies_of(node)):
            inner = (*place, (position, number))
            _fill_body_inputs(node, body, tables[inner], scopes)
            _walk(body, tables, inner, scopes, {}, only_ready=False)
            bodies.append([_find([*scopes, tables[inner]], v.name) for v in body.output])
        for index, name in enumerate(node.output):
            if not name or name in table.values:
                continue
            likes = _models_of(node, index, [v for v in read if v is not None], bodies)
            table.values[name] = _like(table, name, likes)
            gaps.add(name)
            if not place:
                assumed[name] = table.values[name]


def _find(scopes: Sequence[Table], name: str) -> Value | None:
    return next((t.values[name] for t in reversed(scopes) if name in t.values), None)


def _models_of(
    node: NodeProto, index: int, read: list[Value], bodies: list[list[Value | None]]
) -> list[Value]:
    """Return the values that result `index` of `node` is likely to resemble, best first."""
    if is_standard(node, "If"):
        branches = [body[index] for body in bodies if index < len(body)]
        known = [value for value in branches if value is not None]
        return sorted(known, key=lambda value: -value.bytes)
    if bodies and is_standard(node, "Loop") and index + 1 < len(bodies[0]):
        inner = bodies[0][index + 1]
        return [inner] if inner is not None else []
    if bodies and is_standard(node, "Scan") and index < len(bodies[0]):
        inner = bodies[0][index]
        return [inner] if inner is not None else []
    return read


def _like(table: Table, name: str, likes: list[Value], *, graph_input: bool = False) -> Value:
    """Return a value of the type known for `name`, in the shape of the first of `likes`."""
    kind, container = table.open.pop(name, (0, ""))
    if container:
        total = sum(value.bytes for value in likes)
        element = kind or (likes[0].kind if likes else NUMBER.kind)
        size = max(total, 0 if likes and not graph_input else NUMBER.bytes)
        return Value(kind=element, shape=(), bytes=size, is_static=False, container=container)
    model = next((value for value in likes if value.shape or not likes[0].shape), None)
    if model is None:
        model = likes[0] if likes else NUMBER
    if model.container:
        # A tensor out of a sequence is at most all of it.
        return replace(model, kind=kind or model.kind, container="", is_static=False)
    made = dense(kind or model.kind, model.shape, is_static=False)
    return made if made is not None else NUMBER


def _fill_body_inputs(
    node: NodeProto, body: GraphProto, table: Table, scopes: Sequence[Table]
) -> None:
    """Give inputs of a body the sizes that the node passes in."""
    first = 1 if is_standard(node, "Loop") else 0  # a Loop passes (trip count, condition, ...)
    passed = [_find(scopes, name) if name else None for name in node.input[first:]]
    if is_standard(node, "Loop"):
        passed = [dense(onnx.TensorProto.INT64, ()), *passed]
    scanned = next((a.i for a in node.attribute if a.name == "num_scan_inputs"), 0)
    for position, value in enumerate(body.input):
        if value.name in table.values:
            continue
        like = passed[position] if position < len(passed) else None
        if (
            like is not None
            and is_standard(node, "Scan")
            and (position >= len(body.input) - scanned)
        ):
            like = dense(like.kind, like.shape[1:], is_static=False)
        table.values[value.name] = _like(table, value.name, [like] if like else [])
