"""TensorFlow Lite's operators: their normalized kinds and what they compute."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from regal.cost import formulas as f
from regal.graph.types import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.cost.formulas import Rule
    from regal.cost.operands import Operands

KINDS: Final = {
    "conv": "CONV_2D DEPTHWISE_CONV_2D TRANSPOSE_CONV CONV_3D CONV_3D_TRANSPOSE"
    " STABLEHLO_CONVOLUTION",
    "matmul": "FULLY_CONNECTED BATCH_MATMUL STABLEHLO_DOT_GENERAL",
    "rnn": "LSTM RNN SVDF UNIDIRECTIONAL_SEQUENCE_LSTM UNIDIRECTIONAL_SEQUENCE_RNN"
    " BIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_RNN",
    "pool": "AVERAGE_POOL_2D MAX_POOL_2D L2_POOL_2D REDUCE_WINDOW STABLEHLO_REDUCE_WINDOW",
    "pointwise": "ADD SUB MUL DIV RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 LEAKY_RELU PRELU ELU GELU"
    " HARD_SWISH LOGISTIC TANH EXP LOG SIN COS SQRT RSQRT SQUARE ABS NEG SIGN FLOOR CEIL ROUND"
    " POW ATAN2 MAXIMUM MINIMUM SQUARED_DIFFERENCE FLOOR_DIV FLOOR_MOD EQUAL NOT_EQUAL LESS"
    " LESS_EQUAL GREATER GREATER_EQUAL LOGICAL_AND LOGICAL_OR LOGICAL_NOT SELECT SELECT_V2"
    " QUANTIZE DEQUANTIZE FAKE_QUANT CAST ADD_N BITWISE_XOR RIGHT_SHIFT IMAG REAL COMPLEX_ABS"
    " BUCKETIZE STABLEHLO_LOGISTIC STABLEHLO_ADD STABLEHLO_DIVIDE STABLEHLO_MULTIPLY"
    " STABLEHLO_MAXIMUM STABLEHLO_CLAMP STABLEHLO_ABS STABLEHLO_AND STABLEHLO_COSINE"
    " STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG STABLEHLO_MINIMUM STABLEHLO_NEGATE"
    " STABLEHLO_OR STABLEHLO_POWER STABLEHLO_REMAINDER STABLEHLO_RSQRT STABLEHLO_SELECT"
    " STABLEHLO_SUBTRACT STABLEHLO_TANH STABLEHLO_COMPARE STABLEHLO_CONVERT STABLEHLO_SHIFT_LEFT"
    " STABLEHLO_CBRT",
    "reduce": "MEAN SUM REDUCE_PROD REDUCE_MAX REDUCE_MIN REDUCE_ANY REDUCE_ALL ARG_MAX ARG_MIN"
    " CUMSUM",
    "softmax": "SOFTMAX LOG_SOFTMAX",
    "norm": "L2_NORMALIZATION LOCAL_RESPONSE_NORMALIZATION",
    "resize": "RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR",
    "gather": "GATHER GATHER_ND EMBEDDING_LOOKUP EMBEDDING_LOOKUP_SPARSE HASHTABLE_LOOKUP"
    " HASHTABLE_FIND STABLEHLO_GATHER",
    "scatter": "SCATTER_ND SPARSE_TO_DENSE SEGMENT_SUM UNSORTED_SEGMENT_SUM"
    " UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_MIN STABLEHLO_SCATTER",
    "copy": "CONCATENATION PACK UNPACK SPLIT SPLIT_V SLICE STRIDED_SLICE TRANSPOSE PAD PADV2"
    " MIRROR_PAD TILE FILL BROADCAST_TO SPACE_TO_DEPTH DEPTH_TO_SPACE SPACE_TO_BATCH_ND"
    " BATCH_TO_SPACE_ND REVERSE_V2 REVERSE_SEQUENCE DYNAMIC_UPDATE_SLICE ASSIGN_VARIABLE"
    " READ_VARIABLE ZEROS_LIKE ONE_HOT RANGE MATRIX_DIAG MATRIX_SET_DIAG DENSIFY DILATE"
    " BROADCAST_ARGS CONCAT_EMBEDDINGS STABLEHLO_CONCATENATE STABLEHLO_BROADCAST_IN_DIM"
    " STABLEHLO_SLICE STABLEHLO_DYNAMIC_SLICE STABLEHLO_DYNAMIC_UPDATE_SLICE STABLEHLO_PAD"
    " STABLEHLO_IOTA STABLEHLO_TRANSPOSE",
    "view": "RESHAPE SQUEEZE EXPAND_DIMS BITCAST SHAPE RANK STABLEHLO_RESHAPE HASHTABLE_SIZE",
    "sort": "TOPK_V2 UNIQUE WHERE NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 STABLEHLO_SORT",
    "random": "RANDOM_UNIFORM RANDOM_STANDARD_NORMAL MULTINOMIAL STABLEHLO_RNG_BIT_GENERATOR",
    "control": "IF WHILE CALL CALL_ONCE STABLEHLO_WHILE STABLEHLO_CASE STABLEHLO_COMPOSITE",
    "none": "VAR_HANDLE HASHTABLE HASHTABLE_IMPORT",
}  # fmt: skip


def _layers(op: Operands) -> int:
    """Return what recurrent ops multiply: each step with every matrix that is no state."""
    steps = prod(op.shape(0)[:-1])
    weights = [t for t in op.inputs[1:] if t is not None and len(t.shape) == 2]
    return 2 * steps * sum(prod(t.shape) for t in weights if t.role is not Role.STATE)


def _batch_matmul(op: Operands) -> int:
    left = op.shape(0)
    rows = op.out_shape()[-2] if len(op.out_shape()) > 1 else 1
    if op.flag("adj_x"):
        return 2 * op.written * left[-2] if len(left) > 1 else 0
    # Files of older converters leave the attribute out: the rows show which side is which.
    return 2 * op.written * (prod(left[-2:]) // rows if rows else 0)


FLOPS: Final[Mapping[str, Rule]] = {
    "CONV_2D": f.convolution(1, slice(1, None)),  # filter: out channels, window, in channels
    "CONV_3D": f.convolution(1, slice(None, -1)),  # filter: window, in, out
    "DEPTHWISE_CONV_2D": f.convolution(1, slice(None, -1)),  # filter: 1, window, channels
    "TRANSPOSE_CONV": f.spread(1, 2, slice(None, -1)),  # filter: out, window, in
    "CONV_3D_TRANSPOSE": f.spread(1, 2, slice(None, -1)),  # filter: window, out, in
    "FULLY_CONNECTED": f.convolution(1, slice(-1, None)),  # filter: out, in
    "BATCH_MATMUL": _batch_matmul,
    "LSTM": _layers,
    "RNN": _layers,
    "SVDF": _layers,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _layers,
    "UNIDIRECTIONAL_SEQUENCE_RNN": _layers,
    "BIDIRECTIONAL_SEQUENCE_LSTM": _layers,
    "BIDIRECTIONAL_SEQUENCE_RNN": _layers,
    "MEAN": f.mean,
    "CUMSUM": f.per_output(1),
    "RSQRT": f.per_output(2),
    "SQUARED_DIFFERENCE": f.per_output(2),
    "ADD_N": lambda op: op.written * max(len(op.inputs) - 1, 0),
    "L2_NORMALIZATION": f.per_output(3),  # square, sum, divide
    "LOCAL_RESPONSE_NORMALIZATION": f.per_output(f.LAYER_NORM),
    "RESIZE_NEAREST_NEIGHBOR": f.nothing,
}
