"""ONNX's operators, and ONNX Runtime's own: their normalized kinds and what they compute."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from regal.cost import formulas as f

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.cost.formulas import Rule
    from regal.cost.operands import Operands

# Operators of other domains are looked up without their domain ("com.microsoft::Gelu").
KINDS: Final = {
    "conv": "Conv ConvInteger ConvTranspose DeformConv QLinearConv FusedConv NhwcConv"
    " NhwcFusedConv ConvTransposeWithDynamicPads CausalConvWithState",
    "matmul": "MatMul MatMulInteger MatMulInteger16 MatMulIntegerToFloat MatMulNBits MatMulBnb4"
    " MatMulFpQ4 QLinearMatMul QGemm QOrderedMatMul DynamicQuantizeMatMul Gemm FusedGemm"
    " GemmFastGelu GemmFloat8 FusedMatMul FusedMatMulActivation TransposeMatMul"
    " SparseToDenseMatMul Einsum",
    "attention": "Attention MultiHeadAttention GroupQueryAttention QAttention PackedAttention"
    " PackedMultiHeadAttention DecoderAttention DecoderMaskedMultiHeadAttention"
    " DecoderMaskedSelfAttention LongformerAttention SparseAttention PagedAttention"
    " FlexAttention LinearAttention",
    "rnn": "LSTM GRU RNN AttnLSTM DynamicQuantizeLSTM",
    "pool": "AveragePool MaxPool LpPool GlobalAveragePool GlobalMaxPool GlobalLpPool"
    " QLinearAveragePool QLinearGlobalAveragePool NhwcMaxPool MaxpoolWithMask MaxRoiPool RoiAlign"
    " CropAndResize",
    "pointwise": "Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot"
    " BitwiseOr BitwiseXor Cast CastLike Ceil Celu Clip Cos Cosh Div Dropout Elu Equal Erf Exp"
    " Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish IsInf IsNaN LeakyRelu Less"
    " LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round Selu"
    " Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum Swish SwiGLU Tan Tanh"
    " ThresholdedRelu Where Xor QuantizeLinear DequantizeLinear DynamicQuantizeLinear Binarizer"
    " Scaler Imputer Normalizer Adagrad Adam Momentum BiasAdd BiasDropout BiasGelu BiasSplitGelu"
    " BitmaskDropout BitmaskBiasDropout FastGelu QuickGelu ComplexMul ComplexMulConj MulInteger"
    " QLinearAdd QLinearMul QLinearLeakyRelu QLinearSigmoid QLinearWhere QOrderedGelu ScaledSiLU"
    " GatedAdd RotaryEmbedding GemmaRotaryEmbedding MRotaryEmbedding QuantizeWithOrder"
    " DequantizeWithOrder QuantizeBFP DequantizeBFP Det Inverse",
    "reduce": "ArgMax ArgMin CumSum CumProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp"
    " ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare ReduceSumInteger"
    " QLinearReduceMean NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss IsAllFinite CDist",
    "softmax": "Softmax LogSoftmax Hardmax BiasSoftmax QLinearSoftmax",
    "norm": "BatchNormalization InstanceNormalization LayerNormalization GroupNormalization"
    " RMSNormalization MeanVarianceNormalization LpNormalization LRN SkipLayerNormalization"
    " SimplifiedLayerNormalization SkipSimplifiedLayerNormalization GroupNorm SkipGroupNorm"
    " EmbedLayerNormalization QEmbedLayerNormalization QOrderedLayerNormalization GatedRMSNorm",
    "resize": "Resize Upsample GridSample AffineGrid",
    "gather": "Gather GatherElements GatherND GatherBlockQuantized ArrayFeatureExtractor"
    " TorchEmbedding GatherPacked",
    "scatter": "Scatter ScatterElements ScatterND TensorScatter MaxUnpool",
    "copy": "Concat Split Slice Transpose Pad Tile Expand DepthToSpace SpaceToDepth Compress"
    " ReverseSequence Trilu OneHot OneHotEncoder EyeLike Range ConstantOfShape CenterCropPad"
    " Col2Im SequenceConstruct SequenceInsert SequenceErase SequenceAt ConcatFromSequence"
    " SplitToSequence SequenceEmpty QLinearConcat UnfoldTensor RemovePadding RestorePadding"
    " BlackmanWindow HammingWindow HannWindow FeatureVectorizer",
    "view": "Reshape Squeeze Unsqueeze Flatten Identity BitCast Optional OptionalGetElement"
    " OptionalHasElement Shape Size SequenceLength ExpandDims",
    "sort": "TopK NonMaxSuppression Unique NonZero",
    "random": "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Bernoulli"
    " Multinomial",
    "io": "StringConcat StringNormalizer StringSplit RegexFullMatch Tokenizer LabelEncoder"
    " DictVectorizer CastMap CategoryMapper ZipMap TfIdfVectorizer ImageDecoder MurmurHash3",
    "control": "If Loop Scan SequenceMap BeamSearch GreedySearch Sampling WhisperBeamSearch",
    "none": "Constant",
}  # fmt: skip


def _attention(op: Operands) -> int:
    """Return the products of scores and values, and of the projection where it is inside.

    Inputs: (batch, rows, width), then weights (width, 3 x width), or keys and values; or all of
    them as (batch, heads, rows, width).
    """
    query, other = op.shape(0), op.shape(1)
    if len(query) == 4 and len(other) == 4:
        return 4 * prod(query) * other[2]
    if len(query) != 3:
        return 0
    rows, width = query[1], op.out_shape()[-1] if op.out_shape() else query[2]
    if len(other) == 2:  # weights of the projection
        projection = 2 * prod(query) * other[1]
        return projection + 4 * query[0] * rows * rows * width
    columns = other[1] if len(other) == 3 else other[2] if len(other) == 4 else rows
    return 4 * query[0] * rows * columns * width


def _packed_product(op: Operands) -> int:
    """Return the products of a matrix whose weights are packed: their size is an attribute."""
    return 2 * op.written * (op.number("K") or (op.shape(0) or (0,))[-1])


def _resize(op: Operands) -> int:
    mode = op.attributes.get("mode", "nearest")
    return 0 if mode == "nearest" else f.RESIZE_BILINEAR * op.written


def _batch_norm(op: Operands) -> int:
    factor = f.BATCH_NORM_TRAINING if op.flag("training_mode") else f.BATCH_NORM_INFERENCE
    return factor * op.written


_CONV = f.convolution(1, slice(1, None))  # weights: out channels, in channels, window
_SPREAD = f.spread(1, 0, slice(1, None))  # weights: in channels, out channels, window
_PRODUCT = f.matrix_product(transposed=("transA", "transBatchA"))

FLOPS: Final[Mapping[str, Rule]] = {
    "Conv": _CONV,
    "ConvInteger": _CONV,
    "DeformConv": _CONV,
    "FusedConv": _CONV,
    "NhwcConv": _CONV,
    "NhwcFusedConv": _CONV,
    "CausalConvWithState": _CONV,
    "QLinearConv": f.convolution(3, slice(1, None)),
    "ConvTranspose": _SPREAD,
    "ConvTransposeWithDynamicPads": _SPREAD,
    "MatMul": _PRODUCT,
    "MatMulInteger": _PRODUCT,
    "MatMulInteger16": _PRODUCT,
    "MatMulIntegerToFloat": _PRODUCT,
    "DynamicQuantizeMatMul": _PRODUCT,
    "FusedMatMul": _PRODUCT,
    "FusedMatMulActivation": _PRODUCT,
    "TransposeMatMul": _PRODUCT,
    "QLinearMatMul": _PRODUCT,
    "QOrderedMatMul": _PRODUCT,
    "QGemm": _PRODUCT,
    "Gemm": _PRODUCT,
    "FusedGemm": _PRODUCT,
    "GemmFastGelu": _PRODUCT,
    "GemmFloat8": _PRODUCT,
    "SparseToDenseMatMul": _PRODUCT,
    "MatMulNBits": _packed_product,
    "MatMulBnb4": _packed_product,
    "MatMulFpQ4": _packed_product,
    "Einsum": f.einsum,
    "Attention": _attention,
    "QAttention": _attention,
    "MultiHeadAttention": _attention,
    "GroupQueryAttention": _attention,
    "DecoderMaskedMultiHeadAttention": _attention,
    "DecoderMaskedSelfAttention": _attention,
    "LSTM": f.recurrent(0, (1, 2)),  # input (time, batch, features), W and R of both directions
    "GRU": f.recurrent(0, (1, 2)),
    "RNN": f.recurrent(0, (1, 2)),
    "DynamicQuantizeLSTM": f.recurrent(0, (1, 2)),
    "ReduceMean": f.mean,
    "QLinearReduceMean": f.mean,
    "ReduceL2": f.per_input(2),
    "ReduceSumSquare": f.per_input(2),
    "ReduceLogSumExp": f.per_input(3),
    "CumSum": f.per_output(1),
    "CumProd": f.per_output(1),
    "CDist": lambda op: 3 * op.written * (op.shape(0) or (0,))[-1],
    "Sum": lambda op: op.written * max(len(op.inputs) - 1, 0),
    "Max": lambda op: op.written * max(len(op.inputs) - 1, 1),
    "Min": lambda op: op.written * max(len(op.inputs) - 1, 1),
    "BatchNormalization": _batch_norm,
    "LpNormalization": f.per_output(3),
    "Resize": _resize,
    "Upsample": _resize,
    "GridSample": f.per_output(f.RESIZE_BILINEAR),
}
