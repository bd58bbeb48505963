"""Dtypes of the statistics of normalization: fake kernels say another one than CPUs yield."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import torch
from torch._guards import detect_fake_mode
from torch.fx import Node
from torch.fx.node import map_arg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch.fx import GraphModule

aten = torch.ops.aten

# Normalization -> the first part of its result that is a statistic; so are all after it.
FIRST = {
    aten.native_layer_norm.default: 1,
    aten.native_group_norm.default: 1,
    aten._native_batch_norm_legit_functional.default: 1,
    aten._native_batch_norm_legit.no_stats: 1,
}


def with_real_dtypes(target: Any, args: Sequence[Any], value: Any) -> Any:
    """Return the fake result of a call; statistics have the dtype that they really have.

    Fake kernels give them the dtype of the image, or 32 bits if they are running ones. On CPUs
    they have that of the parameters; under autocast the two differ.

    Args:
        target: any operator.
        args: with fake tensors.
        value: what its fake kernel yields.
    """
    if target not in FIRST or args[0].device.type != "cpu":
        return value
    given = [each for each in args if isinstance(each, torch.Tensor)]
    dtype = given[1 if len(given) > 1 else 0].dtype
    first = FIRST[target]
    return (*value[:first], *(part.to(dtype) for part in value[first:]))


def correct_statistics(module: GraphModule) -> None:
    """Give statistics, also detached ones, the dtypes that they really have, in `meta["val"]`."""
    mode = detect_fake_mode([node.meta.get("val") for node in module.graph.nodes])
    if mode is None:
        return
    changed: dict[Node, Any] = {}
    for node in module.graph.nodes:
        whole = changed.get(node.args[0]) if node.args and isinstance(node.args[0], Node) else None
        if node.target in FIRST:
            args = map_arg(node.args, lambda each: each.meta["val"])
            with mode:
                changed[node] = with_real_dtypes(node.target, args, node.meta["val"])
        elif whole is not None and node.target is operator.getitem:
            changed[node] = whole[node.args[1]]
        elif whole is not None and node.target is aten.detach.default:
            with mode:
                changed[node] = whole.detach()
        if node in changed:
            node.meta["val"] = changed[node]
