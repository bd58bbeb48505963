"""Judge a reordered fx graph by its own nodes: it shares no code with what planned or wrote it."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch.fx import GraphModule
from torch.utils._pytree import tree_leaves

from regal.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch.fx import Graph, Node

    Touchers = dict[int, list[Node]]  # storage -> nodes that read, write or make it

# Normalization in training writes to its running statistics, which no schema says: operators
# whose arguments 3 and 4 are written where argument 5 is true.
HIDDEN_WRITES = frozenset(
    {
        "aten::batch_norm",
        "aten::instance_norm",
        "aten::native_batch_norm",
        "aten::cudnn_batch_norm",
    }
)
# Functions of numbers and of tuples; everything else that is no ATen operator keeps its order.
PLAIN_MODULES = frozenset({"_operator", "math", "builtins", "torch", "torch.fx.experimental"})
PURE_BODIES = frozenset({"cond", "while_loop", "scan", "map_impl", "associative_scan"})


def require_same_meaning(
    before: GraphModule, after: GraphModule, overwritten: Mapping[str, int]
) -> None:
    """Raise unless `after` computes what `before` does, whatever the kernels are.

    The rules: the same nodes, each after what it reads; around every write to a storage the
    touchers of that storage stay on their sides; what draws random numbers, communicates or may
    have effects keeps its order; a result is written over an argument only where nothing else
    needs that memory, which a kernel of this very graph made. Bodies of control flow are judged
    alike; nothing is overwritten in them.

    Args:
        before: the graph as traced; every tensor node has a fake tensor as `meta["val"]`.
        after: its nodes have the same names.
        overwritten: node -> position of the argument that its result replaces.

    Raises:
        PlanError: names the first rule that is broken, with the nodes.

    Cost: O(nodes + edges + (writes + overwritten) * touchers of their storages).
    """
    old = {node.name: node for node in before.graph.nodes}
    place = {node.name: i for i, node in enumerate(after.graph.nodes)}
    if set(old) != set(place) or len(place) != len(after.graph.nodes):
        raise PlanError("the reordered graph has other nodes than the original")
    _require_same_arguments(old, after.graph)
    touched = {node: _storages_of(node) for node in before.graph.nodes}
    touchers: dict[int, list[Node]] = {}
    for node, storages in touched.items():
        for storage in storages:
            touchers.setdefault(storage, []).append(node)
    _require_writes_in_order(before.graph, touchers, place)
    effects = [node.name for node in before.graph.nodes if _has_effect(node)]
    _require_rising(effects, place, "effects")
    for name, position in overwritten.items():
        _require_free(old[name], position, touchers, place)
    inputs = [node.name for node in before.graph.nodes if node.op == "placeholder"]
    _require_rising(inputs, place, "inputs")
    for name in (str(node.target) for node in before.graph.nodes if node.op == "get_attr"):
        if isinstance(body := getattr(before, name, None), GraphModule):
            require_same_meaning(body, getattr(after, name), {})


def _require_same_arguments(old: Mapping[str, Node], after: Graph) -> None:
    seen: set[str] = set()
    for node in after.nodes:
        for read in node.all_input_nodes:
            if read.name not in seen:
                raise PlanError(f"node '{node.name}' runs before '{read.name}', which it reads")
        wanted = [read.name for read in old[node.name].all_input_nodes]
        if [read.name for read in node.all_input_nodes] != wanted:
            raise PlanError(f"node '{node.name}' reads other nodes than in the original")
        seen.add(node.name)


def _require_writes_in_order(before: Graph, touchers: Touchers, place: Mapping[str, int]) -> None:
    for node in before.nodes:
        for storage in _written_by(node):
            rows = touchers[storage]
            at = rows.index(node)
            wrong = [n for n in rows[:at] if place[n.name] > place[node.name]]
            wrong += [n for n in rows[at + 1 :] if place[n.name] < place[node.name]]
            if wrong:
                raise PlanError(
                    f"nodes '{node.name}' and '{wrong[0].name}' touch the same memory, the first"
                    " one writes to it, and they have changed places"
                )


def _require_rising(names: Sequence[str], place: Mapping[str, int], what: str) -> None:
    for first, second in pairwise(names):
        if place[first] > place[second]:
            raise PlanError(f"nodes '{first}' and '{second}' have {what} and changed places")


def _require_free(node: Node, position: int, touchers: Touchers, place: Mapping[str, int]) -> None:
    """Raise unless a node may write over an argument: it is the last to need that memory."""
    argument = node.args[position]
    value, result = argument.meta["val"], node.meta["val"]
    (storage,) = _identities(value)
    mine = _identities(result)
    others = touchers[storage]
    if storage in mine or any(other.op == "output" for other in others):
        raise PlanError(f"node '{node.name}' writes over '{argument.name}', which is returned")
    if str((value.shape, value.stride(), value.dtype)) != str(
        (result.shape, result.stride(), result.dtype)
    ):
        raise PlanError(f"node '{node.name}' writes over '{argument.name}' of another shape")
    for other in others:
        if other is node:
            continue
        if other.op != "call_function" or place[other.name] > place[node.name]:
            raise PlanError(
                f"node '{node.name}' writes over '{argument.name}', whose memory '{other.name}'"
                " needs, too"
            )


def _storages_of(node: Node) -> frozenset[int]:
    """Return the storages that a node reads, writes or makes."""
    found: set[int] = set()
    for each in (node, *node.all_input_nodes):
        found |= _identities(each.meta.get("val"))
    return frozenset(found)


def _identities(values: object) -> set[int]:
    found: set[int] = set()
    for leaf in tree_leaves(values):
        if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided:
            found.add(leaf.untyped_storage()._cdata)
    return found


def _written_by(node: Node) -> set[int]:
    """Return the storages that a node writes to besides those that it makes."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return set()
    found: set[int] = set()
    if schema.name in HIDDEN_WRITES and node.args[5]:
        for statistics in node.args[3:5]:
            found |= _identities(getattr(statistics, "meta", {}).get("val"))
    for position, argument in enumerate(schema.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        given = node.args[position] if position < len(node.args) else node.kwargs.get(argument.name)
        for leaf in tree_leaves(given):
            if hasattr(leaf, "meta"):
                found |= _identities(leaf.meta.get("val"))
    return found


def _has_effect(node: Node) -> bool:
    if node.op != "call_function":
        return node.op in ("call_method", "call_module")
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        tags = target.tags
        is_plain = target.namespace in ("aten", "prims")
        return torch.Tag.nondeterministic_seeded in tags or not is_plain
    if isinstance(target, torch._ops.HigherOrderOperator):
        return target.name() not in PURE_BODIES
    return getattr(target, "__module__", "").split(".")[0] not in PLAIN_MODULES
