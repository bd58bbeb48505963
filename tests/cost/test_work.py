"""Operations and bytes of single ops, counted by hand."""

import pytest

from regal.cost import onnx, tensorflow, tflite
from regal.cost.operands import BITS
from regal.cost.work import (
    MOST_FLOPS,
    graph_flops,
    graph_moved_bytes,
    op_flops,
    trips_of,
    uncounted_ops,
    work_of,
)
from regal.devices.kinds import OP_KINDS
from regal.frontends.tflite.schema import DATA_TYPES
from regal.graph.types import AttributeValue, Graph, Role, Tensor
from tests.cost.ops import Shape, single, tensor

Case = tuple[str, str, list[Shape], list[Shape], dict[str, AttributeValue], int]
CASES: list[Case] = [
    # 2 x outputs x channels in x window
    ("onnx", "Conv", [(1, 3, 8, 8), (4, 3, 3, 3)], [(1, 4, 6, 6)], {}, 2 * 144 * 27),
    ("onnx", "Conv", [(1, 4, 8, 8), (4, 1, 3, 3)], [(1, 4, 8, 8)], {"group": 4}, 2 * 256 * 9),
    # every input element meets 3 channels x 2 x 2
    ("onnx", "ConvTranspose", [(1, 2, 4, 4), (2, 3, 2, 2)], [(1, 3, 8, 8)], {}, 2 * 32 * 12),
    ("onnx", "Gemm", [(4, 5), (5, 6)], [(4, 6)], {}, 2 * 24 * 5),
    ("onnx", "Gemm", [(5, 4), (5, 6)], [(4, 6)], {"transA": 1}, 2 * 24 * 5),
    ("onnx", "MatMul", [(2, 3, 4, 5), (5, 6)], [(2, 3, 4, 6)], {}, 2 * 144 * 5),
    ("onnx", "Einsum", [(2, 3, 4), (2, 4, 5)], [(2, 3, 5)], {"equation": "bij,bjk->bik"},
     2 * 2 * 3 * 4 * 5),
    ("onnx", "Einsum", [(7, 3, 4), (7, 4, 5)], [(7, 3, 5)], {"equation": "...ij,...jk->...ik"},
     2 * 7 * 3 * 4 * 5),
    # 6 steps x 2 sequences, gates of 4 x 3: W 12 x 5, R 12 x 3
    ("onnx", "LSTM", [(6, 2, 5), (1, 12, 5), (1, 12, 3)], [(6, 1, 2, 3)], {}, 2 * 12 * (60 + 36)),
    ("onnx", "GRU", [(6, 2, 5), (2, 9, 5), (2, 9, 3)], [(6, 2, 2, 3)], {}, 2 * 12 * (90 + 54)),
    # scores and values: 2 x 2 x batch x rows x rows x width, and the projection 4 -> 12
    ("onnx", "com.microsoft::Attention", [(2, 5, 4), (4, 12)], [(2, 5, 4)], {},
     2 * 40 * 12 + 4 * 2 * 5 * 5 * 4),
    ("onnx", "MultiHeadAttention", [(2, 5, 4), (2, 7, 4), (2, 7, 4)], [(2, 5, 4)], {},
     4 * 2 * 5 * 7 * 4),
    ("onnx", "MatMulNBits", [(3, 64), (8, 2, 16)], [(3, 8)], {"K": 64, "N": 8}, 2 * 24 * 64),
    ("onnx", "GlobalAveragePool", [(1, 3, 4, 4)], [(1, 3, 1, 1)], {}, 48),
    ("onnx", "MaxPool", [(1, 3, 8, 8)], [(1, 3, 4, 4)], {"kernel_shape": (3, 3)}, 48 * 9),
    ("onnx", "LayerNormalization", [(2, 8), (8,)], [(2, 8)], {}, 8 * 16),
    ("onnx", "BatchNormalization", [(2, 8), (8,)], [(2, 8)], {}, 2 * 16),
    ("onnx", "Resize", [(1, 1, 2, 2)], [(1, 1, 4, 4)], {"mode": "nearest"}, 0),
    ("onnx", "Resize", [(1, 1, 2, 2)], [(1, 1, 4, 4)], {"mode": "linear"}, 7 * 16),
    ("onnx", "TopK", [(3, 8), (1,)], [(3, 2), (3, 2)], {}, 24 * 3),
    ("onnx", "Transpose", [(3, 8)], [(8, 3)], {}, 0),
    ("onnx", "ReduceSum", [(3, 8)], [(3,)], {}, 21),
    ("onnx", "ai.onnx.ml::Scaler", [(3, 8)], [(3, 8)], {}, 24),
    ("tflite", "CUSTOM:FlexRsqrt", [(3, 8)], [(3, 8)], {}, 48),
    ("onnx", "Sum", [(3, 8), (3, 8), (3, 8)], [(3, 8)], {}, 48),
    ("tflite", "CONV_2D", [(1, 8, 8, 3), (4, 3, 3, 3), (4,)], [(1, 6, 6, 4)], {}, 2 * 144 * 27),
    ("tflite", "DEPTHWISE_CONV_2D", [(1, 8, 8, 4), (1, 3, 3, 4)], [(1, 8, 8, 4)], {}, 2 * 256 * 9),
    ("tflite", "TRANSPOSE_CONV", [(4,), (3, 2, 2, 2), (1, 4, 4, 2)], [(1, 8, 8, 3)], {},
     2 * 32 * 12),
    ("tflite", "FULLY_CONNECTED", [(2, 5), (6, 5)], [(2, 6)], {}, 2 * 12 * 5),
    ("tflite", "BATCH_MATMUL", [(2, 3, 5), (2, 5, 6)], [(2, 3, 6)], {}, 2 * 36 * 5),
    ("tflite", "BATCH_MATMUL", [(2, 5, 3), (2, 5, 6)], [(2, 3, 6)], {"adj_x": True}, 2 * 36 * 5),
    ("tflite", "AVERAGE_POOL_2D", [(1, 4, 4, 3)], [(1, 2, 2, 3)],
     {"filter_height": 2, "filter_width": 3}, 12 * 6),
    ("tflite", "SOFTMAX", [(2, 7)], [(2, 7)], {}, 70),
    ("tflite", "MEAN", [(1, 4, 4, 3), (2,)], [(1, 3)], {}, 48),
    ("tflite", "CONCATENATION", [(2, 3), (2, 3)], [(2, 6)], {}, 0),
    ("tflite", "ADD", [(2, 1), (1, 3)], [(2, 3)], {}, 6),
    ("tensorflow", "BatchMatMulV2", [(2, 5, 3), (2, 5, 6)], [(2, 3, 6)], {"adj_x": True},
     2 * 36 * 5),
    ("tensorflow", "BlockLSTMV2", [(), (6, 2, 5), (2, 3), (2, 3), (8, 12)], [(6, 2, 3)], {},
     2 * 12 * 96),
    ("tensorflow", "CudnnRNNV3", [(6, 2, 5), (1, 2, 3), (1, 2, 3), (130,)], [(6, 2, 3)], {},
     2 * 12 * 130),
    ("tensorflow", "FusedBatchNormV3", [(2, 3, 3, 4), (4,)], [(2, 3, 3, 4)], {}, 4 * 72),
    ("tensorflow", "FusedBatchNormV3", [(2, 3, 3, 4), (4,)], [(2, 3, 3, 4)],
     {"is_training": False}, 2 * 72),
    ("tensorflow", "FusedBatchNormGradV3", [(2, 3, 3, 4), (2, 3, 3, 4)], [(2, 3, 3, 4)], {},
     11 * 72),
    ("tensorflow", "DepthwiseConv2dNativeBackpropFilter", [(1, 8, 8, 3), (4,), (1, 8, 8, 6)],
     [(3, 3, 3, 2)], {}, 2 * 384 * 9),
    ("tensorflow", "ResourceApplyAdam", [(), (), (), (1,), (50, 2)], [], {}, 12 * 100),
    ("tensorflow", "Rsqrt", [(4,)], [(4,)], {}, 8),
    ("tensorflow", "FFT", [(2, 8)], [(2, 8)], {}, 5 * 16 * 3),
    ("tensorflow", "Const", [], [(64,)], {}, 0),
]  # fmt: skip


@pytest.mark.parametrize(
    ("framework", "kind", "inputs", "outputs", "attributes", "flops"), CASES, ids=lambda v: str(v)
)
def test_operations_are_those_counted_by_hand(
    framework: str,
    kind: str,
    inputs: list[Shape],
    outputs: list[Shape],
    attributes: dict[str, AttributeValue],
    flops: int,
) -> None:
    graph = single(framework, kind, inputs, outputs, attributes)
    assert op_flops(graph.ops[0], graph.tensors, framework) == flops
    assert work_of(graph.ops[0], graph.tensors, framework).is_known


@pytest.mark.parametrize(
    ("framework", "kind", "inputs", "outputs", "moved"),
    [
        ("onnx", "Add", [(4, 4), (4,)], [(4, 4)], 64 + 16 + 64),
        ("onnx", "Slice", [(100, 4), (1,)], [(2, 4)], 2 * 32),  # reads what it writes
        ("onnx", "Concat", [(2, 4), (2, 4)], [(4, 4)], 2 * 64),
        ("onnx", "Tile", [(2, 4), (2,)], [(8, 4)], 32 + 8 + 128),
        ("onnx", "Gather", [(1000, 8), (3,)], [(3, 8)], 12 + 2 * 96),  # rows, not the table
        ("onnx", "Reshape", [(4, 4), (2,)], [(2, 8)], 0),
        ("onnx", "Constant", [], [(4, 4)], 0),
        ("onnx", "RandomNormal", [], [(4, 4)], 64),
        ("tflite", "EMBEDDING_LOOKUP", [(3,), (1000, 8)], [(3, 8)], 12 + 2 * 96),
        ("tensorflow", "ResourceApplyMomentum", [(), (), (1,), (10, 2), (1,)], [], 5 * 80),
        ("tensorflow", "AssignVariableOp", [(), (10, 2)], [], 2 * 80),
    ],
)
def test_bytes_are_those_that_must_move(
    framework: str, kind: str, inputs: list[Shape], outputs: list[Shape], moved: int
) -> None:
    graph = single(framework, kind, inputs, outputs)
    assert work_of(graph.ops[0], graph.tensors, framework).bytes == moved


def test_a_tensor_that_is_read_twice_moves_once() -> None:
    x = tensor((4, 4))
    graph = single("onnx", "Mul", [x, x], [(4, 4)])
    assert work_of(graph.ops[0], graph.tensors, "onnx").bytes == 128


def test_a_tensor_that_is_kept_elsewhere_moves_all_the_same() -> None:
    inside = Tensor(name="x", shape=(8,), dtype="float16", bytes=0, role=Role.INPUT, storage=0)
    graph = single("onnx", "Relu", [inside], [(8,)])
    assert work_of(graph.ops[0], graph.tensors, "onnx").bytes == 16 + 32


def dtype(*tensors: Tensor) -> str:
    graph = single("tflite", "X", tensors[:-1], tensors[-1:])
    return work_of(graph.ops[0], graph.tensors, "tflite").dtype


def test_an_op_computes_in_the_widest_float_that_it_touches_else_in_its_first_activation() -> None:
    weights = tensor((2,), "float32", Role.PARAMETER)
    assert dtype(tensor((2,), "int8"), weights, tensor((2,), "int8")) == "int8"
    assert dtype(tensor((2,), "float32"), tensor((2,), "int8")) == "float32"  # quantize
    assert dtype(tensor((2,), "int8"), tensor((2,), "float32")) == "float32"  # dequantize
    assert dtype(tensor((2,), "float16"), tensor((2,), "float32")) == "float32"
    assert dtype(tensor((2,), "int32"), tensor((2,), "int8")) == "int32"
    assert dtype(weights, tensor((2,), "float32", Role.CONSTANT)) == "float32"


def test_what_no_rule_counts_is_not_known() -> None:
    for framework, kind in [("tflite", "CUSTOM:TFLite_Detection_PostProcess"), ("onnx", "x::Conv"),
                            ("tensorflow", "XlaDotV2"), ("graph", "whatever")]:  # fmt: skip
        graph = single(framework, kind, [(4, 4)], [(4, 4)])
        work = work_of(graph.ops[0], graph.tensors, framework)
        assert (work.is_known, work.flops, work.bytes) == (False, 0, 128)


def test_a_count_of_the_file_comes_first_and_kinds_of_a_plain_graph_mean_themselves() -> None:
    graph = single("graph", "conv", [(4, 4)], [(4, 4)], flops=1234)
    work = work_of(graph.ops[0], graph.tensors, "graph")
    assert (work.kind, work.flops, work.is_known) == ("conv", 1234, True)


def body(kind: str = "Relu", size: int = 10) -> Graph:
    return single("onnx", kind, [(size,)], [(size,)])


def test_the_dearer_branch_counts_and_a_loop_counts_its_known_trips() -> None:
    branches = (body(size=10), body(size=70))
    choice = single("onnx", "If", [(1,)], [(10,)], subgraphs=branches)
    assert graph_flops(choice) == 70
    loop = single("onnx", "Loop", [(1,)], [(10,)], subgraphs=(body(),))
    assert graph_flops(loop) == 10
    known = single("onnx", "Loop", [(1,)], [(10,)], {"trip_count": 5}, subgraphs=(body(),))
    assert graph_flops(known) == 50
    scan = single("onnx", "Scan", [(4,), (7, 10)], [(4,)], {"num_scan_inputs": 1},
                  subgraphs=(body(),))  # fmt: skip
    assert graph_flops(scan) == 70
    assert work_of(scan.ops[0], scan.tensors, "onnx").kind == "control"


def test_a_scan_whose_attributes_make_no_sense_runs_once() -> None:
    senseless: list[dict[str, AttributeValue]] = [
        {"num_scan_inputs": 9},
        {"num_scan_inputs": 1, "scan_input_axes": (5,)},
    ]
    for attributes in senseless:
        graph = single("onnx", "Scan", [(4,)], [(4,)], attributes, subgraphs=(body(),))
        assert trips_of(graph.ops[0], graph.tensors) == 1


def test_absurd_sizes_stay_numbers_that_a_graph_file_holds() -> None:
    huge = (1 << 40, 1 << 40)
    graph = single("onnx", "MatMul", [huge, huge], [huge])
    assert op_flops(graph.ops[0], graph.tensors, "onnx") == MOST_FLOPS
    nested = single("onnx", "Loop", [(1,)], [(1,)], {"trip_count": 9}, subgraphs=(graph,))
    assert graph_flops(nested) == MOST_FLOPS


@pytest.mark.parametrize("table", [onnx, tensorflow, tflite], ids=lambda t: t.__name__)
def test_the_tables_use_known_kinds_and_name_each_op_once(table: object) -> None:
    kinds: dict[str, str] = table.KINDS  # type: ignore[attr-defined]
    rules: dict[str, object] = table.FLOPS  # type: ignore[attr-defined]
    names = [name for words in kinds.values() for name in words.split()]
    assert set(kinds) <= set(OP_KINDS)
    assert len(names) == len(set(names))
    optimizers = {"ApplyKerasMomentum", "ApplyAdamWithAmsgrad"}  # exist for resources only
    assert set(rules) - optimizers <= set(names)


def test_ops_that_multiply_have_a_rule_of_their_own_or_are_not_known() -> None:
    for framework, table in [("onnx", onnx), ("tensorflow", tensorflow), ("tflite", tflite)]:
        for kind in ("conv", "matmul", "rnn", "attention"):
            for name in table.KINDS.get(kind, "").split():
                graph = single(framework, name, [], [])
                known = work_of(graph.ops[0], graph.tensors, framework).is_known
                assert known is (name in table.FLOPS), name


def test_every_dtype_of_tflite_with_a_size_is_known_by_its_bits() -> None:
    assert all(BITS[dtype.name] == dtype.bits for dtype in DATA_TYPES
               if dtype.bits and dtype.name != "resource")  # fmt: skip


def test_the_work_of_a_graph_counts_bodies_as_often_as_they_run() -> None:
    inside = single("onnx", "Relu", [(10,)], [(10,)])
    loop = single("onnx", "Scan", [(3, 10)], [(3, 10)], {"num_scan_inputs": 1}, subgraphs=(inside,))
    assert (graph_flops(loop), graph_moved_bytes(loop)) == (3 * 10, 3 * 80)
    choice = single("onnx", "If", [(1,)], [(10,)], subgraphs=(inside, inside))
    assert (graph_flops(choice), graph_moved_bytes(choice)) == (10, 80)


def test_ops_without_a_rule_are_told_apart_from_those_without_work() -> None:
    inside = single("onnx", "some.domain::Magic", [(10,)], [(10,)])
    assert uncounted_ops(single("onnx", "If", [(1,)], [(10,)], subgraphs=(inside, inside))) == 2
    assert uncounted_ops(single("onnx", "Reshape", [(10,)], [(10,)])) == 0
