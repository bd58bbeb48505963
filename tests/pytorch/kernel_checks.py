"""Kernels beside PyTorch's own choice, against it; prints a JSON object."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import torch

from regal.backends.torch.agreement import disagreement
from regal.backends.torch.fuse import written_storages
from regal.backends.torch.kernels import (
    KERNELS,
    PACKED,
    can_pack,
    kernels_of,
    target_of,
)
from regal.fusion.types import FuseClass, LayoutRule
from regal.torch.legality import fuse_class_of, layout_rule_of
from tests.pytorch.fused_checks import traced

aten = torch.ops.aten
FORMATS = {"contiguous": torch.contiguous_format, "channels last": torch.channels_last}


def convolutions() -> dict[str, str]:
    """Compare every kernel of some convolutions and of their gradients with ATen's."""
    found: dict[str, str] = {}
    for (layout, memory_format), window, size in product(FORMATS.items(), (1, 3), (1, 5)):
        x = torch.randn(2, 6, size, size).to(memory_format=memory_format)
        weight, bias = torch.randn(4, 6, window, window), torch.randn(4)
        pad = [window // 2] * 2
        gradient = torch.randn(2, 4, size, size).to(memory_format=memory_format)
        sizes = ([1, 1], pad, [1, 1], False, [0, 0], 1)
        calls = {
            "forward": (aten.convolution.default, (x, weight, bias, *sizes)),
            "backward": (
                aten.convolution_backward.default,
                (gradient, x, weight, [4], *sizes, [True, True, True]),
            ),
        }
        for name, (target, args) in calls.items():
            for kernel, result in _by_all(target, args).items():
                key = f"{name} {window} x {window} on {size} x {size} {layout}: {kernel}"
                found[key] = disagreement(target(*args), result)
    return found


def _by_all(target: Any, args: tuple[Any, ...]) -> dict[str, Any]:
    """Return kernel -> what a call yields by it, for those that take plain weights."""
    tensors = [each for each in args if isinstance(each, torch.Tensor)]

    def function(*given: torch.Tensor) -> Any:
        rest = iter(given)
        return target(*(next(rest) if isinstance(each, torch.Tensor) else each for each in args))

    module = traced(function, *tensors)
    (node,) = [each for each in module.graph.nodes if each.target is target]
    return {each: target_of(node, each)(*args) for each in kernels_of(node)}


def choices() -> dict[str, list[str]]:
    """Say which kernels may compute some convolutions."""
    found = {}
    for name, (window, stride, groups) in {
        "plain": (1, 1, 1),
        "strided": (1, 2, 1),
        "grouped": (1, 1, 2),
        "wide": (3, 1, 1),
    }.items():
        layer = torch.nn.Conv2d(6, 4, window, stride, groups=groups)
        module = traced(
            _called, torch.randn(2, 6, 5, 5), layer.weight.detach(), torch.ones(stride, groups)
        )
        (node,) = [each for each in module.graph.nodes if each.op == "call_function"]
        names = [each.name for each in module.graph.nodes if each.op == "placeholder"]
        packs = [PACKED] if can_pack(node, frozenset(names)) else []
        found[name] = sorted((*kernels_of(node), *packs), key=KERNELS.index)
    return found


def _called(x: torch.Tensor, weight: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    """Return a convolution whose stride and groups are the sizes of a tensor."""
    return torch.conv2d(x, weight, stride=sizes.shape[0], groups=sizes.shape[1])


def normalization() -> dict[str, bool]:
    """Say what normalization in training may do, which reads statistics before they are written."""

    def function(x: torch.Tensor, mean: torch.Tensor, var: torch.Tensor) -> Any:
        made = aten._native_batch_norm_legit_functional.default(
            x, None, None, mean, var, True, 0.1, 1e-5
        )
        aten.copy_.default(mean, made[3])
        later = mean * 2
        aten.copy_.default(var, made[4])
        return made[0], later

    module = traced(function, torch.randn(2, 3, 4, 4), torch.zeros(3), torch.ones(3))
    written = written_storages(module)
    (norm,) = [each for each in module.graph.nodes if "batch_norm" in str(each.target)]
    (later,) = [each for each in module.graph.nodes if "mul" in str(each.target)]
    return {
        "in groups": fuse_class_of(norm, written) is FuseClass.REDUCTION,
        "either layout": layout_rule_of(norm, written) is LayoutRule.AGNOSTIC,
        "later reader alone": fuse_class_of(later, written) is FuseClass.OPAQUE,
    }


def dropout() -> bool:
    """Say whether what draws random numbers keeps its layout: it draws them in memory's order."""
    module = traced(lambda x: aten.native_dropout.default(x, 0.5, True), torch.randn(2, 3, 4, 4))
    (node,) = [each for each in module.graph.nodes if "dropout" in str(each.target)]
    return layout_rule_of(node, set()) is LayoutRule.FIXED


def main() -> None:
    torch.set_num_threads(1)
    found = {"convolutions": convolutions(), "choices": choices()}
    print(json.dumps({**found, "normalization": normalization(), "dropout": dropout()}))


if __name__ == "__main__":
    main()
