"""Check the nodes of a model, inline its functions, and list writers before readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx
import onnx.inliner
from google.protobuf.message import DecodeError

from regal.errors import ModelError
from regal.frontends.onnx.parse import STANDARD_DOMAINS
from regal.graph.order import first_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from onnx import GraphProto, ModelProto, NodeProto

MOST_BODY_LEVELS = 32
MOST_INLINED_NODES = 1_000_000
# Standard operators that ONNX Runtime 1.32 runs as the nodes of their definition. It adds
# those nodes behind all others, so that no order of the file can reach them. Others, such as
# CastLike, have definitions that depend on types: those are left to ONNX Runtime.
KERNELLESS = frozenset({"HardSwish", "MeanVarianceNormalization", "Mish", "Swish"})


def bodies_of(node: NodeProto) -> Iterator[GraphProto]:
    """Yield the bodies of `node` in the order of its attributes."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == onnx.AttributeProto.GRAPHS:
            yield from attribute.graphs


def is_standard(node: NodeProto, *kinds: str) -> bool:
    """Return whether `node` is one of these operators of ONNX itself."""
    return node.op_type in kinds and node.domain in STANDARD_DOMAINS


def initializer_names(graph: GraphProto) -> set[str]:
    """Return the values that a graph fills itself."""
    return {tensor.name for tensor in graph.initializer} | {
        tensor.values.name for tensor in graph.sparse_initializer
    }


def label(node: NodeProto, position: int) -> str:
    """Return how messages call `node`: its name, or else its position."""
    return f"'{node.name}' ({node.op_type})" if node.name else f"{position} ({node.op_type})"


def tidy(model: ModelProto) -> tuple[ModelProto, list[str]]:
    """Return the model without local functions and with sorted nodes, and notes on changes.

    `model` itself may be changed.

    Raises:
        ModelError: a value is defined twice or never, there is a cycle, or bodies or
            functions are nested too deep or call themselves.
    """
    notes = []
    if model.functions:
        _require_finite_calls(model)
        calls = len(model.functions)
        model = _inlined(model, None)
        notes.append(f"inlined the {calls} local functions, so that their nodes can be ordered")
    kernelless = {
        (node.domain, node.op_type)
        for graph in graphs_in(model.graph)
        for node in graph.node
        if is_standard(node, *KERNELLESS)
    }
    if kernelless:
        model = _inlined(model, sorted(kernelless))
        kinds = ", ".join(kind for _, kind in sorted(kernelless))
        notes.append(f"expanded {kinds}, for which ONNX Runtime has no kernel")
    dropped = sum(_drop_overridden(graph) for graph in graphs_in(model.graph))
    if dropped:
        notes.append(f"left out {dropped} Constant nodes that later ones redefine")
    moved = _sort_graph(model.graph, [initializer_names(model.graph)], 0)
    if moved:
        notes.append(f"moved {moved} nodes behind the nodes that they read from")
    return model, notes


def _inlined(model: ModelProto, kinds: list[tuple[str, str]] | None) -> ModelProto:
    """Return `model` with its local functions inlined, or the standard operators `kinds`."""
    try:
        if kinds is None:
            return onnx.inliner.inline_local_functions(model)
        return onnx.inliner.inline_selected_functions(model, kinds, inline_schema_functions=True)
    except (onnx.checker.ValidationError, RuntimeError, ValueError, DecodeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelError(f"functions of the model cannot be inlined: {reason}") from error


def _drop_overridden(graph: GraphProto) -> int:
    """Remove Constant nodes whose value a later one defines again; return how many.

    The last one counts in ONNX Runtime, for all readers.
    """
    last: dict[str, int] = {}
    for position, node in enumerate(graph.node):
        if is_standard(node, "Constant") and len(node.output) == 1:
            last[node.output[0]] = position
    drop = [
        position
        for position, node in enumerate(graph.node)
        if is_standard(node, "Constant")
        and len(node.output) == 1
        and last[node.output[0]] != position
    ]
    for position in reversed(drop):
        del graph.node[position]
    return len(drop)


def names_read(node: NodeProto) -> set[str]:
    """Return the values that `node` reads from its graph, those of its bodies included."""
    names = {name for name in node.input if name}
    for body in bodies_of(node):
        names |= free_names(body)
    return names


def free_names(graph: GraphProto) -> set[str]:
    """Return the values that a body takes from the graphs around it."""
    defined = initializer_names(graph) | {value.name for value in graph.input}
    read = {value.name for value in graph.output}
    for node in graph.node:
        read |= names_read(node)
        defined.update(node.output)
    return read - defined - {""}


def _sort_graph(graph: GraphProto, outer: list[set[str]], level: int) -> int:
    """Sort the nodes of `graph` and its bodies in place; return how many nodes moved."""
    if level > MOST_BODY_LEVELS:
        raise ModelError(f"graph '{graph.name}': bodies nested deeper than {MOST_BODY_LEVELS}")
    writer: dict[str, int] = {}
    given = initializer_names(graph) | {value.name for value in graph.input}
    for position, node in enumerate(graph.node):
        for name in node.output:
            if name and (name in writer or name in given):
                raise ModelError(
                    f"node {label(node, position)} defines '{name}', which is defined already"
                )
            if name:
                writer[name] = position
    visible = [*outer, given | writer.keys()]
    reads = [sorted(names_read(node)) for node in graph.node]
    for position, (node, names) in enumerate(zip(graph.node, reads, strict=True)):
        for name in names:
            if not any(name in scope for scope in visible):
                raise ModelError(
                    f"node {label(node, position)} reads '{name}', which nothing defines"
                )
    for value in graph.output:
        if value.name and not any(value.name in scope for scope in visible):
            raise ModelError(f"graph output '{value.name}' is defined by nothing")
    moved = sum(
        _sort_graph(body, visible, level + 1) for node in graph.node for body in bodies_of(node)
    )
    before = [sorted({writer[name] for name in names if name in writer}) for names in reads]
    if any(p >= position for position, earlier in enumerate(before) for p in earlier):
        order = _sorted_nodes(graph, before)
        nodes = [graph.node[i] for i in order]
        copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del graph.node[:]
        graph.node.extend(copies)
        moved += sum(i != position for position, i in enumerate(order))
    return moved


def _sorted_nodes(graph: GraphProto, before: Sequence[Sequence[int]]) -> list[int]:
    """Return the legal order that takes the first node of the file whenever it can."""
    order = first_order(before)
    if len(order) < len(before):
        guilty = min(set(range(len(before))) - set(order))
        raise ModelError(
            f"node {label(graph.node[guilty], guilty)} waits for its own result: a cycle"
        )
    return order


def _require_finite_calls(model: ModelProto) -> None:
    """Refuse functions that call themselves, or that grow beyond any sensible size."""
    calls = {
        (function.domain, function.name): [
            (node.domain, node.op_type) for node in _all_nodes(function.node)
        ]
        for function in model.functions
    }
    size: dict[tuple[str, str], int] = {}
    for root in calls:
        stack: list[tuple[tuple[str, str], bool]] = [(root, False)]
        open_calls: set[tuple[str, str]] = set()
        while stack:
            name, done = stack.pop()
            if done:
                open_calls.discard(name)
                size[name] = sum(size.get(callee, 1) for callee in calls[name]) + 1
                if size[name] > MOST_INLINED_NODES:
                    raise ModelError(
                        f"function '{name[1]}' expands to more than {MOST_INLINED_NODES} nodes"
                    )
            elif name in open_calls:
                raise ModelError(f"function '{name[1]}' calls itself")
            elif name not in size:
                open_calls.add(name)
                stack.append((name, True))
                stack.extend((callee, False) for callee in calls[name] if callee in calls)
    total = sum(size.get((n.domain, n.op_type), 1) for n in _all_nodes(model.graph.node))
    if total > MOST_INLINED_NODES:
        raise ModelError(f"the local functions expand to more than {MOST_INLINED_NODES} nodes")


def _all_nodes(nodes: Sequence[NodeProto]) -> Iterator[NodeProto]:
    for node in nodes:
        yield node
        for body in bodies_of(node):
            yield from _all_nodes(body.node)


def graphs_in(graph: GraphProto) -> Iterator[GraphProto]:
    """Yield a graph and all its bodies."""
    yield graph
    for node in graph.node:
        for body in bodies_of(node):
            yield from graphs_in(body)
