"""Compute cheap values again in the backward pass instead of keeping them from the forward one."""

from __future__ import annotations

import operator
from collections import ChainMap
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch._guards import detect_fake_mode
from torch.fx import Graph, GraphModule
from torch.fx.node import map_arg
from torch.utils._pytree import tree_leaves

from regal.frontends.torch.build import memory_of
from regal.frontends.torch.in_place import is_pointwise
from regal.torch.planning import hinted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from torch.fx import Node

# Operators that look at each element once or a few times: their time is that of their bytes.
CHEAP = frozenset(
    f"aten::{name}"
    for name in (
        "_log_softmax", "_native_batch_norm_legit_no_training", "_softmax", "_to_copy",
        "_unsafe_view", "alias", "amax", "arange", "avg_pool2d", "cat", "clone",
        "constant_pad_nd", "cumsum", "detach", "embedding", "expand", "full",
        "full_like", "gather", "hardswish", "index_select", "mean",
        "native_group_norm", "native_layer_norm", "ones_like", "permute", "pow", "repeat",
        "scalar_tensor", "select", "slice", "split", "split_with_sizes", "squeeze", "stack",
        "sum", "t", "transpose", "unbind", "unsqueeze", "upsample_bilinear2d",
        "upsample_nearest2d", "var_mean", "view", "zeros_like",
    )
)  # fmt: skip
# Operators that calculate: computed again only where a limit cannot be met without. Pooling is
# in neither set: it reads far more than it keeps (U-Net at its lowest limit: 47.6 MB without
# pooling, 50.7 with pooling among the cheap ones, 55.4 among the heavy ones).
HEAVY = frozenset(f"aten::{name}" for name in ("addmm", "baddbmm", "bmm", "convolution", "mm"))
HEAVY_WEIGHT = 16  # how much longer they take than their bytes say; it only ranks candidates
SMALL_BYTES = 1 << 16  # made faster than a cache line is fetched from afar
# In training it also returns new running statistics, which nothing needs a second time.
BATCH_NORM = torch.ops.aten._native_batch_norm_legit_functional.default
BATCH_NORM_ALONE = torch.ops.aten._native_batch_norm_legit.no_stats


@dataclass(frozen=True, slots=True)
class Candidates:
    """Groups of values of the forward pass that are worth computing again, best first.

    A group is all that the backward pass reads of one storage: only together do they free it.
    Those that need a heavy operator come last.
    """

    groups: tuple[tuple[str, ...], ...]
    n_cheap: int  # the first ones that need none

    def first(self, count: int) -> tuple[set[str], bool]:
        """Return the names in the first groups, and whether any of these needs heavy operators."""
        names = {name for group in self.groups[:count] for name in group}
        return names, count > self.n_cheap


def candidates_of(joint: GraphModule) -> Candidates:
    """Return what a joint graph would keep for its backward pass and could compute again.

    The first groups free most bytes per byte that computing them again touches.

    Cost: O(nodes * length of the chains that must be computed again).
    """
    kept = _kept(joint, _forward_nodes(joint))
    overwritten = _overwritten(joint)
    groups: dict[int, list[Node]] = {}
    for node in kept:
        groups.setdefault(_memory_key(node), []).append(node)
    found: list[tuple[str, ...]] = []
    n_cheap = 0
    known = set(kept)
    for heavy in (False, True):
        done = {name for names in found for name in names}
        rows: list[tuple[float, int, list[Node]]] = []
        for group in groups.values():
            if group[0].name in done:
                continue
            score = _score(group, known, overwritten, heavy=heavy)
            if score > 0:
                rows.append((-score, len(rows), group))
        rows.sort(key=lambda row: row[:2])
        found += [tuple(node.name for node in group) for _, _, group in rows]
        if not heavy:
            n_cheap = len(found)
            known -= {node for _, _, group in rows for node in group}
    return Candidates(groups=tuple(found), n_cheap=n_cheap)


def _score(group: list[Node], known: set[Node], overwritten: set[Any], *, heavy: bool) -> float:
    """Return the bytes that a group frees per byte touched; 0: it cannot, or frees none."""
    if not all(is_repeatable(node, heavy=heavy) for node in group):
        return 0.0
    chain = chain_of(group, known - set(group), heavy=heavy)
    sources = _sources(chain)
    if sources & overwritten:
        return 0.0
    added = sum(_bytes_of(n) for n in sources if n not in known and n.op != "placeholder")
    touched = sum(_bytes_of(node) * _weight(node) for node in chain | sources)
    return max(0.0, (_bytes_of(group[0]) - added) / max(touched, 1))


def _weight(node: Node) -> int:
    return 1 if is_repeatable(node) or node.op == "placeholder" else HEAVY_WEIGHT


def constants_of(joint: GraphModule, lasting: Collection[int] = ()) -> list[str]:
    """Return small values that the backward pass reads and that only lasting memory decides.

    Some are positions and masks that PyTorch's own decompositions make; eager kernels need none.
    Others are computed from small parameters (1 + weight, a cast), which are there anyhow.

    Args:
        joint: of AOTAutograd.
        lasting: positions of the inputs that outlive a training step as they are: parameters.
    """
    kept = _kept(joint, _forward_nodes(joint))
    primals = [
        node
        for node in joint.graph.nodes
        if node.op == "placeholder" and "tangents" not in str(node.target)
    ]
    there = {primals[i] for i in lasting if i < len(primals)} - _overwritten(joint)
    groups: dict[int, list[Node]] = {}
    for node in kept:
        groups.setdefault(_memory_key(node), []).append(node)
    found: list[str] = []
    for group in groups.values():
        if all(is_repeatable(node) and _bytes_of(node) <= SMALL_BYTES for node in group):
            chain = chain_of(group, ())
            sources = _sources(chain)
            touched = sum(_bytes_of(node) for node in chain | sources)
            if not sources or (sources <= there and touched <= SMALL_BYTES):
                found += [node.name for node in group]
    return found


def with_recomputation(
    joint: GraphModule, names: Collection[str], *, heavy: bool = False
) -> GraphModule:
    """Return the joint graph in which the backward pass computes the values `names` again.

    Copies of their operators stand at the beginning of the backward pass; where they run is for
    the search to say. They are the same kernels on the same values: results are bit for bit equal.

    Args:
        joint: of AOTAutograd; it stays as it is.
        names: of nodes in groups of `candidates_of(joint)`.
        heavy: whether matrix products and convolutions may be among what is computed again.
    """
    new = Graph()
    copy_of: dict[Node, Node] = {}
    forward = _forward_nodes(joint)
    wanted = set(names)
    dropped = [node for node in joint.graph.nodes if node.name in wanted]
    kept = set(_kept(joint, forward)) - set(dropped)
    again = chain_of(dropped, kept, heavy=heavy)
    second: dict[Node, Node] = {}
    newest = ChainMap(second, copy_of)
    last = _last_forward(joint, forward)
    moved = {key for node in again for key in memories_of(node)}

    for node in joint.graph.nodes:
        is_backward = node not in forward and node.op != "output"
        copy_of[node] = new.node_copy(
            node,
            lambda n, use=is_backward: second.get(n, copy_of[n]) if use else copy_of[n],
        )
        if is_backward and moved & memories_of(node):
            # A view of what is computed again now lies in other memory.
            copy_of[node].meta["val"] = fresh_value(copy_of[node])
        if node is last:
            for each in joint.graph.nodes:
                if each in again:
                    second[each] = _again(new, each, newest)
    new.set_codegen(joint.graph._codegen)
    result = GraphModule(joint, new)
    result.meta.update(joint.meta)
    return result


def is_repeatable(node: Node, *, heavy: bool = False) -> bool:
    """Return whether a value may be computed again: with the same bits, and soon unless `heavy`."""
    if node.op != "call_function":
        return False
    if node.target is operator.getitem:
        source, index = node.args
        if getattr(source, "target", None) is BATCH_NORM and index not in (0, 1, 2):
            return False
        return isinstance(index, int) and is_repeatable(source, heavy=heavy)
    target = node.target
    if target is BATCH_NORM:
        return bool(node.args[5])
    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
        return False
    if torch.Tag.nondeterministic_seeded in target.tags or target._schema.is_mutable:
        return False
    name = target._schema.name
    return is_pointwise(target) or name in CHEAP or (heavy and name in HEAVY)


def chain_of(nodes: Iterable[Node], kept: Collection[Node], *, heavy: bool = False) -> set[Node]:
    """Return what must be computed again for `nodes`, down to what is kept or must be."""
    found: set[Node] = set()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if node in found:
            continue
        found.add(node)
        pending.extend(
            n for n in _read_again(node) if n not in kept and is_repeatable(n, heavy=heavy)
        )
    return found


def fresh_value(node: Node) -> Any:
    """Return the fake result of a node, computed from the fake results of its arguments."""
    args = map_arg(node.args, lambda n: n.meta["val"])
    kwargs = map_arg(node.kwargs, lambda n: n.meta["val"])
    mode = detect_fake_mode([node.meta["val"]])
    with mode if mode is not None else nullcontext():
        return node.target(*args, **kwargs)


def memories_of(node: Node) -> set[int]:
    """Return the identities of the memory in which the results of a node lie."""
    found = (
        memory_of(leaf)
        for leaf in tree_leaves(node.meta.get("val"))
        if isinstance(leaf, torch.Tensor)
    )
    return {each[0] for each in found if each is not None}


def _again(graph: Graph, node: Node, value_of: Mapping[Node, Node]) -> Node:
    """Add the copy of a node that the backward pass runs."""
    if node.target is BATCH_NORM:
        source, weight, bias, _, _, training, momentum, epsilon = node.args
        arguments = tuple(
            None if each is None else value_of[each] for each in (source, weight, bias)
        )
        made = graph.call_function(BATCH_NORM_ALONE, (*arguments, training, momentum, epsilon))
        made.meta = dict(node.meta)
        made.meta["val"] = node.meta["val"][:3]
    else:
        made = graph.node_copy(node, lambda n: value_of[n])
    made.meta["partitioner_tag"] = "is_backward"
    made.meta.pop("recompute", None)
    # A second computation makes memory of its own; so must its fake tensor.
    made.meta["val"] = fresh_value(made)
    return made


def _forward_nodes(joint: GraphModule) -> set[Node]:
    """Return the nodes of the forward pass, as AOTAutograd's partitioner sees them."""
    last = None
    for node in joint.graph.nodes:
        is_primal = node.op == "placeholder" and "tangents" not in str(node.target)
        if is_primal or node.meta.get("partitioner_tag") == "is_forward":
            last = node
    found: set[Node] = set()
    for node in joint.graph.nodes:
        if not (node.op == "placeholder" and "tangents" in str(node.target)):
            found.add(node)
        if node is last:
            break
    return found


def _last_forward(joint: GraphModule, forward: set[Node]) -> Node:
    return [node for node in joint.graph.nodes if node in forward][-1]


def _kept(joint: GraphModule, forward: set[Node]) -> list[Node]:
    """Return the tensors of the forward pass that the backward pass reads."""
    return [
        node
        for node in joint.graph.nodes
        if node in forward
        and node.op == "call_function"
        and isinstance(node.meta.get("val"), torch.Tensor)
        and any(user not in forward and user.op != "output" for user in node.users)
    ]


def _overwritten(joint: GraphModule) -> set[Any]:
    """Return the inputs that the graph writes to: they are not what they were."""
    return {
        node.args[0] for node in joint.graph.nodes if node.target is torch.ops.aten.copy_.default
    }


def _sources(chain: set[Node]) -> set[Node]:
    return {n for node in chain for n in _read_again(node) if n not in chain}


def _read_again(node: Node) -> list[Node]:
    """Return what a node reads when it is computed again: running statistics are left out."""
    if node.target is BATCH_NORM:
        return [each for each in node.args[:3] if each is not None]
    return node.all_input_nodes


def _memory_key(node: Node) -> int:
    found = memory_of(node.meta["val"])
    return id(node) if found is None else found[0]


def _bytes_of(node: Node) -> int:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or memory_of(value) is None:
        return 0
    return hinted(value.untyped_storage().nbytes())
