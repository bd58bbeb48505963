"""Write a plan into an fx graph: nodes in planned order, results over arguments that die."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.fx import Graph as FxGraph
from torch.fx import GraphModule
from torch.fx.node import map_arg

from regal.errors import BackendError
from regal.frontends.torch.fx import bodies_of
from regal.frontends.torch.in_place import way_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch.fx import Node

    from regal.graph.types import Graph
    from regal.plan.types import Plan


@dataclass(frozen=True, slots=True)
class Decisions:
    """What a plan decides about the nodes of one fx graph, in their own terms."""

    order: tuple[str, ...]  # names of all nodes
    overwritten: Mapping[str, int]  # node -> position of the argument that its result replaces


def decisions_of(module: GraphModule, graph: Graph, plan: Plan) -> Decisions:
    """Return the order of all nodes: the ops as planned, all others as early as they can be.

    Args:
        module: whose graph `graph` was read from.
        graph: its ops have the names of nodes.
        plan: of `graph`.

    Raises:
        BackendError: the plan leaves out what another node waits for.

    Cost: O(nodes + edges).
    """
    nodes = {node.name: node for node in module.graph.nodes}
    planned = [graph.ops[op].name for op in plan.order]
    is_op = set(planned)
    waits = {node: len(node.all_input_nodes) for node in nodes.values()}
    order: list[str] = []

    def emit(first: Node) -> None:
        """Emit a node, and what needs no more than it and is no op: parts of results, sizes."""
        pending = [first]
        while pending:
            node = pending.pop()
            order.append(node.name)
            for user in node.users:
                waits[user] -= 1
                if waits[user] == 0 and user.name not in is_op and user.op != "output":
                    pending.append(user)

    free = [n for n in nodes.values() if not n.all_input_nodes and n.name not in is_op]
    for node in sorted(free, key=lambda n: n.op != "placeholder"):
        if node.op != "output":
            emit(node)
    for name in planned:
        if waits[nodes[name]]:
            raise BackendError(f"node '{name}' is planned before what it reads")
        emit(nodes[name])
    order += [node.name for node in nodes.values() if node.op == "output"]
    if len(order) != len(nodes):
        missing = sorted(set(nodes) - set(order))
        raise BackendError(f"node '{missing[0]}' and {len(missing) - 1} more are not planned")
    return Decisions(order=tuple(order), overwritten=_overwritten(graph, plan, nodes))


def rewritten(module: GraphModule, graph: Graph, plan: Plan) -> GraphModule:
    """Return the module with its nodes, and those of its bodies, as planned; names stay."""
    decisions = decisions_of(module, graph, plan)
    bodies = _planned_bodies(module, graph, plan)
    old = {node.name: node for node in module.graph.nodes}
    new_of: dict[Node, Node] = {}
    new = FxGraph()
    new.set_codegen(module.graph._codegen)
    for name in decisions.order:
        node = old[name]
        made = new.node_copy(node, lambda argument: new_of[argument])
        made.name = name  # a copy may get a new one where suffixes look like counters
        if name in decisions.overwritten:
            _overwrite(made, decisions.overwritten[name])
        new_of[node] = made
    held = torch.nn.Module()
    held.__dict__.update(module.__dict__)
    if bodies:
        held.__dict__["_modules"] = {**module._modules, **bodies}
    result = GraphModule(held, new, type(module).__name__)
    result.meta.update(module.meta)
    return result


def _overwritten(graph: Graph, plan: Plan, nodes: Mapping[str, Node]) -> dict[str, int]:
    """Return node -> position of the argument over which its result is written."""
    writer = {t: op for op in graph.ops for t in op.outputs}
    found: dict[str, int] = {}
    for read, written in plan.in_place:
        op = writer[written]
        node = nodes[op.name]
        # Inputs of the op are the tensors among the arguments, one after another.
        first = 0
        for position, argument in enumerate(node.args):
            taken = _tensors_among(argument)
            whole = taken == 1 and op.inputs[first] == read
            if whole and way_of(node.target, position) is not None:
                found[op.name] = position
                break
            first += taken
        else:
            raise BackendError(
                f"node '{op.name}' cannot write over '{graph.tensors[read].name}': no kernel does"
            )
    return found


def _tensors_among(argument: object) -> int:
    count = 0

    def visit(node: Node) -> Node:
        nonlocal count
        count += isinstance(node.meta.get("val"), torch.Tensor)
        return node

    map_arg(argument, visit)
    return count


def _overwrite(node: Node, position: int) -> None:
    way = way_of(node.target, position)
    if way is None:
        raise BackendError(f"node '{node.name}' cannot overwrite its argument {position}")
    target, out = way
    node.target = target
    if out:
        node.kwargs = {**node.kwargs, out: node.args[position]}


def _planned_bodies(module: GraphModule, graph: Graph, plan: Plan) -> dict[str, GraphModule]:
    """Return attribute -> rewritten body, for the bodies of all ops that have some."""
    nodes = {node.name: node for node in module.graph.nodes}
    found: dict[str, GraphModule] = {}
    for i, plans in plan.bodies.items():
        bodies = bodies_of(module, nodes[graph.ops[i].name])
        for (_, name, inner), body, body_plan in zip(
            bodies, graph.ops[i].subgraphs, plans, strict=True
        ):
            found[name] = rewritten(inner, body, body_plan)
    return found
