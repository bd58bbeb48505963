"""What the nodes of a TensorFlow graph become: ops, tensors, memory that is shared."""

import pytest

from regal.errors import ModelError
from regal.graph.types import Role
from tests.frontends.tensorflow_models import (
    BOOL,
    FLOAT,
    INT,
    STRING,
    GraphDef,
    Loader,
    names,
    needs_tensorflow,
    op_named,
    peak,
    storages,
    waits,
)

pytestmark = needs_tensorflow


def test_constants_and_inputs_are_tensors_and_all_else_is_an_op(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 2, 3)
    g.weights("w", 3, 4)
    g.add("y", "MatMul", "x", "w", T=FLOAT)
    graph = loader.graph(g)
    assert names(graph) == ["y"]
    tensors = {t.name: (t.role, t.shape, t.dtype, t.bytes) for t in graph.tensors}
    assert tensors == {
        "x:0": (Role.INPUT, (2, 3), "float32", 24),
        "w:0": (Role.CONSTANT, (3, 4), "float32", 48),
        "y:0": (Role.OUTPUT, (2, 4), "float32", 32),
    }
    assert peak(graph) == 24 + 32  # the weights are not counted


def test_results_that_nothing_waits_for_are_the_outputs(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 4)
    g.unary("a", "Relu", "x")
    g.unary("b", "Tanh", "a")
    g.unary("pivot", "Tanh", "a")
    g.add("group", "NoOp", "^pivot")
    graph = loader.graph(g)
    assert [graph.tensors[t].name for t in graph.outputs] == ["b:0"]


def test_marked_results_are_the_only_outputs(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 4)
    g.unary("a", "Relu", "x")
    g.unary("b", "Tanh", "x")
    g.add("main", "_Retval", "a", T=FLOAT, index=0)
    graph = loader.graph(g)
    assert [graph.tensors[t].name for t in graph.outputs] == ["a:0"]
    assert names(graph) == ["a", "b"]


def test_nodes_out_of_order_come_in_the_order_of_the_file_as_far_as_it_can_run(
    loader: Loader,
) -> None:
    g = GraphDef()
    g.unary("late", "Relu", "second")
    g.unary("first", "Relu", "x")
    g.unary("second", "Tanh", "third")
    g.unary("third", "Tanh", "x")
    g.unary("last", "Tanh", "x")
    g.input("x", 4)
    # late waits for second, second for third; first, third and last could begin at once.
    assert names(loader.graph(g)) == ["first", "third", "second", "late", "last"]


def test_an_order_that_can_run_is_kept(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 4)
    for i in (5, 3, 9, 1):
        g.unary(f"op{i}", "Relu", "x")
    assert names(loader.graph(g)) == ["op5", "op3", "op9", "op1"]


def test_control_inputs_hold_through_nodes_that_are_no_ops(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 1)
    g.unary("early", "Relu", "x")
    g.add("c", "Const", "^early", dtype=INT)
    g.proto.node[-1].attr["value"].tensor.dtype = INT
    g.proto.node[-1].attr["value"].tensor.int_val.append(1)
    g.add("reads", "Cast", "c", SrcT=INT, DstT=FLOAT)
    g.unary("waits", "Tanh", "x")
    g.proto.node[-1].input.append("^c")
    g.unary("free", "Tanh", "x")
    graph = loader.graph(g)
    assert waits(graph, "reads") == {"early"}
    assert waits(graph, "waits") == {"early"}
    assert waits(graph, "free") == set()


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("Identity", {"T": FLOAT}),
        ("StopGradient", {"T": FLOAT}),
        ("Squeeze", {"T": FLOAT, "squeeze_dims": []}),
        ("CheckNumerics", {"T": FLOAT, "message": "m"}),
        ("Bitcast", {"T": FLOAT, "type": INT}),
        ("EnsureShape", {"T": FLOAT, "shape": (1, 4)}),
    ],
)
def test_operators_that_hand_on_their_buffer_share_it(
    loader: Loader, op: str, attributes: dict[str, object]
) -> None:
    g = GraphDef()
    g.input("x", 1, 4)
    g.unary("a", "Relu", "x")
    g.add("view", op, "a", **attributes)
    g.unary("z", "Neg", "view") if op != "Bitcast" else g.binary("z", "Add", "view", "view", INT)
    g.unary("later", "Neg", "a")
    where = storages(loader.graph(g))
    assert where["view:0"] == where["a:0"] != where["z:0"]


def test_a_reshape_of_an_input_is_the_input(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 2, 6)
    g.vector("shape", 3, 4)
    g.add("y", "Reshape", "x", "shape", T=FLOAT, Tshape=INT)
    g.unary("z", "Neg", "y")
    graph = loader.graph(g)
    assert storages(graph)["y:0"] == storages(graph)["x:0"]
    assert op_named(graph, "z").in_place == ()  # what the caller gave is never overwritten


def test_aligned_parts_of_the_first_axis_lie_in_what_they_are_parts_of(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 4, 16)  # rows of 64 bytes
    g.unary("a", "Relu", "x")
    g.const("axis", 0)
    g.add("parts", "Split", "axis", "a", T=FLOAT, num_split=2)
    g.unary("y", "Neg", "parts:1")
    graph = loader.graph(g)
    tensors = {t.name: t for t in graph.tensors}
    assert tensors["parts:0"].storage == tensors["parts:1"].storage == tensors["a:0"].storage
    assert [tensors[f"parts:{k}"].storage_offset for k in (0, 1)] == [0, 128]


def test_parts_that_are_not_aligned_are_copies(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 4, 5)  # rows of 20 bytes
    g.unary("a", "Relu", "x")
    g.const("axis", 0)
    g.add("parts", "Split", "axis", "a", T=FLOAT, num_split=2)
    g.unary("y", "Neg", "parts:1")
    where = storages(loader.graph(g))
    assert len({where["a:0"], where["parts:0"], where["parts:1"]}) == 3


def test_rows_that_are_sliced_out_lie_where_they_were(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 8, 16)
    g.unary("a", "Relu", "x")
    g.vector("begin", 2, 0)
    g.vector("size", 3, 16)
    g.add("s", "Slice", "a", "begin", "size", T=FLOAT, Index=INT)
    for name, value in (("b", -2), ("e", 8), ("step", 1)):
        g.vector(name, value)
    g.add("t", "StridedSlice", "a", "b", "e", "step", T=FLOAT, Index=INT)
    g.binary("y", "AddN", "s", "s")
    g.proto.node[-1].attr["N"].i = 2
    g.unary("z", "Neg", "t")
    tensors = {t.name: t for t in loader.graph(g).tensors}
    assert (tensors["s:0"].storage_offset, tensors["s:0"].bytes) == (2 * 64, 3 * 64)
    assert (tensors["t:0"].storage_offset, tensors["t:0"].bytes) == (6 * 64, 2 * 64)
    assert tensors["s:0"].storage == tensors["t:0"].storage == tensors["a:0"].storage


def test_elementwise_kernels_write_over_an_input_that_dies(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 100)
    g.unary("a", "Exp", "x")
    g.unary("b", "Tanh", "a")
    g.binary("c", "Add", "b", "x")
    graph = loader.graph(g)
    assert op_named(graph, "a").in_place == ()
    assert op_named(graph, "b").in_place == ((0, 0),)
    assert op_named(graph, "c").in_place == ((0, 0),)  # not over x, the caller's
    assert peak(graph) == 400 + 400  # x, and one buffer for a, b and c


def test_a_result_of_another_size_or_type_gets_its_own_bytes(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 3, 1)
    g.input("v", 1, 4)
    g.unary("a", "Relu", "x")
    g.unary("b", "Relu", "v")
    g.binary("outer", "Mul", "a", "b")
    g.binary("less", "Less", "a", "x")
    graph = loader.graph(g)
    assert op_named(graph, "outer").in_place == ()
    assert op_named(graph, "less").in_place == ()
    assert {t.name: t.dtype for t in graph.tensors}["less:0"] == "bool"


def test_a_merge_takes_over_the_buffer_of_either_branch(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 8)
    g.input("p", dtype=BOOL)
    g.add("s", "Switch", "x", "p", T=FLOAT)
    g.unary("no", "Relu", "s")
    g.unary("yes", "Neg", "s:1")
    g.add("m", "Merge", "no", "yes", T=FLOAT, N=2)
    graph = loader.graph(g)
    where = storages(graph)
    assert where["s:0"] == where["s:1"] == where["x:0"]
    assert op_named(graph, "m").in_place == ((0, 0), (1, 0))
    assert peak(graph) == 32 + 32 + 32  # x, and both branches as if both ran


def test_strings_are_counted_by_their_objects_and_stay_on_the_host(loader: Loader) -> None:
    g = GraphDef()
    g.input("s", 5, dtype=STRING)
    g.add("n", "StringLength", "s", unit="BYTE")
    g.add("f", "Cast", "n", SrcT=INT, DstT=FLOAT)
    graph = loader.graph(g)
    assert {t.name: t.bytes for t in graph.tensors}["s:0"] == 5 * 24
    assert op_named(graph, "n").devices == ("cpu",)
    assert op_named(graph, "f").devices == ()


def test_the_file_s_wishes_for_devices_and_company_are_kept(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 2)
    g.unary("a", "Relu", "x")
    g.proto.node[-1].device = "/device:GPU:1"
    g.unary("b", "Relu", "x")
    g.add("c", "Tanh", "x", T=FLOAT, _class=["loc:@a"])
    g.add("d", "Tanh", "x", T=FLOAT, _class=["loc:@nowhere"])
    graph = loader.graph(g)
    assert op_named(graph, "a").attributes["_device"] == "/device:GPU:1"
    assert op_named(graph, "a").colocation == op_named(graph, "c").colocation == "a"
    assert op_named(graph, "b").colocation == op_named(graph, "d").colocation == ""


def test_attributes_that_decide_about_work_are_kept(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 1, 8, 8, 3)
    g.weights("w", 3, 3, 3, 16)
    strides = [1, 2, 2, 1]
    g.add("y", "Conv2D", "x", "w", T=FLOAT, strides=strides, padding="SAME", data_format="NHWC")
    op = op_named(loader.graph(g), "y")
    assert op.attributes == {
        "T": "float32",
        "data_format": "NHWC",
        "padding": "SAME",
        "strides": (1, 2, 2, 1),
    }


def test_an_operator_that_tensorflow_does_not_know_is_planned_by_what_the_file_says(
    loader: Loader,
) -> None:
    g = GraphDef()
    g.input("x", 2, 3)
    g.add("mine", "MyOperator", "x", T=FLOAT, _output_shapes=[(7, 5)])
    g.unary("y", "Relu", "mine")
    model = loader.model(g)
    assert {t.name: t.shape for t in model.graph.tensors}["y:0"] == (7, 5)
    notes = getattr(model.source, "notes", ())
    assert any("MyOperator" in note for note in notes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda g: g.unary("x", "Relu", "x"), "nodes 0 and 2 are both named 'x'"),
        (
            lambda g: g.unary("b", "Relu", "nothing"),
            "node 'b' (Relu) reads 'nothing', which is not in the graph",
        ),
        (
            lambda g: g.unary("b", "Relu", "a:1"),
            "node 'b' (Relu) reads result 1 of 'a' (Relu), which has 1",
        ),
        (
            lambda g: g.add("b", "Relu", "a", "a", T=FLOAT),
            "node 'b' (Relu) has 2 inputs; its attributes say 1",
        ),
        (lambda g: g.add("b", "Relu", "a"), "node 'b' (Relu) has no attribute 'T'"),
        (
            lambda g: (g.unary("b", "Relu", "c"), g.unary("c", "Relu", "b")),
            "node 'b' (Relu) waits for itself, through 'c' (Relu): a cycle of 2 nodes",
        ),
        (
            lambda g: g.add("b", "Split", "a", "a", T=FLOAT, num_split=1 << 40),
            "node 'b' (Split): attribute 'num_split' is 1099511627776; 0 to 65536 can be",
        ),
    ],
)
def test_a_broken_graph_is_refused_with_its_node(
    loader: Loader, change: object, message: str
) -> None:
    g = GraphDef()
    g.input("x", 2)
    g.unary("a", "Relu", "x")
    change(g)  # type: ignore[operator]
    with pytest.raises(ModelError) as caught:
        loader.graph(g)
    assert str(caught.value).startswith(message)
