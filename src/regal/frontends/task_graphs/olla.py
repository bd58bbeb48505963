"""Graph builders of OLLA / MODel: short Python programs that call `add_node` and `add_edge`.

They are parsed and never run. Read are the calls with literal arguments:
    NAME = GRAPH.add_node(name=.., op_type=.., size=.., read_only=..)
    GRAPH.add_edge([NAME, ..], [NAME, ..], size=.., name=..)
A node with a size and without incoming edges is a parameter of that many bytes, read by those
that its edges go to. An edge of several sources is one value that all of them write.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regal.errors import ModelError
from regal.frontends.task_graphs.fields import bytes_of, checked_number, text_of
from regal.frontends.task_graphs.tasks import TaskGraph

if TYPE_CHECKING:
    from regal.graph.types import LoadedModel

NODE_ARGUMENTS = ("name", "op_type", "size", "read_only")
EDGE_ARGUMENTS = ("sources", "sinks", "size", "name", "mem_space", "tile_id", "group_id", "mutable")


def parse(data: bytes, name: str) -> LoadedModel:
    """Return the graph that the program builds.

    Raises:
        ModelError: names the line.
    """
    try:
        program = ast.parse(text_of(data, name))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        raise ModelError(f"'{name}' is not a Python program: line {line}: {error}") from None
    nodes: dict[str, _Node] = {}
    edges: list[_Edge] = []
    for statement in program.body:
        _read_statement(statement, nodes, edges, name)
    if not nodes:
        raise ModelError(f"'{name}' has no call of 'add_node'; it builds no graph that can be read")
    return _model(nodes, edges, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    label: str
    kind: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edge:
    line: int
    sources: tuple[str, ...]
    sinks: tuple[str, ...]
    size: int
    label: str


def _read_statement(
    statement: ast.stmt, nodes: dict[str, _Node], edges: list[_Edge], name: str
) -> None:
    """Add what a statement builds; calls of other functions build nothing."""
    if not isinstance(statement, ast.Assign | ast.Expr):
        return
    call = statement.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return
    where = f"'{name}': line {statement.lineno}"
    if call.func.attr == "add_node":
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if not isinstance(target, ast.Name):
            raise ModelError(f"{where}: a node must be assigned to a name to be read")
        nodes[target.id] = _node(call, target.id, where)
    elif call.func.attr == "add_edge":
        edge = _edge(call, len(edges), statement.lineno, where)
        missing = [label for label in (*edge.sources, *edge.sinks) if label not in nodes]
        if missing:
            raise ModelError(f"{where}: '{missing[0]}' is not a node that an earlier line adds")
        edges.append(edge)


def _arguments(call: ast.Call, names: tuple[str, ...], where: str) -> dict[str, ast.expr]:
    if len(call.args) > len(names):
        raise ModelError(f"{where} has {len(call.args)} arguments; at most {len(names)} are known")
    found = dict(zip(names, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg not in names:
            raise ModelError(f"{where} has the argument '{keyword.arg}'; known: {', '.join(names)}")
        found[keyword.arg] = keyword.value
    return found


def _node(call: ast.Call, variable: str, where: str) -> _Node:
    given = _arguments(call, NODE_ARGUMENTS, where)
    return _Node(
        label=_text(given, "name", variable, where),
        kind=_text(given, "op_type", "node", where),
        size=_size(given, where),
    )


def _edge(call: ast.Call, number: int, line: int, where: str) -> _Edge:
    given = _arguments(call, EDGE_ARGUMENTS, where)
    ends = []
    for key in ("sources", "sinks"):
        value = given.get(key)
        if not isinstance(value, ast.List | ast.Tuple) or not all(
            isinstance(item, ast.Name) for item in value.elts
        ):
            raise ModelError(f"{where}: '{key}' must be a list of names")
        ends.append(tuple(item.id for item in value.elts if isinstance(item, ast.Name)))
    if not ends[0]:
        raise ModelError(f"{where}: an edge needs a source")
    return _Edge(
        line=line,
        sources=ends[0],
        sinks=ends[1],
        size=_size(given, where),
        label=_text(given, "name", f"edge{number}", where),
    )


def _text(given: dict[str, ast.expr], key: str, default: str, where: str) -> str:
    value = given.get(key)
    if value is None or (isinstance(value, ast.Constant) and value.value is None):
        return default
    if not isinstance(value, ast.Constant) or not isinstance(value.value, str):
        raise ModelError(f"{where}: '{key}' must be a literal text")
    return value.value or default


def _size(given: dict[str, ast.expr], where: str) -> int:
    if "size" not in given:
        return 0
    return bytes_of(_evaluated(given["size"], where), f"{where}: 'size'")


def _evaluated(value: ast.expr, where: str, level: int = 0) -> float:
    """Return a number, or a product or sum of numbers, as in `size=3 * 10`."""
    if isinstance(value, ast.Constant):
        return checked_number(value.value, f"{where}: 'size'")
    if isinstance(value, ast.BinOp) and level < 20:
        left = _evaluated(value.left, where, level + 1)
        right = _evaluated(value.right, where, level + 1)
        if isinstance(value.op, ast.Mult):
            return checked_number(left * right, f"{where}: 'size'")
        if isinstance(value.op, ast.Add):
            return checked_number(left + right, f"{where}: 'size'")
    raise ModelError(f"{where}: 'size' must be a number, or a sum or product of numbers")


def _model(nodes: dict[str, _Node], edges: list[_Edge], name: str) -> LoadedModel:
    graph = TaskGraph(name.removesuffix(".py"))
    has_inputs = {sink for edge in edges for sink in edge.sinks}
    tasks: dict[str, int] = {}
    parameters: dict[str, int] = {}
    for variable, node in nodes.items():
        if node.size and variable not in has_inputs:
            parameters[variable] = graph.parameter(node.label, node.size)
        else:
            tasks[variable] = graph.task(node.label, node.kind, workspace_bytes=node.size)
    for edge in edges:
        values = []
        memory = None
        for source in edge.sources:
            if source in parameters:
                values.append(parameters[source])
                continue
            label = edge.label if len(edge.sources) == 1 else f"{edge.label} of {source}"
            memory = graph.value(tasks[source], edge.size, name=label, same_memory_as=memory)
            values.append(memory)
        for sink in edge.sinks:
            for value in values:
                graph.read(tasks[sink], value)
    return graph.model()
