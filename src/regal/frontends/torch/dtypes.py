"""Names of PyTorch's dtypes in graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

# What PyTorch calls otherwise than the other frameworks.
OTHER_NAMES = {"float8_e4m3fnuz": "float8_e4m3fn", "float8_e5m2fnuz": "float8_e5m2"}


def dtype_name(dtype: torch.dtype) -> str:
    """Return "float32" for torch.float32, and so on."""
    name = str(dtype).removeprefix("torch.")
    return OTHER_NAMES.get(name, name)
