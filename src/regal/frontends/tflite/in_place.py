"""Which ops may write their output over an input that dies: TFLM's kernels, read one by one.

Every kernel listed here computes output element i from element i of that input and from
nothing that it has overwritten before, so equal pointers are safe. TFLM itself never plans
this; an offline plan may, because TFLM does not check planned buffers for overlap.

Source: tensorflow/lite/micro/kernels/*.cc and tensorflow/lite/kernels/internal/reference/*.h
of tensorflow/tflite-micro at 90b983c2b3f1. The loop of binary ops (broadcast_loop.h) walks
the output in order; the operand that is not broadcast is read at the same position.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.graph.types import Tensor

# RESHAPE returns at once on equal pointers (reshape.cc); the other two copy whole elements
# in order (squeeze.cc, expand_dims.cc).
COPIES: Final = frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS"})

# One loop `output[i] = f(input[i])`, or a table look-up. QUANTIZE, DEQUANTIZE and CAST
# qualify only when elements keep their size: see below.
_UNARY: Final = frozenset(
    {
        "ABS",
        "CAST",
        "CEIL",
        "COS",
        "DEQUANTIZE",
        "ELU",
        "EXP",
        "FLOOR",
        "HARD_SWISH",
        "LEAKY_RELU",
        "LOG",
        "LOGICAL_NOT",
        "LOGISTIC",
        "NEG",
        "QUANTIZE",
        "RELU",
        "RELU6",
        "ROUND",
        "RSQRT",
        "SIN",
        "SQRT",
        "SQUARE",
        "TANH",
    }
)
# Two operands, either of which may be broadcast; the one that is not may be overwritten.
_BINARY: Final = frozenset(
    {
        "ADD",
        "DIV",
        "FLOOR_DIV",
        "FLOOR_MOD",
        "LOGICAL_AND",
        "LOGICAL_OR",
        "MAXIMUM",
        "MINIMUM",
        "MUL",
        "PRELU",
        "SQUARED_DIFFERENCE",
        "SUB",
    }
)


def in_place_pairs(
    kind: str, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
) -> tuple[tuple[int, int], ...]:
    """Return (input position, output position) pairs that may share their bytes.

    Sizes must be equal, for the whole tensor and for each element. Whether the input dies
    there, and is not itself an output or a constant, is for the plan to decide.
    """
    if len(outputs) != 1 or outputs[0].bytes == 0:
        return ()
    if kind in COPIES or kind in _UNARY:
        positions: Sequence[int] = (0,)
    elif kind in _BINARY:
        positions = (0, 1)
    else:
        return ()
    return tuple(
        (position, 0)
        for position in positions
        if position < len(inputs) and _fits(inputs[position], outputs[0], kind in COPIES)
    )


def _fits(source: Tensor | None, target: Tensor, is_copy: bool) -> bool:
    if source is None or source.bytes != target.bytes:
        return False
    return is_copy or _without_leading_ones(source) == _without_leading_ones(target)


def _without_leading_ones(tensor: Tensor) -> tuple[int, ...]:
    dims = list(tensor.shape)
    while dims and dims[0] == 1:
        dims.pop(0)
    return tuple(dims)
