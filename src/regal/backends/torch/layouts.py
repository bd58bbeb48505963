"""Strides of tensors: contiguous, channels last, and what a caller was promised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from regal.fusion.types import CHANNELS_LAST, CONTIGUOUS

if TYPE_CHECKING:
    from collections.abc import Sequence

    Strides = tuple[int, ...]

FORMATS = {CONTIGUOUS: torch.contiguous_format, CHANNELS_LAST: torch.channels_last}
IMAGE_GATHERING = frozenset({"index", "unsafe_index"})  # resizing to the nearest is traced so


def has_two_layouts(value: object) -> bool:
    """Return whether a value is an image of several channels and pixels, dense in either layout."""
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return False
    if value.dim() != 4 or value.shape[1] < 2 or value.shape[2] * value.shape[3] < 2:
        return False
    return layout_of(value) is not None


def layout_of(value: torch.Tensor) -> int | None:
    """Return the layout of an image; None: neither of the two (a slice, a transposed one)."""
    if value.is_contiguous():
        return CONTIGUOUS
    if value.dim() == 4 and value.is_contiguous(memory_format=torch.channels_last):
        return CHANNELS_LAST
    return None


def same_strides(value: torch.Tensor, strides: Sequence[int]) -> bool:
    """Return whether a tensor has these strides; along axes of one element any stride is right.

    So it is where elements share memory: such a tensor cannot be made by writing to it.
    """
    rows = zip(value.shape, value.stride(), strides, strict=True)
    if any(other == 0 and n > 1 for n, other in zip(value.shape, strides, strict=True)):
        return True
    return value.numel() == 0 or all(n < 2 or mine == other for n, mine, other in rows)


def restrided(value: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """Return the same values in new memory of these strides."""
    made = torch.empty_strided(value.shape, strides, dtype=value.dtype, device=value.device)
    return made.copy_(value)


def with_strides(values: list[Any], strides: Sequence[Strides | None]) -> list[Any]:
    """Return values of which the tensors have these strides, copied where they had others.

    The list that is given is emptied. None: a value stays as it is.
    """
    found = [
        restrided(value, wanted)
        if wanted is not None
        and isinstance(value, torch.Tensor)
        and value.layout is torch.strided
        and value.stride() != wanted  # a tenth of the time of what follows
        and not same_strides(value, wanted)
        else value
        for value, wanted in zip(values, strides, strict=True)
    ]
    values.clear()
    return found


def shown(
    root: torch.Tensor, sizes: Sequence[int], strides: Sequence[int], offset: int
) -> torch.Tensor:
    """Return a view of a tensor's memory; the offset counts from its own first element."""
    return root.as_strided(sizes, strides, int(root.storage_offset()) + offset)
