"""What Inductor may fuse, and which layouts an operator takes."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._pytree import tree_leaves

from regal.backends.torch.fuse import is_view, storages_of, takes_any_strides
from regal.backends.torch.layouts import IMAGE_GATHERING, has_two_layouts
from regal.backends.torch.statistics import FIRST
from regal.cost.torch import KIND_OF, bare_name
from regal.fusion.types import FuseClass, LayoutRule

if TYPE_CHECKING:
    from torch.fx import Node

aten = torch.ops.aten

# Kinds by whose operators a group may be made of; what is not named here runs alone.
CLASS_OF_KIND = {
    "pointwise": FuseClass.POINTWISE,
    "reduce": FuseClass.REDUCTION,
    "softmax": FuseClass.REDUCTION,
    "norm": FuseClass.REDUCTION,
    "gather": FuseClass.POINTWISE,
}
POINTWISE_TOO = frozenset(
    {
        "native_batch_norm_legit_no_training", "clone", "to_copy", "constant_pad_nd", "full",
        "full_like", "zeros_like", "ones_like", "zeros", "ones", "arange", "scalar_tensor",
        "fill", "copy", "upsample_nearest2d",
    }
)  # fmt: skip
# Their kernels take either layout, each in its own time.
SENSITIVE = frozenset({"convolution", "convolution_backward"})
AGNOSTIC_KINDS = frozenset({"pointwise", "pool", "norm", "resize"})
AGNOSTIC_TOO = frozenset(
    {"cat", "clone", "to_copy", "constant_pad_nd", "mean", "sum", "slice", "full_like"}
)
# Of the gathering ones: generated code reads each element where the indices say. What computes the
# indices may be in the group, and what reads the result, so that it never lies in memory.
GATHERING = frozenset({"embedding", "index", "unsafe_index", "index_select", "gather"})


def fuse_class_of(node: Node, written: set[int]) -> FuseClass:
    """Return what a node is to fusion.

    Args:
        node: a call of an ATen operator.
        written: identities of memory that the graph writes to: who touches it runs alone, unless
            it only reads what a caller gave, before anything writes there (running statistics).
    """
    target: Any = node.target
    if not isinstance(target, torch._ops.OpOverload) or target.namespace not in ("aten", "prims"):
        return FuseClass.OPAQUE
    if target._schema.is_mutable or not takes_any_strides(target):
        return FuseClass.OPAQUE
    touched = [node, *node.all_input_nodes]
    if _touches(node, written) or not all(map(_is_usual, touched)):
        return FuseClass.OPAQUE
    if is_view(node):
        return FuseClass.VIEW
    if target in FIRST and len({leaf.dtype for leaf in tree_leaves(node.meta.get("val"))}) > 1:
        return FuseClass.OPAQUE  # generated code yields statistics of the dtype of the image
    if not _is_lowered(target):
        return FuseClass.OPAQUE
    name = bare_name(str(target))
    if name in POINTWISE_TOO:
        return FuseClass.POINTWISE
    kind = KIND_OF.get(name, "")
    if kind == "gather" and name not in GATHERING:
        return FuseClass.OPAQUE
    if name == "bmm" and _has_vector(node):
        return FuseClass.REDUCTION
    return CLASS_OF_KIND.get(kind, FuseClass.OPAQUE)


def layout_rule_of(node: Node, written: set[int]) -> LayoutRule:
    """Return which layouts a node takes: those whose values are no such images have one.

    Random numbers are drawn in the order of memory: another layout would give other ones.
    """
    target: Any = node.target
    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
        return LayoutRule.FIXED
    if target._schema.is_mutable or not takes_any_strides(target):
        return LayoutRule.FIXED
    touched = [node, *node.all_input_nodes]
    if _touches(node, written):
        return LayoutRule.FIXED
    if not any(has_two_layouts(leaf) for e in touched for leaf in tree_leaves(e.meta.get("val"))):
        return LayoutRule.FIXED
    name = bare_name(str(target))
    if name in SENSITIVE:
        return LayoutRule.SENSITIVE
    if name in IMAGE_GATHERING and not has_two_layouts(node.args[0].meta.get("val")):
        return LayoutRule.FIXED
    if (
        name in AGNOSTIC_TOO | IMAGE_GATHERING
        or KIND_OF.get(name, "") in AGNOSTIC_KINDS
        or is_view(node)
    ):
        return LayoutRule.AGNOSTIC
    return LayoutRule.FIXED


@cache
def _is_lowered(target: torch._ops.OpOverload) -> bool:
    """Return whether Inductor generates code for an operator instead of calling its kernel."""
    from torch._inductor.decomposition import select_decomp_table
    from torch._inductor.lowering import fallbacks, lowerings

    if target in select_decomp_table():
        return True
    return target in lowerings and target not in fallbacks


def _touches(node: Node, written: set[int]) -> bool:
    """Return whether a node has to do with memory while the graph writes to it, or after that."""
    return bool(storages_of(node) & written) or any(
        storages_of(given) & written and not _is_read_first(node, given)
        for given in node.all_input_nodes
    )


def _is_read_first(node: Node, given: Node) -> bool:
    """Return whether a node reads small memory of the caller before whatever writes to it.

    The graph says so, too: who writes comes after all who read before.
    """
    if given.op != "placeholder" or has_two_layouts(given.meta.get("val")):
        return False
    return all(
        isinstance(user.target, torch._ops.OpOverload)
        and not is_view(user)
        and (not user.target._schema.is_mutable or node < user)
        for user in given.users
    )


def _has_vector(node: Node) -> bool:
    """Return whether one side of a batch of products is a vector: a sum to generated code."""
    left, right = (each.meta["val"] for each in node.args[:2])
    return bool(left.shape[1] == 1 or right.shape[2] == 1)


def _is_usual(node: Node) -> bool:
    """Return whether all tensors of a node are dense ones of real numbers on a CPU."""
    return all(
        not isinstance(leaf, torch.Tensor)
        or (
            leaf.layout is torch.strided
            and leaf.device.type == "cpu"
            and not leaf.dtype.is_complex
            and not leaf.is_quantized
        )
        for leaf in tree_leaves(node.meta.get("val"))
    )
