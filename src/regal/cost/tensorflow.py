"""TensorFlow's operators, gradients and optimizers included: kinds and what they compute."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from regal.cost import formulas as f

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.cost.formulas import Rule
    from regal.cost.operands import Operands

KINDS: Final = {
    "conv": "Conv2D Conv2DBackpropInput Conv2DBackpropInputV2 Conv2DBackpropFilter"
    " Conv2DBackpropFilterV2 Conv3D Conv3DBackpropInput Conv3DBackpropInputV2"
    " Conv3DBackpropFilter Conv3DBackpropFilterV2 Conv DepthwiseConv2dNative"
    " DepthwiseConv2dNativeBackpropInput DepthwiseConv2dNativeBackpropFilter Dilation2D"
    " Dilation2DBackpropInput Dilation2DBackpropFilter FusedPadConv2D FusedResizeAndPadConv2D"
    " QuantizedConv2D _FusedConv2D _FusedConv3D _FusedDepthwiseConv2dNative",
    "matmul": "MatMul BatchMatMul BatchMatMulV2 BatchMatMulV3 SparseMatMul Einsum QuantizedMatMul"
    " SparseTensorDenseMatMul _FusedMatMul XlaDot XlaDotV2 XlaEinsum Cross",
    "rnn": "CudnnRNN CudnnRNNV2 CudnnRNNV3 CudnnRNNBackprop CudnnRNNBackpropV2"
    " CudnnRNNBackpropV3 BlockLSTM BlockLSTMV2 BlockLSTMGrad BlockLSTMGradV2 LSTMBlockCell"
    " LSTMBlockCellGrad GRUBlockCell GRUBlockCellGrad",
    "pool": "AvgPool AvgPoolGrad AvgPool3D AvgPool3DGrad MaxPool MaxPoolV2 MaxPoolGrad"
    " MaxPoolGradV2 MaxPoolGradGrad MaxPoolGradGradV2 MaxPool3D MaxPool3DGrad MaxPoolWithArgmax"
    " MaxPoolGradWithArgmax FractionalAvgPool FractionalMaxPool FractionalMaxPoolGrad"
    " QuantizedAvgPool QuantizedMaxPool",
    "pointwise": "Abs Acos Acosh Add AddV2 AddN AccumulateNV2 Angle ApproximateEqual Asin Asinh"
    " Atan Atan2 Atanh BiasAdd BiasAddV1 Bincount BitwiseAnd BitwiseOr BitwiseXor Bucketize Cast"
    " Ceil CheckNumerics CheckNumericsV2 ClipByValue Complex ComplexAbs Conj Cos Cosh Dequantize"
    " Digamma Div DivNoNan Elu EluGrad Equal Erf Erfc Erfinv Exp Expm1 FakeQuantWithMinMaxArgs"
    " FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel FakeQuantWithMinMaxArgsGradient"
    " FakeQuantWithMinMaxVarsGradient FakeQuantWithMinMaxVarsPerChannelGradient Floor FloorDiv"
    " FloorMod Greater GreaterEqual Imag Inv InvGrad Invert IsFinite IsInf IsNan LeakyRelu"
    " LeakyReluGrad LeftShift Less LessEqual Lgamma Log Log1p LogicalAnd LogicalNot LogicalOr"
    " Maximum Minimum Mod Mul MulNoNan Neg NextAfter NotEqual Polygamma Pow QuantizeV2"
    " QuantizeAndDequantize QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 Real RealDiv"
    " Reciprocal ReciprocalGrad Relu Relu6 Relu6Grad ReluGrad Requantize RightShift Rint Round"
    " Rsqrt RsqrtGrad Select SelectV2 Selu SeluGrad Sigmoid SigmoidGrad Sign Sin Sinh Softplus"
    " SoftplusGrad Softsign SoftsignGrad Sqrt SqrtGrad Square SquaredDifference Sub Tan Tanh"
    " TanhGrad TruncateDiv TruncateMod Xdivy Xlog1py Xlogy Zeta AdjustContrast AdjustContrastv2"
    " AdjustHue AdjustSaturation HSVToRGB RGBToHSV AudioSpectrogram Mfcc FFT FFT2D FFT3D IFFT"
    " IFFT2D IFFT3D RFFT RFFT2D RFFT3D IRFFT IRFFT2D IRFFT3D Cholesky CholeskyGrad"
    " MatrixInverse MatrixDeterminant MatrixSolve MatrixTriangularSolve Svd Qr SelfAdjointEigV2"
    " AssignAdd AssignSub AssignAddVariableOp AssignSubVariableOp ApplyGradientDescent"
    " ResourceApplyGradientDescent ApplyMomentum ResourceApplyMomentum"
    " ResourceApplyKerasMomentum ApplyAdam ResourceApplyAdam ResourceApplyAdamWithAmsgrad"
    " ApplyAdaMax ResourceApplyAdaMax ApplyAdagrad ApplyAdagradV2 ResourceApplyAdagrad"
    " ResourceApplyAdagradV2 ApplyAdagradDA ResourceApplyAdagradDA ApplyAdadelta"
    " ResourceApplyAdadelta ApplyRMSProp ResourceApplyRMSProp ApplyCenteredRMSProp"
    " ResourceApplyCenteredRMSProp ApplyFtrl ApplyFtrlV2 ResourceApplyFtrl ResourceApplyFtrlV2"
    " ApplyProximalGradientDescent ResourceApplyProximalGradientDescent ApplyProximalAdagrad"
    " ResourceApplyProximalAdagrad ApplyPowerSign ResourceApplyPowerSign ApplyAddSign"
    " ResourceApplyAddSign",
    "reduce": "All Any ArgMax ArgMin BiasAddGrad Cumprod Cumsum CumulativeLogsumexp"
    " EuclideanNorm L2Loss Max Mean Min Prod Sum SegmentMax SegmentMean SegmentMin SegmentProd"
    " SegmentSum SparseSegmentMean SparseSegmentSqrtN SparseSegmentSum CTCLoss CTCLossV2",
    "softmax": "Softmax LogSoftmax SoftmaxCrossEntropyWithLogits"
    " SparseSoftmaxCrossEntropyWithLogits",
    "norm": "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 FusedBatchNormGrad"
    " FusedBatchNormGradV2 FusedBatchNormGradV3 _FusedBatchNormEx _FusedBatchNormGradEx"
    " BatchNormWithGlobalNormalization BatchNormWithGlobalNormalizationGrad LRN LRNGrad",
    "resize": "CropAndResize CropAndResizeGradBoxes CropAndResizeGradImage ResizeArea"
    " ResizeBicubic ResizeBicubicGrad ResizeBilinear ResizeBilinearGrad ResizeNearestNeighbor"
    " ResizeNearestNeighborGrad ScaleAndTranslate ScaleAndTranslateGrad"
    " ImageProjectiveTransformV2 ImageProjectiveTransformV3",
    "gather": "Gather GatherV2 GatherNd ResourceGather ResourceGatherNd DynamicPartition"
    " LookupTableFind LookupTableFindV2 TensorArrayGatherV3"
    " TensorListGather",
    "scatter": "DynamicStitch ParallelDynamicStitch InplaceAdd InplaceSub InplaceUpdate ScatterAdd"
    " ScatterDiv ScatterMax ScatterMin ScatterMul ScatterNd ScatterNdAdd ScatterNdSub"
    " ScatterNdUpdate ScatterSub ScatterUpdate ResourceScatterAdd ResourceScatterMax"
    " ResourceScatterMin ResourceScatterMul ResourceScatterNdAdd ResourceScatterNdSub"
    " ResourceScatterNdUpdate ResourceScatterSub ResourceScatterUpdate"
    " ResourceStridedSliceAssign SparseToDense TensorScatterAdd TensorScatterMax"
    " TensorScatterMin TensorScatterSub TensorScatterUpdate TensorStridedSliceUpdate"
    " UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum"
    " SparseApplyAdagrad SparseApplyMomentum ResourceSparseApplyAdagrad"
    " ResourceSparseApplyAdagradV2 ResourceSparseApplyFtrl ResourceSparseApplyMomentum"
    " ResourceSparseApplyRMSProp TensorArrayScatterV3"
    " TensorListScatter TensorListScatterIntoExistingList",
    "copy": "Assign AssignVariableOp BatchToSpace BatchToSpaceND BroadcastTo Concat ConcatV2"
    " ConjugateTranspose DeepCopy DepthToSpace Diag DiagPart Empty ExtractGlimpse"
    " ExtractImagePatches Fill InvertPermutation LinSpace MatrixBandPart MatrixDiag"
    " MatrixDiagPart MatrixDiagPartV2 MatrixDiagPartV3 MatrixDiagV2 MatrixDiagV3 MatrixSetDiag"
    " MatrixSetDiagV2 MatrixSetDiagV3 MirrorPad MirrorPadGrad OneHot OnesLike Pack Pad PadV2"
    " ParallelConcat Range Reverse ReverseSequence ReverseV2 Roll Slice SpaceToBatch"
    " SpaceToBatchND SpaceToDepth Split SplitV StridedSlice StridedSliceGrad TensorArrayConcatV3"
    " TensorArraySplitV3 TensorListConcat TensorListConcatV2 TensorListFromTensor"
    " TensorListSplit TensorListStack Tile TileGrad Transpose Unpack UnravelIndex ZerosLike Copy"
    " CopyHost _Send _Recv _HostSend _HostRecv Send Recv CollectiveReduce CollectiveReduceV2"
    " CollectiveGather CollectiveBcastSend CollectiveBcastRecv NcclAllReduce _Retval _Arg",
    "view": "Bitcast BroadcastArgs BroadcastGradientArgs ConcatOffset DebugIdentity"
    " DestroyTemporaryVariable EnsureShape Enter Exit ExpandDims Identity IdentityN"
    " IsVariableInitialized LoopCond Merge NextIteration PlaceholderWithDefault PreventGradient"
    " Rank ReadVariableOp RefEnter RefExit RefIdentity RefMerge RefNextIteration RefSelect"
    " RefSwitch Reshape Shape ShapeN Size Snapshot Squeeze StopGradient Switch _SwitchN"
    " TensorArrayCloseV3 TensorArrayGradV3 TensorArrayGradWithShape TensorArraySizeV3"
    " TensorArrayV3 TensorListElementShape TensorListLength TensorListReserve TensorListResize"
    " EmptyTensorList StackV2 StackCloseV2 VarIsInitializedOp VariableShape Assert Print PrintV2"
    " DisableCopyOnRead TemporaryVariable TensorArrayReadV3 TensorArrayWriteV3"
    " TensorListGetItem TensorListSetItem TensorListPushBack StackPopV2 StackPop StackPushV2"
    " StackPush TPUReplicatedInput TPUReplicatedOutput",
    "sort": "ApproxTopK InTopK InTopKV2 NonMaxSuppression NonMaxSuppressionV2"
    " NonMaxSuppressionV3 NonMaxSuppressionV4 NonMaxSuppressionV5 CombinedNonMaxSuppression"
    " NthElement RandomShuffle SetSize DenseToDenseSetOperation DenseToSparseSetOperation"
    " TopK TopKV2 Unique UniqueV2 UniqueWithCounts UniqueWithCountsV2 Where LowerBound"
    " UpperBound CTCBeamSearchDecoder CTCGreedyDecoder",
    "random": "Multinomial ParameterizedTruncatedNormal RandomGamma RandomPoissonV2"
    " RandomStandardNormal RandomUniform RandomUniformInt StatefulRandomBinomial"
    " StatefulStandardNormalV2 StatefulTruncatedNormal StatefulUniform StatefulUniformInt"
    " StatelessMultinomial StatelessRandomNormal StatelessRandomNormalV2 StatelessRandomUniform"
    " StatelessRandomUniformInt StatelessRandomUniformIntV2 StatelessRandomUniformV2"
    " StatelessRandomGetAlg StatelessRandomGetKeyCounter StatelessTruncatedNormal"
    " StatelessTruncatedNormalV2 TruncatedNormal",
    "io": "AsString DecodeBmp DecodeCSV DecodeGif DecodeImage DecodeJpeg DecodePng DecodeRaw"
    " DecodeWav EncodeBase64 EncodeJpeg EncodePng FIFOQueueV2 QueueCloseV2 QueueDequeueManyV2"
    " QueueDequeueUpToV2 QueueDequeueV2 QueueEnqueueManyV2 QueueEnqueueV2 QueueSizeV2"
    " RandomShuffleQueueV2 PaddingFIFOQueueV2 HistogramSummary ImageSummary MergeSummary"
    " MergeV2Checkpoints ScalarSummary IteratorFromStringHandleV2 IteratorGetNext IteratorV2"
    " IteratorToStringHandle MakeIterator OneShotIterator MatchingFiles ParseExample"
    " ParseExampleV2 ParseSingleExample ParseTensor PyFunc PyFuncStateless EagerPyFunc ReadFile"
    " ReaderReadV2 RegexReplace Restore RestoreV2 Save SaveSlices SaveV2 SerializeTensor"
    " ShardedFilename StaticRegexFullMatch StringJoin StringLower StringSplit StringSplitV2"
    " StringToHashBucketFast StringToHashBucketStrong StringToNumber Substr"
    " TextLineReaderV2 TFRecordReaderV2 WholeFileReaderV2 WriteFile InitializeTableV2"
    " InitializeTableFromTextFileV2 HashTableV2 LookupTableImportV2 LookupTableInsertV2"
    " LookupTableExportV2 LookupTableSizeV2 MutableHashTableV2 MutableDenseHashTableV2 Timestamp"
    " BatchFunction TensorSliceDataset TextLineDataset MapDataset ModelDataset CacheDataset"
    " RepeatDataset ShuffleDataset OptimizeDataset OptimizeDatasetV2 BatchDatasetV2"
    " PrefetchDataset",
    "control": "Case For If PartitionedCall RemoteCall StatefulPartitionedCall StatelessCase"
    " StatelessIf StatelessWhile SymbolicGradient While _While _If",
    "none": "Const ControlTrigger HostConst NoOp Placeholder PlaceholderV2 VarHandleOp Variable"
    " VariableV2 TPUReplicateMetadata TPUCompilationResult"
    " TPUOrdinalSelector ConfigureDistributedTPU",
}  # fmt: skip

# Optimizers: (tensors of the variable's size that move, operations per element). The gradient
# and each slot are read, the variable and each slot are read and written; operations are those of
# the update rules in TensorFlow's documentation of these ops.
_UPDATES: Final = {
    "GradientDescent": (3, 2),
    "ProximalGradientDescent": (3, 6),
    "Momentum": (5, 4),
    "KerasMomentum": (5, 4),
    "PowerSign": (5, 8),
    "AddSign": (5, 8),
    "Adagrad": (5, 6),
    "AdagradV2": (5, 7),
    "ProximalAdagrad": (5, 9),
    "AdagradDA": (7, 9),
    "Adam": (7, 12),
    "AdaMax": (7, 10),
    "Adadelta": (7, 14),
    "RMSProp": (7, 11),
    "Ftrl": (7, 16),
    "FtrlV2": (7, 17),
    "AdamWithAmsgrad": (9, 13),
    "CenteredRMSProp": (9, 15),
}
_OPTIMIZERS: Final = {
    f"{prefix}{name}": row
    for name, row in _UPDATES.items()
    for prefix in ("Apply", "ResourceApply")
}
# How many times the largest operand's bytes an op moves, where that is not what it names.
BYTES: Final[Mapping[str, int]] = {name: moved for name, (moved, _) in _OPTIMIZERS.items()} | {
    "Assign": 2,
    "AssignVariableOp": 2,
    "AssignAddVariableOp": 3,
    "AssignSubVariableOp": 3,
}


def _filter_gradient(axes: slice) -> Rule:
    """Return the rule of a gradient by a filter: it has the shape of the output."""
    return lambda op: 2 * prod(op.shape(2)) * prod(op.out_shape()[axes])


def _batch_norm(op: Operands) -> int:
    # TensorFlow leaves is_training out when it is true.
    trains = op.attributes.get("is_training", True)
    return (f.BATCH_NORM_TRAINING if trains else f.BATCH_NORM_INFERENCE) * op.first


def _transform(op: Operands) -> int:
    """Return what a fast Fourier transform takes: 5 n log2 n."""
    last = (op.shape(0) or (1,))[-1]
    return 5 * op.first * max(last.bit_length() - 1, 1)


def _decomposition(op: Operands) -> int:
    """Return the order of what dense solvers take: 2 n^3 / 3 and up."""
    return 2 * op.first * (op.shape(0) or (1,))[-1]


_WINDOW: Final = slice(None, 2)  # filter: height, width, in, multiplier
_CHANNELS: Final = slice(None, -1)  # filter: window, in channels of the group, out channels
_PRODUCT: Final = f.matrix_product(transposed=("transpose_a", "adj_x", "a_is_transposed"))

FLOPS: Final[Mapping[str, Rule]] = {
    "Conv2D": f.convolution(1, _CHANNELS),
    "_FusedConv2D": f.convolution(1, _CHANNELS),
    "QuantizedConv2D": f.convolution(1, _CHANNELS),
    "Conv3D": f.convolution(1, _CHANNELS),
    "_FusedConv3D": f.convolution(1, _CHANNELS),
    "Conv": f.convolution(1, _CHANNELS),
    "FusedPadConv2D": f.convolution(2, _CHANNELS),
    "FusedResizeAndPadConv2D": f.convolution(3, _CHANNELS),
    "DepthwiseConv2dNative": f.convolution(1, _WINDOW),
    "_FusedDepthwiseConv2dNative": f.convolution(1, _WINDOW),
    "Dilation2D": f.convolution(1, _WINDOW),
    "Dilation2DBackpropInput": f.spread(1, 2, _WINDOW),
    "Dilation2DBackpropFilter": f.spread(1, 2, _WINDOW),
    "Conv2DBackpropInput": f.spread(1, 2, _CHANNELS),
    "Conv2DBackpropInputV2": f.spread(1, 2, _CHANNELS),
    "Conv3DBackpropInput": f.spread(1, 2, _CHANNELS),
    "Conv3DBackpropInputV2": f.spread(1, 2, _CHANNELS),
    "DepthwiseConv2dNativeBackpropInput": f.spread(1, 2, _WINDOW),
    "Conv2DBackpropFilter": _filter_gradient(_CHANNELS),
    "Conv2DBackpropFilterV2": _filter_gradient(_CHANNELS),
    "Conv3DBackpropFilter": _filter_gradient(_CHANNELS),
    "Conv3DBackpropFilterV2": _filter_gradient(_CHANNELS),
    "DepthwiseConv2dNativeBackpropFilter": _filter_gradient(_WINDOW),
    "MatMul": _PRODUCT,
    "BatchMatMul": _PRODUCT,
    "BatchMatMulV2": _PRODUCT,
    "BatchMatMulV3": _PRODUCT,
    "SparseMatMul": _PRODUCT,
    "QuantizedMatMul": _PRODUCT,
    "_FusedMatMul": _PRODUCT,
    "Einsum": f.einsum,
    "XlaEinsum": f.einsum,
    "Cross": f.per_output(3),
    # indices and values of a sparse matrix, its shape, a dense one
    "SparseTensorDenseMatMul": lambda op: 2 * prod(op.shape(1)) * (op.out_shape() or (0,))[-1],
    "CudnnRNN": f.recurrent(0, (3,)),
    "CudnnRNNV2": f.recurrent(0, (3,)),
    "CudnnRNNV3": f.recurrent(0, (3,)),
    "CudnnRNNBackprop": f.times(2, f.recurrent(0, (3,))),
    "CudnnRNNBackpropV2": f.times(2, f.recurrent(0, (3,))),
    "CudnnRNNBackpropV3": f.times(2, f.recurrent(0, (3,))),
    "BlockLSTM": f.recurrent(1, (4,)),
    "BlockLSTMV2": f.recurrent(1, (4,)),
    "BlockLSTMGrad": f.times(2, f.recurrent(1, (4,))),
    "BlockLSTMGradV2": f.times(2, f.recurrent(1, (4,))),
    "LSTMBlockCell": f.recurrent(0, (3,)),
    "GRUBlockCell": f.recurrent(0, (2, 3)),
    "AvgPoolGrad": lambda op: 2 * f.window(op) * prod(op.shape(1)),
    "AvgPool3DGrad": lambda op: 2 * f.window(op) * prod(op.shape(1)),
    "MaxPoolGrad": lambda op: (f.window(op) + 1) * prod(op.shape(1)),
    "MaxPoolGradV2": lambda op: (f.window(op) + 1) * prod(op.shape(1)),
    "MaxPool3DGrad": lambda op: (f.window(op) + 1) * prod(op.shape(1)),
    "AddN": lambda op: op.first * max(len(op.inputs) - 1, 0),
    "AccumulateNV2": lambda op: op.first * max(len(op.inputs) - 1, 0),
    "L2Loss": lambda op: max(3 * op.first - 1, 0),
    "Mean": f.mean,
    "Cumsum": f.per_output(1),
    "Cumprod": f.per_output(1),
    "EuclideanNorm": f.per_input(2),
    "Rsqrt": f.per_output(2),
    "SquaredDifference": f.per_output(2),
    "RsqrtGrad": f.per_output(4),
    "SqrtGrad": f.per_output(2),
    "TanhGrad": f.per_output(3),
    "SigmoidGrad": f.per_output(3),
    "FusedBatchNorm": _batch_norm,
    "FusedBatchNormV2": _batch_norm,
    "FusedBatchNormV3": _batch_norm,
    "_FusedBatchNormEx": _batch_norm,
    "BatchNormWithGlobalNormalization": f.per_output(f.BATCH_NORM_INFERENCE),
    "FusedBatchNormGrad": f.per_input(f.BATCH_NORM_GRADIENT),
    "FusedBatchNormGradV2": f.per_input(f.BATCH_NORM_GRADIENT),
    "FusedBatchNormGradV3": f.per_input(f.BATCH_NORM_GRADIENT),
    "_FusedBatchNormGradEx": f.per_input(f.BATCH_NORM_GRADIENT),
    "ResizeNearestNeighbor": f.nothing,
    "ResizeNearestNeighborGrad": f.per_input(1),
    "ResizeBilinearGrad": f.per_input(f.RESIZE_BILINEAR),
    **dict.fromkeys(("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D"), _transform),
    **dict.fromkeys(("RFFT", "RFFT2D", "RFFT3D", "IRFFT", "IRFFT2D", "IRFFT3D"), _transform),
    **dict.fromkeys(("Cholesky", "MatrixInverse", "MatrixSolve", "Svd", "Qr"), _decomposition),
    **dict.fromkeys(("MatrixDeterminant", "MatrixTriangularSolve"), _decomposition),
    **{name: f.times(count, lambda op: op.read) for name, (_, count) in _OPTIMIZERS.items()},
}
