"""The normalized kinds of ops: what a device's `kinds` may list, and what costs are told by."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

OP_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "conv": "convolutions of any kind, their gradients",
        "matmul": "matrix products, dense layers, Einstein sums",
        "attention": "fused attention",
        "rnn": "whole recurrent layers and cells",
        "pool": "pooling, its gradients",
        "pointwise": "element by element: arithmetic, activations, casts, optimizers",
        "reduce": "sums, means, maxima over axes",
        "norm": "normalizations",
        "softmax": "softmax and its losses",
        "resize": "image resizing",
        "gather": "reads of some rows of a table",
        "scatter": "writes of some rows",
        "copy": "bytes move: concatenation, slices, transposes, padding",
        "view": "no byte moves: reshapes, shapes, references",
        "sort": "sorting, top-k, searches",
        "random": "random numbers",
        "io": "strings, files, queues, data sets",
        "control": "ops with bodies",
        "none": "nothing happens: constants, placeholders",
        "other": "not known to the cost tables, custom ops",
    }
)
