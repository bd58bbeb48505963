"""Write updates of what the caller gives where they belong, instead of copying them there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.utils._pytree import tree_leaves

from regal.frontends.torch.build import memory_of
from regal.frontends.torch.in_place import is_pointwise, layout_of, way_of
from regal.torch.remat import fresh_value, memories_of

if TYPE_CHECKING:
    from torch.fx import GraphModule, Node


def write_updates_in_place(module: GraphModule) -> None:
    """Write updates of inputs in place from now on, where that is safe.

    Functional graphs compute the new value of a buffer or a cache beside the old one, and copy it
    over at the end. Where an operator has a form that overwrites its first argument, where that
    is the input, and where nothing reads the old value later, the form runs and the copy goes.

    Cost: O(nodes + updates * touchers of the same memory).
    """
    nodes = list(module.graph.nodes)
    place = {node: i for i, node in enumerate(nodes)}
    touchers: dict[int, list[Node]] = {}
    for node in nodes:
        for key in set().union(*map(memories_of, (node, *node.all_input_nodes))):
            touchers.setdefault(key, []).append(node)
    has_changed = False
    for copy in [node for node in nodes if node.target is torch.ops.aten.copy_.default]:
        given, value = copy.args[:2]
        if _is_update(given, value) and not copy.users and _is_alone(copy, touchers, place):
            way = way_of(value.target, 0)
            if way is not None and not way[1]:
                new = _key(value.meta["val"])
                value.target = way[0]
                value.meta["val"] = given.meta["val"]
                module.graph.erase_node(copy)
                for node in touchers[new] if new is not None else ():
                    if node is not copy and new in memories_of(node):
                        node.meta["val"] = fresh_value(node)  # a view: it lies elsewhere now
                has_changed = True
    if has_changed:
        module.recompile()


def _is_update(given: Any, value: Any) -> bool:
    """Return whether `value` is computed from the input `given`, in its shape and dtype."""
    if getattr(given, "op", "") != "placeholder" or getattr(value, "op", "") != "call_function":
        return False
    if not value.args or value.args[0] is not given:
        return False
    old, new = given.meta.get("val"), value.meta.get("val")
    if not isinstance(old, torch.Tensor) or not isinstance(new, torch.Tensor):
        return False
    others = value.all_input_nodes[1:]
    key = _key(old)
    shares = any(_key(other.meta.get("val")) == key for other in others)
    twice = sum(arg is given for arg in tree_leaves(value.args))
    safe = is_pointwise(value.target) or twice == 1
    return safe and not shares and layout_of(old) == layout_of(new)


def _is_alone(copy: Node, touchers: dict[int, list[Node]], place: dict[Node, int]) -> bool:
    """Return whether nothing reads the old value after the new one, nor returns either of them."""
    given, value = copy.args[:2]
    old, new = _key(given.meta["val"]), _key(value.meta["val"])
    if old is None or new is None:
        return False
    later = [node for node in touchers[old] if place[node] > place[value]]
    returned = any(node.op == "output" for node in (*touchers[old], *touchers[new]))
    written = [node for node in touchers[new] if _writes(node) and node is not copy]
    return later == [copy] and not returned and not written


def _writes(node: Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.is_mutable


def _key(value: object) -> int | None:
    found = memory_of(value) if isinstance(value, torch.Tensor) else None
    return None if found is None else found[0]
