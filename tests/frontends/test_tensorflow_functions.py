"""Functions of a file: inlined where they are called once, bodies where more often."""

import pytest

from regal.errors import ModelError
from regal.graph.types import Role
from tests.frontends.tensorflow_models import (
    FLOAT,
    DType,
    Function,
    GraphDef,
    Loader,
    names,
    needs_tensorflow,
    op_named,
    peak,
    waits,
)

pytestmark = needs_tensorflow


def call(g: GraphDef, name: str, function: str, *inputs: str, results: int = 1) -> str:
    kinds = [FLOAT] * len([i for i in inputs if not i.startswith("^")])
    return g.add(
        name,
        "StatefulPartitionedCall",
        *inputs,
        Tin=kinds,
        Tout=[FLOAT] * results,
        f={"function": function},
    )


def two_steps(g: GraphDef, name: str = "f") -> Function:
    """Add a function: r = tanh(relu(a))."""
    f = g.function(name, ["a"], ["r"])
    f.add("second", "Tanh", "first:activations:0", T=FLOAT)
    f.add("first", "Relu", "a", T=FLOAT)
    f.returns(r="second:y:0")
    return f


def test_a_function_that_is_called_once_is_inlined(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 4)
    two_steps(g)
    g.unary("before", "Neg", "x")
    call(g, "c", "f", "before")
    g.unary("after", "Neg", "c")
    model = loader.model(g)
    assert names(model.graph) == ["before", "c/first", "c/second", "after"]
    assert not any(op.subgraphs for op in model.graph.ops)
    entry = model.source.entries[0]  # type: ignore[attr-defined]
    assert entry.homes["c/first"] == ("f", "first")
    assert [node.name for node in entry.graph.node][2:4] == ["c/second", "c/first"]


def test_a_function_that_is_called_twice_is_a_body_of_each_call(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 4)
    two_steps(g)
    call(g, "c", "f", "x")
    call(g, "d", "f", "c")
    graph = loader.graph(g)
    assert names(graph) == ["c", "d"]
    for op in graph.ops:
        (body,) = op.subgraphs
        assert names(body) == ["first", "second"]
        assert {t.name: (t.role, t.bytes) for t in body.tensors} == {
            "a:0": (Role.CAPTURED, 16),
            "first:0": (Role.ACTIVATION, 16),
            "second:0": (Role.OUTPUT, 0),
        }
    # The value before, the result, and the one between: a body has no room inside its results.
    assert peak(graph) == 48


def test_a_function_that_must_stay_closed_is_a_body(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 4)
    f = two_steps(g)
    f.proto.attr["_noinline"].b = True
    call(g, "c", "f", "x")
    assert names(loader.graph(g)) == ["c"]


def test_functions_in_functions_are_inlined_too(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 4)
    two_steps(g, "inner")
    f = g.function("outer", ["a"], ["r"])
    f.add("go", "PartitionedCall", "a", Tin=[FLOAT], Tout=[FLOAT], f={"function": "inner"})
    f.add("end", "Exp", "go:output:0", T=FLOAT)
    f.returns(r="end:y:0")
    call(g, "c", "outer", "x")
    assert names(loader.graph(g)) == ["c/go/first", "c/go/second", "c/end"]


def test_a_function_can_be_called_by_its_name(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 4)
    two_steps(g)
    g.add("c", "f", "x")
    g.unary("y", "Neg", "c")
    assert names(loader.graph(g)) == ["c/first", "c/second", "y"]


def test_results_that_are_arguments_are_handed_through(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 4)
    g.input("y", 4)
    f = g.function("swap", ["a", "b"], ["p", "q"])
    f.returns(p="b", q="a")
    call(g, "c", "swap", "x", "y", results=2)
    g.unary("first", "Relu", "c")
    g.unary("second", "Neg", "c:1")
    graph = loader.graph(g)
    reads = {op.name: [graph.tensors[t].name for t in op.inputs] for op in graph.ops}
    assert reads == {"first": ["y:0"], "second": ["x:0"]}


def test_what_a_call_waits_for_holds_for_its_body_and_what_waits_for_it(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 4)
    two_steps(g)
    g.unary("early", "Neg", "x")
    call(g, "c", "f", "x", "^early")
    g.unary("late", "Neg", "x")
    g.proto.node[-1].input.append("^c")
    graph = loader.graph(g)
    assert waits(graph, "c/first") == {"early"}
    assert waits(graph, "late") == {"c/second"}


def test_nodes_of_a_function_that_nothing_needs_are_left_out_unless_they_have_state(
    loader: Loader,
) -> None:
    g = GraphDef()
    g.input("x", 4)
    f = two_steps(g)
    f.add("idle", "Neg", "a", T=FLOAT)
    f.add("noise", "RandomUniform", "shape:output:0", T=DType(3), dtype=FLOAT, seed=1, seed2=1)
    f.add("shape", "Const", dtype=DType(3))
    tensor = f.proto.node_def[-1].attr["value"].tensor
    tensor.dtype = 3
    tensor.tensor_shape.dim.add(size=1)
    tensor.int_val.append(2)
    call(g, "c", "f", "x")
    assert names(loader.graph(g)) == ["c/first", "c/second", "c/noise"]


def test_the_type_of_a_function_comes_from_its_call(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 4)
    f = g.function("generic", [], [])
    f.proto.signature.input_arg.add(name="a", type_attr="T")
    f.proto.signature.output_arg.add(name="r", type_attr="T")
    f.proto.signature.attr.add(name="T", type="type")
    f.add("n", "Neg", "a")
    f.proto.node_def[0].attr["T"].placeholder = "T"
    f.returns(r="n:y:0")
    g.add("c", "generic", "x", T=FLOAT)
    g.unary("y", "Relu", "c")
    graph = loader.graph(g)
    assert names(graph) == ["c/n", "y"]
    assert op_named(graph, "c/n").attributes["T"] == "float32"


@pytest.mark.parametrize("by_count", [True, False])
def test_lists_of_arguments_are_numbered(loader: Loader, by_count: bool) -> None:
    g = GraphDef()
    g.input("x", 4)
    g.input("y", 4)
    f = g.function("lists", [], ["r"])
    argument = f.proto.signature.input_arg.add(name="args")
    if by_count:
        argument.number_attr, argument.type = "N", FLOAT
        f.proto.signature.attr.add(name="N", type="int")
    else:
        argument.type_list_attr = "Ts"
        f.proto.signature.attr.add(name="Ts", type="list(type)")
    f.add("split", "Unpack", "args:1", num=4, axis=0, T=FLOAT)
    f.add("sum", "AddN", "split:output:3", "split:output:0", N=2, T=FLOAT)
    f.add("out", "Exp", "args:0", "^sum", T=FLOAT)
    f.returns(r="out:y:0")
    g.add("c", "lists", "x", "y", **({"N": 2} if by_count else {"Ts": [FLOAT, FLOAT]}))
    g.unary("y2", "Relu", "c")
    graph = loader.graph(g)
    reads = {op.name: [graph.tensors[t].name for t in op.inputs] for op in graph.ops}
    assert reads == {
        "c/split": ["y:0"],
        "c/sum": ["c/split:3", "c/split:0"],
        "c/out": ["x:0"],
        "y2": ["c/out:0"],
    }
    assert waits(graph, "c/out") == {"c/sum"}


def test_a_function_that_calls_itself_is_planned_without_its_body(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 4)
    f = g.function("again", ["a"], ["r"])
    f.add("half", "Relu", "a", T=FLOAT)
    inner = {"Tin": [FLOAT], "Tout": [FLOAT], "f": {"function": "again"}}
    f.add("go", "StatefulPartitionedCall", "half:activations:0", **inner)
    f.returns(r="go:output:0")
    call(g, "c", "again", "x")
    model = loader.model(g)
    (body,) = op_named(model.graph, "c").subgraphs
    assert names(body) == ["half", "go"]
    assert not op_named(body, "go").subgraphs
    assert "'again' runs itself" in " ".join(model.source.notes)  # type: ignore[attr-defined]


def test_calls_that_multiply_are_planned_down_to_a_limit(
    loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each function calls the next one twice: 2^12 nodes if all were written out.
    monkeypatch.setattr("regal.frontends.tensorflow.sizes.MOST_BODY_NODES", 30)
    g = GraphDef()
    g.input("x", 4)
    for level in range(12):
        f = g.function(f"f{level}", ["a"], ["r"])
        kind = {"Tin": [FLOAT], "Tout": [FLOAT], "f": {"function": f"f{level + 1}"}}
        f.add("one", "PartitionedCall", "a", **kind)
        f.add("two", "PartitionedCall", "one:output:0", **kind)
        f.returns(r="two:output:0")
    two_steps(g, "f12")
    call(g, "c", "f0", "x")
    model = loader.model(g)
    assert names(model.graph) == ["c/one", "c/two"]
    assert "what the rest takes is not counted" in " ".join(model.source.notes)  # type: ignore[attr-defined]


def test_functions_that_nobody_calls_are_kept_but_not_planned(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 4)
    two_steps(g, "unused")
    g.unary("y", "Neg", "x")
    model = loader.model(g)
    assert names(model.graph) == ["y"]
    functions = model.source.message.library.function  # type: ignore[attr-defined]
    assert [f.signature.name for f in functions] == ["unused"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.add("first", "Neg", "a", T=FLOAT), "function 'f' has two nodes 'first'"),
        (lambda f: f.proto.ret.clear(), "function 'f' does not return its result 'r'"),
        (
            lambda f: f.returns(r="second:y:3"),
            "function 'f' reads 'second:y:3', which the function does not have",
        ),
        (
            lambda f: f.proto.node_def[0].input.append("^nobody"),
            "function 'f' waits for 'nobody', which it does not have",
        ),
        (
            lambda f: f.proto.signature.input_arg.add(name="b", type=FLOAT),
            "node 'c' calls 'f' with 1 values for 1; it takes 2 for 1",
        ),
    ],
)
def test_a_broken_function_is_refused_by_its_name(
    loader: Loader, change: object, message: str
) -> None:
    g = GraphDef()
    g.input("x", 4)
    change(two_steps(g))  # type: ignore[operator]
    call(g, "c", "f", "x")
    with pytest.raises(ModelError) as caught:
        loader.graph(g)
    assert str(caught.value) == message
