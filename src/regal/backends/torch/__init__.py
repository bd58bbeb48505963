"""PyTorch programs: write a plan into fx graphs and .pt2 files, run them, and judge both."""

from regal.backends.torch.apply import (
    apply,
    default_order,
    encoded,
    refine,
    with_free_dimensions,
)
from regal.backends.torch.verify import verify

__all__ = ["apply", "default_order", "encoded", "refine", "verify", "with_free_dimensions"]
