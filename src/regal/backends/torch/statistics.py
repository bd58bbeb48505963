"""Dtypes of the statistics of normalization: fake kernels say another one than CPUs yield."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import torch
from torch._guards import detect_fake_mode
from torch.fx.node import map_arg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch.fx import GraphModule

aten = torch.ops.aten

# Normalization -> the first part of its result that is a statistic; so are all after it.
FIRST = {
    aten.native_layer_norm.default: 1,
    aten._native_batch_norm_legit_functional.default: 1,
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
    """Give statistics the dtypes that they really have; they are in `meta["val"]`."""
    mode = detect_fake_mode([node.meta.get("val") for node in module.graph.nodes])
    if mode is None:
        return
    for target in FIRST:
        for node in module.graph.find_nodes(op="call_function", target=target):
            args = map_arg(node.args, lambda each: each.meta["val"])
            with mode:
                node.meta["val"] = with_real_dtypes(target, args, node.meta["val"])
            for user in node.users:
                if user.target is operator.getitem:
                    user.meta["val"] = node.meta["val"][user.args[1]]
