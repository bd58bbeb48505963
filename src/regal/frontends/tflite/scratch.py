"""Scratch memory that TFLM's kernels ask for, beside the tensors of the file.

TFLM plans these buffers together with the tensors (RequestScratchBufferInArena), so a plan
must leave room for them. The sizes are those of the reference kernels; kernels tuned for a
chip (CMSIS-NN, Xtensa, ...) may ask for more, which TFLM then fits around the plan.

Source: tensorflow/lite/micro/kernels of tensorflow/tflite-micro at 90b983c2b3f1, all files
that request scratch. Not covered: TFLite_Detection_PostProcess, whose sizes are in its
custom options, and CONCATENATION and ASSIGN_VARIABLE, which ask only for compressed tensors.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from regal.frontends.tflite.arena import ALIGNMENT
from regal.units import round_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.graph.types import Tensor

_INT: Final = 4  # bytes of int, int32_t and float
_POINTER: Final = 8  # on a 64-bit host; 4 on most microcontrollers
_QUANTIZED: Final = ("int8", "int16")


def scratch_bytes(kind: str, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> int:
    """Return the bytes of all scratch buffers of an op, each rounded up to 16."""
    sizes = scratch_sizes(kind, inputs, outputs)
    return sum(round_up(size, ALIGNMENT) for size in sizes)


def scratch_sizes(
    kind: str, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
) -> list[int]:
    """Return the bytes of each scratch buffer of an op, in the sequence of its requests."""
    if not inputs or not outputs:
        return []
    first = inputs[0]
    second = inputs[1] if len(inputs) > 1 else None
    out = outputs[0]
    match kind:
        case "ADD_N" if out.dtype in ("float32", "int8"):  # add_n.cc: a pointer per input
            return [_POINTER * len(inputs)]
        case "CONV_2D" | "DEPTHWISE_CONV_2D" | "FULLY_CONNECTED":  # *_common.cc, unpacked int4
            return [prod(second.shape)] if second and second.dtype == "int4" else []
        case "MIRROR_PAD" if first:  # mirror_pad.cc
            return [_INT * len(first.shape)] * 2
        case "MEAN" | "SUM" if first and second:  # reduce_common.cc, PrepareMeanOrSumHelper
            iterators = [_INT * len(first.shape), _INT * prod(second.shape)]
            is_quantized = first.dtype in _QUANTIZED
            return [*([_INT * prod(out.shape)] if is_quantized else []), *iterators]
        case "REDUCE_MAX" | "REDUCE_MIN" | "REDUCE_ALL" | "REDUCE_ANY" if first and second:
            return [_INT * len(first.shape), _INT * prod(second.shape)]
        case "SVDF":  # svdf_common.cc
            return _svdf_sizes(first, second, out)
        case "TRANSPOSE_CONV":  # transpose_conv.cc; inputs: shape, filter, data, bias
            return _transpose_conv_sizes(inputs, out)
        case "UNIDIRECTIONAL_SEQUENCE_LSTM":  # unidirectional_sequence_lstm.cc
            return _lstm_sizes(inputs)
    return []


def _svdf_sizes(data: Tensor | None, features: Tensor | None, out: Tensor) -> list[int]:
    if data is None or features is None or not data.shape or not features.shape:
        return []
    batch, filters = data.shape[0], features.shape[0]
    if data.dtype != "int8":
        return [batch * filters * _INT]
    return [batch * filters * _INT, batch * out.shape[-1] * _INT]


def _transpose_conv_sizes(inputs: Sequence[Tensor | None], out: Tensor) -> list[int]:
    data = inputs[2] if len(inputs) > 2 else None
    bias = inputs[3] if len(inputs) > 3 else None
    if data is None or data.dtype not in _QUANTIZED:
        return []
    if data.dtype == "int8":
        return [prod(out.shape) * _INT]
    wide = [prod(bias.shape) * 8] if bias is not None and bias.dtype == "int16" else []
    return [prod(out.shape) * 8, *wide]


def _lstm_sizes(inputs: Sequence[Tensor | None]) -> list[int]:
    # Input 19 is the cell state: (batch, units).
    cell = inputs[19] if len(inputs) > 19 else None
    return [cell.bytes] * 4 if cell is not None else []
