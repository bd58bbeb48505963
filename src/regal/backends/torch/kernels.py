"""Kernels that compute what an ATen operator does: PyTorch's choice, or another one it ships."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch.fx import Node

aten = torch.ops.aten

ATEN = "aten"  # the kernel that the operator itself picks
# oneDNN's. On one thread the operators pass it by for most convolutions of stride 1 and small
# batches, and for matrix products: there it took half the time on the machines we measured.
ONEDNN = "onednn"
# Gradients of a 1 x 1 convolution as a convolution and a matrix product, both by oneDNN.
SPLIT = "split"
# A 1 x 1 convolution of stride 1, or its gradients, as products by oneDNN: of images that are
# channels last these are the rows that lie there. Plain weights are read once, and not blocked.
PRODUCT = "product"
# A convolution by oneDNN whose weight is kept in blocks: see `packed`. For graphs without
# gradients, where weights seldom change.
PACKED = "packed"
KERNELS = (ATEN, ONEDNN, SPLIT, PRODUCT, PACKED)

CONVOLUTION = aten.convolution.default
CONVOLUTION_BACKWARD = aten.convolution_backward.default


def has_onednn() -> bool:
    """Return whether oneDNN is there and switched on."""
    return bool(torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled)


def kernels_of(node: Node) -> tuple[str, ...]:
    """Return the names of the kernels that may compute a node; the first is PyTorch's choice."""
    if not has_onednn() or not all(_is_plain(each) for each in node.all_input_nodes):
        return (ATEN,)
    if node.target is CONVOLUTION:
        *_, dilation, transposed, _, _ = node.args
        is_image = _value(node.args[0]).dim() == 4 and len(dilation) == 2
        if not is_image or transposed:
            return (ATEN,)
        is_pointwise = _is_pointwise_convolution(node.args)
        return (ATEN, ONEDNN, PRODUCT) if is_pointwise else (ATEN, ONEDNN)
    if node.target is CONVOLUTION_BACKWARD:
        is_pointwise = _is_pointwise_convolution(node.args[1:])
        return (ATEN, SPLIT, PRODUCT) if is_pointwise else (ATEN,)
    if node.target is aten.mm.default:
        return (ATEN, ONEDNN) if _is_product(node.args) else (ATEN,)
    if node.target is aten.addmm.default:
        is_linear = _value(node.args[0]).dim() == 1 and not node.kwargs
        return (ATEN, ONEDNN) if is_linear and _is_product(node.args[1:]) else (ATEN,)
    return (ATEN,)


def can_pack(node: Node, held: frozenset[str]) -> bool:
    """Return whether the weight of a convolution may be kept in blocks.

    Args:
        node: any.
        held: names of the placeholders that hold parameters.
    """
    if ONEDNN not in kernels_of(node) or node.target is not CONVOLUTION:
        return False
    weight: Any = node.args[1]
    return weight.op == "placeholder" and weight.name in held and _value(weight).is_contiguous()


def target_of(node: Node, kernel: str) -> Callable[..., Any]:
    """Return what computes a node by one of its kernels; it takes the node's own arguments."""
    if kernel == PACKED:
        from regal.backends.torch.packed import packed_convolution

        return packed_convolution
    if kernel == ATEN:
        call: Any = node.target
        return call
    if kernel == PRODUCT:
        is_forward = node.target is CONVOLUTION
        return product_convolution if is_forward else product_convolution_backward
    found: Any = {
        CONVOLUTION: onednn_convolution,
        CONVOLUTION_BACKWARD: split_convolution_backward,
        aten.mm.default: onednn_mm,
        aten.addmm.default: onednn_addmm,
    }[node.target]
    return found


def onednn_convolution(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> torch.Tensor:
    """Return a convolution by oneDNN; its result has the layout of `x`."""
    sizes = window_of(padding, stride, dilation)
    return aten.mkldnn_convolution.default(x, weight, bias, *sizes, groups)


def onednn_mm(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return a matrix product by oneDNN."""
    return torch.ops.mkldnn._linear_pointwise.default(left, right.t(), None, "none", [], "")


def onednn_addmm(bias: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return a matrix product plus a row by oneDNN."""
    return torch.ops.mkldnn._linear_pointwise.default(left, right.t(), bias, "none", [], "")


def split_convolution_backward(
    gradient: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    wanted: Sequence[bool],
) -> tuple[torch.Tensor | None, ...]:
    """Return the gradients of a 1 x 1 convolution of stride 1, as PyTorch's operator does."""
    of_x = of_weight = of_bias = None
    if wanted[0]:
        turned = weight.transpose(0, 1).contiguous()
        of_x = aten.mkldnn_convolution.default(gradient, turned, None, [0, 0], [1, 1], [1, 1], 1)
    if wanted[1]:
        rows = gradient.permute(0, 2, 3, 1).reshape(-1, gradient.shape[1])
        columns = x.permute(0, 2, 3, 1).reshape(-1, x.shape[1])
        of_weight = onednn_mm(rows.t(), columns).view(weight.shape)
    if wanted[2]:
        of_bias = gradient.sum((0, 2, 3))
    return of_x, of_weight, of_bias


def product_convolution(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> torch.Tensor:
    """Return a 1 x 1 convolution of stride 1 as a product; its result is channels last."""
    count, _, height, width = x.shape
    made: torch.Tensor = torch.ops.mkldnn._linear_pointwise.default(
        _rows(x), weight.reshape(weight.shape[:2]), bias, "none", [], ""
    )
    return made.view(count, height, width, -1).permute(0, 3, 1, 2)


def product_convolution_backward(
    gradient: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    wanted: Sequence[bool],
) -> tuple[torch.Tensor | None, ...]:
    """Return the gradients of a 1 x 1 convolution of stride 1; that of `x` is channels last."""
    of_x = of_weight = of_bias = None
    rows = _rows(gradient)
    if wanted[0]:
        count, _, height, width = x.shape
        made = onednn_mm(rows, weight.reshape(weight.shape[:2]))
        of_x = made.view(count, height, width, -1).permute(0, 3, 1, 2)
    if wanted[1]:
        of_weight = onednn_mm(rows.t(), _rows(x)).view(weight.shape)
    if wanted[2]:
        of_bias = rows.sum(0)
    return of_x, of_weight, of_bias


def window_of(
    padding: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[list[int], list[int], list[int]]:
    """Return all three with one number per axis of `stride`, also where one stands for all."""
    count = len(stride)
    rows = (padding, stride, dilation)
    wide = [list(row) if len(row) == count else [row[0]] * count for row in rows]
    return wide[0], wide[1], wide[2]


def _rows(x: torch.Tensor) -> torch.Tensor:
    """Return an image as one row of channels per pixel: a view if it is channels last."""
    return x.permute(0, 2, 3, 1).reshape(-1, x.shape[1])


def _is_pointwise_convolution(args: Sequence[Any]) -> bool:
    """Return whether a convolution takes each pixel alone; `args`: image, weight, bias and more."""
    x, weight, _, stride, padding, _, transposed, _, groups = args[:9]
    if _value(x).dim() != 4 or transposed or groups != 1 or not _value(x).numel():
        return False
    ones = all(number == 1 for number in stride)
    return tuple(_value(weight).shape[2:]) == (1, 1) and ones and not any(padding)


def _is_product(args: Sequence[Any]) -> bool:
    return all(_value(each).dim() == 2 and prod(_value(each).shape) > 0 for each in args[:2])


def _is_plain(node: Node) -> bool:
    value = node.meta.get("val")
    return (
        isinstance(value, torch.Tensor)
        and value.dtype is torch.float32
        and value.device.type == "cpu"
        and value.layout is torch.strided
    )


def _value(node: Any) -> torch.Tensor:
    value: torch.Tensor = node.meta["val"]
    return value
