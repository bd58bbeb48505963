"""Shapes: open dimensions of inputs, and what depends on data."""

import itertools
import random

import numpy as np
import pytest

from regal.errors import ModelError, UsageError
from regal.frontends.tensorflow.fold import RULES, summed_axes
from regal.graph.types import LoadedModel
from tests.frontends.tensorflow_models import (
    BOOL,
    FLOAT,
    INT,
    GraphDef,
    Loader,
    Shape,
    needs_tensorflow,
)

pytestmark = needs_tensorflow


def shapes_of(model: LoadedModel) -> dict[str, Shape]:
    return {t.name: t.shape for t in model.graph.tensors}


def notes_of(model: LoadedModel) -> str:
    return "; ".join(model.source.notes)  # type: ignore[attr-defined]


def image() -> GraphDef:
    g = GraphDef()
    g.input("x", -1, -1, -1, 3)
    g.unary("y", "Relu", "x")
    return g


def test_an_open_first_dimension_is_a_batch_of_one(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", -1, 5)
    g.unary("y", "Relu", "x")
    model = loader.model(g)
    assert shapes_of(model)["y:0"] == (1, 5)
    assert "planned for batch size 1 of x:0" in notes_of(model)


def test_other_open_dimensions_are_listed(loader: Loader) -> None:
    with pytest.raises(ModelError) as caught:
        loader.model(image())
    assert str(caught.value) == (
        "2 input dimensions are free: x:0[1], x:0[2] - give --shape NAME=DIMS or --dim NAME[AXIS]=N"
    )


@pytest.mark.parametrize("name", ["x", "x:0"])
def test_a_shape_can_be_given_by_the_name_of_node_or_tensor(loader: Loader, name: str) -> None:
    assert shapes_of(loader.model(image(), shapes={name: (2, 8, 9, 3)}))["y:0"] == (2, 8, 9, 3)


def test_single_dimensions_can_be_given(loader: Loader) -> None:
    model = loader.model(image(), dims={"x[1]": 8, "x:0[2]": 9, "batch": 4})
    assert shapes_of(model)["y:0"] == (4, 8, 9, 3)
    assert "batch size" not in notes_of(model)


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"shapes": {"z": (1,)}}, "the model has no input 'z'; it has: x:0"),
        ({"dims": {"x[3]": 3}}, "the model has no free dimension 'x[3]'; it has: batch, x:0[0]"),
        ({"shapes": {"x": (1, 2)}}, "input 'x:0' has the shape ?,?,?,3; 1,2 does not fit"),
        ({"shapes": {"x": (1, 2, 2, 4)}}, "input 'x:0' has the shape ?,?,?,3; 1,2,2,4 does not"),
        ({"shapes": {"x": (1, -2, 2, 3)}}, "'x': -2 is no size of a dimension"),
        ({"dims": {"batch": 1 << 60}}, "'batch': 1152921504606846976 is no size"),
    ],
)
def test_a_wish_that_does_not_fit_is_refused(
    loader: Loader, wishes: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        loader.model(image(), **wishes)
    assert str(caught.value).startswith(message)


def test_shapes_that_contradict_each_other_are_refused_with_the_node(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", -1, 5)
    g.weights("w", 6, 2)
    g.add("y", "MatMul", "x", "w", T=FLOAT)
    with pytest.raises(ModelError) as caught:
        loader.model(g)
    assert str(caught.value) == (
        "node 'y' (MatMul) cannot take inputs of the shapes [1, 5], [6, 2]:"
        " Dimensions must be equal, but are 5 and 6"
    )


def test_an_input_of_unknown_rank_is_a_scalar_if_its_readers_take_one(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 4)
    g.add("rate", "Placeholder", dtype=FLOAT)
    g.binary("y", "Mul", "x", "rate")
    model = loader.model(g)
    assert shapes_of(model)["rate:0"] == ()
    assert "input 'rate' has no shape in the file: planned for scalar" in notes_of(model)


def test_an_input_of_unknown_rank_has_the_lowest_rank_that_its_readers_take(
    loader: Loader,
) -> None:
    g = GraphDef()
    g.add("x", "Placeholder", dtype=FLOAT)
    g.weights("w", 1, 2)
    g.add("y", "MatMul", "x", "w", T=FLOAT)
    assert shapes_of(loader.model(g))["x:0"] == (1, 1)


def test_an_input_of_unknown_rank_takes_the_shape_that_a_reshape_gives_it(loader: Loader) -> None:
    g = GraphDef()
    g.add("x", "Placeholder", dtype=FLOAT)
    g.vector("shape", -1, 28, 28)
    g.add("y", "Reshape", "x", "shape", T=FLOAT, Tshape=INT)
    assert shapes_of(loader.model(g))["x:0"] == (1, 28, 28)


def test_a_scalar_shape_of_an_old_file_may_stand_for_an_unknown_one(loader: Loader) -> None:
    old, new = GraphDef(producer=21), GraphDef(producer=22)
    for g in (old, new):
        g.input("x")
        g.weights("w", 1, 2)
        g.add("y", "MatMul", "x", "w", T=FLOAT)
    assert shapes_of(loader.model(old))["x:0"] == (1, 1)
    with pytest.raises(ModelError, match="must be rank 2 but is rank 0"):
        loader.model(new)


def test_what_an_operator_yields_at_most_bounds_what_depends_on_data(loader: Loader) -> None:
    g = GraphDef()
    g.input("p", 3, 4, dtype=BOOL)
    g.input("i", 7, dtype=INT)
    g.add("where", "Where", "p", T=BOOL)
    g.add("unique", "Unique", "i", T=INT, out_idx=INT)
    g.input("boxes", 50, 4)
    g.input("scores", 50)
    g.const("most", 9)
    g.weights("iou")
    g.add("best", "NonMaxSuppressionV2", "boxes", "scores", "most", "iou", T=FLOAT)
    model = loader.model(g)
    shapes = shapes_of(model)
    assert shapes["where:0"] == (12, 2)
    assert shapes["unique:0"] == shapes["unique:1"] == (7,)
    assert shapes["best:0"] == (9,)
    assert "taken as the most that their operators can yield" in notes_of(model)


def test_what_follows_from_an_assumption_is_inferred_again(loader: Loader) -> None:
    g = GraphDef()
    g.input("p", 12, dtype=BOOL)
    g.input("x", 12, 5)
    g.add("where", "Where", "p", T=BOOL)
    g.vector("axis", 1)
    g.add("index", "Squeeze", "where", T=INT, squeeze_dims=[1])
    g.proto.node[-1].attr["T"].type = 9
    g.const("zero", 0)
    g.add("rows", "GatherV2", "x", "index", "zero", Tparams=FLOAT, Taxis=INT)
    g.proto.node[-1].attr["Tindices"].type = 9
    g.unary("y", "Relu", "rows")
    assert shapes_of(loader.model(g))["y:0"] == (12, 5)


def test_a_size_that_a_reader_demands_is_not_assumed(loader: Loader) -> None:
    g = GraphDef()
    g.input("p", 12, dtype=BOOL)
    g.input("w", 3, 2)
    g.add("where", "Where", "p", T=BOOL)
    g.add("found", "Cast", "where", DstT=FLOAT)
    g.proto.node[-1].attr["SrcT"].type = 9
    g.add("t", "MatMul", "found", "w", T=FLOAT, transpose_a=True)
    assert shapes_of(loader.model(g))["where:0"] == (3, 1)


def test_what_is_popped_from_a_stack_looks_like_what_was_pushed(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 6, 2)
    g.const("size", -1)
    g.add("s", "StackV2", "size", elem_type=FLOAT, stack_name="")
    g.add("push", "StackPushV2", "s", "x", T=FLOAT)
    g.add("pop", "StackPopV2", "s", "^push", elem_type=FLOAT)
    g.unary("y", "Relu", "pop")
    model = loader.model(g)
    assert shapes_of(model)["y:0"] == (6, 2)
    assert "depend on data" not in notes_of(model)
    assert {t.name: t.bytes for t in model.graph.tensors}["s:0"] == 48  # what it holds


def test_an_array_of_tensors_holds_its_elements(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 5, 3)
    g.const("size", 5)
    g.vector("all", 0, 1, 2, 3, 4)
    g.add("a", "TensorArrayV3", "size", dtype=FLOAT, element_shape=(3,))
    g.add("fill", "TensorArrayScatterV3", "a", "all", "x", "a:1", T=FLOAT)
    g.const("two", 2)
    g.add("read", "TensorArrayReadV3", "a", "two", "fill", dtype=FLOAT)
    g.add("gather", "TensorArrayGatherV3", "a", "all", "fill", dtype=FLOAT)
    model = loader.model(g)
    shapes = shapes_of(model)
    assert (shapes["read:0"], shapes["gather:0"]) == ((3,), (5, 3))
    assert {t.name: t.bytes for t in model.graph.tensors}["a:0"] == 60


def test_a_list_of_tensors_is_followed_into_the_functions_that_get_it(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 4, 3)
    g.vector("shape", 3)
    variant = {"element_dtype": FLOAT, "shape_type": INT}
    g.add("list", "TensorListFromTensor", "x", "shape", **variant)
    for name in ("f", "g"):
        f = g.function("read", ["l:21"], ["r"]) if name == "f" else None
        if f is not None:
            f.add("i", "Const", dtype=INT)
            tensor = f.proto.node_def[-1].attr["value"].tensor
            tensor.dtype = INT
            tensor.tensor_shape.SetInParent()
            f.add("s", "Const", dtype=INT)
            tensor = f.proto.node_def[-1].attr["value"].tensor
            tensor.dtype = INT
            tensor.tensor_shape.dim.add(size=1)
            tensor.int_val.append(-1)
            f.add("get", "TensorListGetItem", "l", "i:output:0", "s:output:0", element_dtype=FLOAT)
            f.returns(r="get:item:0")
        g.add(name, "PartitionedCall", "list", Tout=[FLOAT], f={"function": "read"})
        g.proto.node[-1].attr["Tin"].list.type.append(21)
    model = loader.model(g)
    assert shapes_of(model)["f:0"] == shapes_of(model)["g:0"] == (3,)
    assert {t.name: t.bytes for t in model.graph.tensors}["list:0"] == 48


def test_integers_that_follow_from_shapes_are_followed(loader: Loader) -> None:
    # reshape(x, [size(x) / 6, 6]), as exporters write it for an unknown batch.
    g = GraphDef()
    g.input("x", -1, 4, 3)
    g.add("shape", "Shape", "x", T=FLOAT, out_type=INT)
    g.vector("axes", 0)
    g.add("count", "Prod", "shape", "axes", T=INT, Tidx=INT)
    g.const("six", 6)
    g.binary("rows", "FloorDiv", "count", "six", INT)
    g.add("target", "Pack", "rows", "six", T=INT, N=2, axis=0)
    g.add("y", "Reshape", "x", "target", T=FLOAT, Tshape=INT)
    model = loader.model(g, dims={"batch": 5})
    assert shapes_of(model)["y:0"] == (10, 6)
    assert "depend on data" not in notes_of(model)


def test_what_is_filled_to_the_shape_of_a_variable_has_that_shape(loader: Loader) -> None:
    # How the gradient of a loop begins to add up that of a weight.
    g = GraphDef()
    g.add("v", "VarHandleOp", dtype=FLOAT, shape=(3, 5), shared_name="v")
    g.add("size", "VariableShape", "v", out_type=INT)
    g.const("zero", 0)
    g.add("y", "Fill", "size", "zero", T=INT, index_type=INT)
    model = loader.model(g)
    assert shapes_of(model)["y:0"] == (3, 5)
    assert "depend on data" not in notes_of(model)


def test_gradients_of_a_broadcast_are_summed_over_the_axes_that_were_stretched() -> None:
    sizes = [shape for rank in range(4) for shape in itertools.product((1, 2), repeat=rank)]
    for first, second in itertools.product(sizes, repeat=2):
        whole = np.broadcast_shapes(first, second)
        for own, axes in zip((first, second), summed_axes(first, second), strict=True):
            # Summing a gradient over these axes gives back as many elements as the operand has.
            summed = np.ones(whole).sum(axis=axes).shape
            assert np.prod(summed) == np.prod(own), (first, second)


def test_numpy_computes_what_operators_of_sizes_compute() -> None:
    g = GraphDef()
    g.add("s", "StridedSlice", begin_mask=1, end_mask=0, shrink_axis_mask=0)
    node = type("Node", (), {"proto": g.proto.node[0], "kind": "StridedSlice"})
    rng = random.Random(0)
    for _ in range(200):
        data = np.arange(rng.randint(0, 5), dtype=np.int64)
        end, step = rng.randint(-6, 6), rng.choice([1, 2, 3])
        vectors = [np.array([v], dtype=np.int64) for v in (rng.randint(-6, 6), end, step)]
        (found,) = RULES["StridedSlice"](node, [data, *vectors])  # type: ignore[arg-type]
        assert found.tolist() == data.tolist()[:end:step]
