"""Facts about TensorFlow's operators: who forwards buffers, who has state, who needs the host.

Views and in-place kernels were measured with TensorFlow 2.21 on a CPU: addresses of inputs and
results in full traces, inputs being fresh buffers with one reader, with oneDNN on and off.
What they rest on in its source: `set_output(i, input(j))` and
`forward_input_or_allocate_output` in tensorflow/core/kernels.
"""

from __future__ import annotations

from functools import cache

# Loops of TensorFlow 1: frames that nodes enter and leave.
ENTER = frozenset({"Enter", "RefEnter"})
EXIT = frozenset({"Exit", "RefExit"})
NEXT = frozenset({"NextIteration", "RefNextIteration"})
MERGE = frozenset({"Merge", "RefMerge"})
SWITCH = frozenset({"Switch", "RefSwitch"})
# Loops of TensorFlow 2: result i begins as input i.
WHILES = frozenset({"While", "StatelessWhile"})

# Result i is input i, the same buffer; a Switch has its input 0 on both results.
IDENTITIES = frozenset(
    {
        *ENTER,
        *EXIT,
        *NEXT,
        "CheckNumerics",
        "DebugGradientIdentity",
        "EnsureShape",
        "GuaranteeConst",
        "Identity",
        "IdentityN",
        "LoopCond",
        "PlaceholderWithDefault",
        "PreventGradient",
        "Print",
        "RefIdentity",
        "StopGradient",
    }
)
VIEWS = IDENTITIES | {"Bitcast", "ExpandDims", "ReadVariableOp", "Reshape", "Squeeze"}
# The input's buffer, if nothing is left to do: as many elements as before.
VIEWS_OF_EQUAL_SIZE = frozenset(
    {
        "All",
        "Any",
        "BroadcastTo",
        "Max",
        "Mean",
        "Min",
        "Pack",
        "Pad",
        "Prod",
        "Sum",
        "Tile",
    }
)
# Parts of the first axis are slices of the input's buffer, if each begins at a multiple of
# this many bytes (EIGEN_MAX_ALIGN_BYTES of TensorFlow's wheels).
SLICES = frozenset({"Slice", "Split", "SplitV", "StridedSlice", "Unpack"})
SLICE_ALIGNMENT = 64
ALIGNMENT = 64  # of TensorFlow's CPU allocator

_UNARY = (
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "ClipByValue", "Cos",
    "Cosh", "Digamma", "Elu", "Erf", "Erfc", "Erfinv", "Exp", "Expm1",
    "FakeQuantWithMinMaxArgs", "Floor", "Inv", "Invert", "LeakyRelu", "Lgamma", "Log", "Log1p",
    "LogSoftmax", "LogicalNot", "MatrixBandPart", "MatrixSetDiag", "Ndtri", "Neg", "OnesLike",
    "Reciprocal", "Relu", "Relu6", "Rint", "Round", "Rsqrt", "Selu", "Sigmoid", "Sign", "Sin",
    "Sinh", "Snapshot", "Softmax", "Softplus", "Softsign", "Sqrt", "Square", "Tan", "Tanh",
    "ZerosLike", "BiasAdd", "BiasAddV1", "InplaceAdd", "InplaceSub", "InplaceUpdate",
)  # fmt: skip
_BINARY = (
    "Add", "AddV2", "Atan2", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "DivNoNan",
    "EluGrad", "FloorDiv", "FloorMod", "InvGrad", "LeakyReluGrad", "LogicalAnd", "LogicalOr",
    "Maximum", "Minimum", "Mod", "Mul", "MulNoNan", "NextAfter", "Pow", "RealDiv",
    "ReciprocalGrad", "Relu6Grad", "ReluGrad", "RsqrtGrad", "SeluGrad", "SigmoidGrad",
    "SoftplusGrad", "SoftsignGrad", "SqrtGrad", "SquaredDifference", "Sub", "TanhGrad",
    "TruncateDiv", "TruncateMod", "Xdivy", "Xlog1py", "Xlogy",
)  # fmt: skip
# (input, result): the kernel writes that result over that input if nobody else holds it and
# type and number of elements are equal; in the order in which the kernel tries.
IN_PLACE: dict[str, tuple[tuple[int, int], ...]] = {
    **dict.fromkeys(_UNARY, ((0, 0),)),
    **dict.fromkeys(_BINARY, ((0, 0), (1, 0))),
    "Select": ((1, 0), (2, 0)),
    "SelectV2": ((1, 0), (2, 0)),
    "SoftmaxCrossEntropyWithLogits": ((0, 1),),
    "SparseSoftmaxCrossEntropyWithLogits": ((0, 1),),
}

# Access to a resource that changes nothing; every other access may.
READS = frozenset(
    {
        "BoostedTreesPredict",
        "IsVariableInitialized",
        "IteratorToStringHandle",
        "LookupTableExportV2",
        "LookupTableFind",
        "LookupTableFindV2",
        "LookupTableSize",
        "LookupTableSizeV2",
        "QueueIsClosed",
        "QueueIsClosedV2",
        "QueueSize",
        "QueueSizeV2",
        "ReadVariableOp",
        "ReadVariableXlaSplitND",
        "ResourceGather",
        "ResourceGatherNd",
        "TensorArrayGatherV3",
        "TensorArrayGradV3",
        "TensorArrayGradWithShape",
        "TensorArrayConcatV3",
        "TensorArraySizeV3",
        "VarIsInitializedOp",
        "VariableShape",
        "_ReadVariablesOp",
    }
)
# Stateful, but free to run in any order. Source: auto_control_deps.py of TensorFlow 2.21, which
# keeps the program order of all others: each legacy random operator has a generator of its own.
ORDER_INSENSITIVE = frozenset({
    "Assert", "Multinomial", "ParameterizedTruncatedNormal", "Placeholder", "RandomGamma",
    "RandomGammaGrad", "RandomPoisson", "RandomPoissonV2", "RandomShuffle",
    "RandomStandardNormal", "RandomUniform", "RandomUniformInt", "RestoreSlice", "RestoreV2",
    "Restore", "SaveSlices", "SaveV2", "Save", "TruncatedNormal", "StatefulPartitionedCall",
    "If", "While", "Case", "CudnnRNN", "CudnnRNNBackprop", "CudnnRNNV2", "CudnnRNNV3",
    "CudnnRNNBackpropV2", "CudnnRNNBackpropV3", "InfeedEnqueue", "InfeedEnqueueTuple", "Unique",
})  # fmt: skip

# No kernel for accelerators, besides all that touch strings. A prefix ends in *.
_HOST_ONLY = (
    "*Dataset* *Iterator* *Queue* *Reader* *LookupTable* *HashTable* *ExtractJpegShape *Summary*"
    " AudioSpectrogram Barrier* CandidateSampler* *CandidateSampler Copy* Decode* Encode*"
    " EagerPyFunc PyFunc PyFuncStateless GenerateVocabRemapping LoadAndRemapMatrix"
    " MergeV2Checkpoints Mfcc NonMaxSuppression NonMaxSuppressionV2 Parse* ReadFile Restore*"
    " Save* ShardedFilename* Sparse*Summary *StringHandle* StringSplit* WriteFile Stage Unstage"
    " _Send _Recv"
)


@cache
def needs_host(kind: str) -> bool:
    """Return whether only a CPU can run the operator `kind`, whatever types it has."""
    return any(_matches(kind, pattern) for pattern in _HOST_ONLY.split())


def _matches(kind: str, pattern: str) -> bool:
    inner = pattern.strip("*")
    if pattern.startswith("*") and pattern.endswith("*"):
        return inner in kind
    if pattern.startswith("*"):
        return kind.endswith(inner)
    return kind.startswith(inner) if pattern.endswith("*") else kind == inner
