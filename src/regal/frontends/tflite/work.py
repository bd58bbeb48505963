"""How much arithmetic an op does, from its shapes."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.graph.types import Tensor

_FREE: Final = frozenset(
    {
        "RESHAPE",
        "SQUEEZE",
        "EXPAND_DIMS",
        "SHAPE",
        "RANK",
        "CONCATENATION",
        "PACK",
        "UNPACK",
        "SPLIT",
        "SPLIT_V",
        "SLICE",
        "STRIDED_SLICE",
        "GATHER",
        "GATHER_ND",
        "TRANSPOSE",
        "PAD",
        "PADV2",
        "MIRROR_PAD",
        "TILE",
        "FILL",
        "BROADCAST_TO",
        "SPACE_TO_DEPTH",
        "DEPTH_TO_SPACE",
        "SPACE_TO_BATCH_ND",
        "BATCH_TO_SPACE_ND",
        "VAR_HANDLE",
        "READ_VARIABLE",
        "ASSIGN_VARIABLE",
        "CALL",
        "CALL_ONCE",
        "IF",
        "WHILE",
        "HASHTABLE",
        "HASHTABLE_IMPORT",
        "RESIZE_NEAREST_NEIGHBOR",
        "REVERSE_V2",
        "DYNAMIC_UPDATE_SLICE",
        "BROADCAST_ARGS",
        "ZEROS_LIKE",
    }
)


def flops_of(kind: str, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> int:
    """Return the floating or fixed-point operations of one run; a multiply-add counts as 2.

    Exact for convolutions and matrix products; one per element for element-wise ops and per
    input element for reductions; 0 where data only moves.
    """
    first = inputs[0] if inputs else None
    weights = inputs[1] if len(inputs) > 1 else None
    if kind in _FREE or not outputs:
        return 0
    elements = prod(outputs[0].shape)
    if weights is not None and len(weights.shape) >= 2:
        match kind:
            case "CONV_2D" | "CONV_3D":  # filter: out channels, then what one output reads
                per_output = prod(weights.shape[1:])
                if kind == "CONV_3D":  # filter: depth, height, width, in, out
                    per_output = prod(weights.shape[:-1])
                return 2 * elements * per_output
            case "DEPTHWISE_CONV_2D":  # filter: 1, height, width, channels
                return 2 * elements * prod(weights.shape[:-1])
            case "FULLY_CONNECTED":  # filter: out features, in features
                return 2 * elements * weights.shape[-1]
            case "TRANSPOSE_CONV":  # inputs: shape, filter, data; filter: out, h, w, in
                data = inputs[2] if len(inputs) > 2 else None
                read = prod(data.shape) if data is not None else elements
                return 2 * read * prod(weights.shape[:-1])
            case "BATCH_MATMUL" if first is not None and first.shape and elements:
                # rows x inner . inner x columns; the rows show which side `inner` is on
                rows = outputs[0].shape[-2] if len(outputs[0].shape) > 1 else 1
                inner = prod(first.shape[-2:]) // rows if rows else 0
                return 2 * elements * inner
    if kind in ("SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM", "LSTM", "RNN"):
        steps = prod(first.shape[:-1]) if first is not None else 1
        matrices = [t for t in inputs[1:] if t is not None and len(t.shape) == 2]
        return 2 * steps * sum(prod(t.shape) for t in matrices)
    read = prod(first.shape) if first is not None else 0
    return max(elements, read)
