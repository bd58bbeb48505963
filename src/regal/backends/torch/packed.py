"""Weights of convolutions in oneDNN's own blocks, kept from call to call and never out of date.

oneDNN computes on blocks of weights, and makes them anew in every call where it is given plain
ones: of ResNet18 on images of 64 x 64 that is a third of the time. Here blocks are kept. Every
call reads the plain weights once, which takes a fraction of that, and compares a fingerprint: a
weight that was changed in whatever way (an optimizer, a loaded checkpoint, `.data`) is blocked
again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from regal._native import fingerprints
from regal.backends.torch.kernels import window_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

MOST_CHANGES = 3  # calls in a row that find changed weights: whoever trains is not served so
BYTES_PER_NS = 6  # of the fingerprint, from memory


@dataclass(frozen=True, slots=True)
class Packing:
    """How one weight is blocked: oneDNN's choice depends on the convolution."""

    padding: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    input_shape: tuple[int, ...]

    def packed(self, weight: torch.Tensor) -> torch.Tensor:
        """Return a weight in blocks."""
        found: torch.Tensor = torch.ops.mkldnn._reorder_convolution_weight(
            weight.detach(),
            list(self.padding),
            list(self.stride),
            list(self.dilation),
            self.groups,
            list(self.input_shape),
        )
        return found


class PackedWeights:
    """Yields the blocked forms of the weights that it is called with, from memory if it can."""

    def __init__(self, packings: Sequence[Packing]) -> None:
        """Take how each weight is blocked."""
        self.__name__ = "packed_weights"
        self.__module__ = "regal"
        self._packings = packings
        # Fingerprints and blocked weights, replaced together: another thread sees both or none.
        self._state: tuple[NDArray[np.int64], list[torch.Tensor]] | None = None
        self._changes = 0

    def __call__(self, *weights: torch.Tensor) -> list[torch.Tensor]:
        """Return one blocked weight per plain one; plain ones where they change all the time."""
        if self._changes > MOST_CHANGES:
            return list(weights)
        prints = fingerprints(
            np.array([each.data_ptr() for each in weights], dtype=np.int64),
            np.array([each.numel() * each.element_size() for each in weights], dtype=np.int64),
        )
        state = self._state
        if state is not None and np.array_equal(prints, state[0]):
            self._changes = 0
            return state[1]
        packed = [] if state is None else list(state[1])
        for i, (weight, packing) in enumerate(zip(weights, self._packings, strict=True)):
            if state is None:
                packed.append(packing.packed(weight))
            elif prints[i] != state[0][i]:
                packed[i] = packing.packed(weight)
        self._changes += state is not None
        self._state = (prints, packed)
        return packed


def packing_of(args: Sequence[Any], input_shape: Sequence[int]) -> Packing:
    """Return how the weight of a convolution is blocked.

    Args:
        args: of the convolution.
        input_shape: of its image.
    """
    _, _, _, stride, padding, dilation, _, _, groups = args
    padding, stride, dilation = map(tuple, window_of(padding, stride, dilation))
    return Packing(
        padding=padding,
        stride=stride,
        dilation=dilation,
        groups=groups,
        input_shape=tuple(input_shape),
    )


def packed_convolution(
    x: torch.Tensor,
    packed: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> torch.Tensor:
    """Return a convolution with a blocked weight; its result is channels last."""
    sizes = window_of(padding, stride, dilation)
    return torch.ops.mkldnn._convolution_pointwise.default(
        x, packed, bias, *sizes, groups, "none", [], ""
    )


def check_ns(weight: torch.Tensor) -> int:
    """Return what the fingerprint of a weight takes."""
    return weight.numel() * weight.element_size() // BYTES_PER_NS
