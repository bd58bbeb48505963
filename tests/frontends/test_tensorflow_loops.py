"""Loops and branches of TensorFlow 1 and 2: one op, with a body that is planned."""

import pytest

from regal.errors import ModelError
from regal.graph.types import Role
from tests.frontends.tensorflow_models import (
    BOOL,
    FLOAT,
    INT,
    RESOURCE,
    STRING,
    GraphDef,
    Loader,
    names,
    needs_tensorflow,
    op_named,
    peak,
    waits,
)

pytestmark = needs_tensorflow


def enter(g: GraphDef, name: str, source: str, frame: str, dtype: int = FLOAT) -> str:
    return g.add(name, "Enter", source, T=dtype, frame_name=frame, is_constant=False)


def count_to(g: GraphDef, frame: str, start: str, limit: str, after: str = "") -> str:
    """Add the counter of a loop; return the node that decides about the next round."""
    enter(g, f"{frame}/i", start, frame, INT)
    g.add(f"{frame}/iM", "Merge", f"{frame}/i", f"{frame}/iN", T=INT, N=2)
    g.add(f"{frame}/lim", "Enter", limit, T=INT, frame_name=frame, is_constant=True)
    g.binary(f"{frame}/less", "Less", f"{frame}/iM", f"{frame}/lim", INT)
    g.add(f"{frame}/cond", "LoopCond", f"{frame}/less")
    g.add(f"{frame}/iS", "Switch", f"{frame}/iM", f"{frame}/cond", T=INT)
    g.add(f"{frame}/iB", "Identity", f"{frame}/iS:1", T=INT)
    g.const(f"{frame}/one", 1, after=f"{frame}/iB")
    g.binary(f"{frame}/iA", "Add", f"{frame}/iB", f"{frame}/one", INT)
    g.add(f"{frame}/iN", "NextIteration", f"{frame}/iA", T=INT)
    return f"{frame}/cond"


def carry(g: GraphDef, frame: str, name: str, source: str, body: str) -> str:
    """Add a loop variable that `body` makes of "<frame>/<name>B"; return its exit."""
    stem = f"{frame}/{name}"
    enter(g, f"{stem}E", source, frame)
    g.add(f"{stem}M", "Merge", f"{stem}E", f"{stem}N", T=FLOAT, N=2)
    g.add(f"{stem}S", "Switch", f"{stem}M", f"{frame}/cond", T=FLOAT)
    g.add(f"{stem}B", "Identity", f"{stem}S:1", T=FLOAT)
    g.add(f"{stem}N", "NextIteration", body, T=FLOAT)
    return g.add(f"{stem}X", "Exit", f"{stem}S", T=FLOAT)


def simple_loop() -> GraphDef:
    """Return y = relu(loop(exp(x))), the loop doing v = matmul(v, w) five times."""
    g = GraphDef()
    g.input("x", 8, 8)
    g.unary("before", "Exp", "x")
    g.weights("w", 8, 8)
    g.const("zero", 0)
    g.const("five", 5)
    count_to(g, "f", "zero", "five")
    g.add("f/w", "Enter", "w", T=FLOAT, frame_name="f", is_constant=True)
    out = carry(g, "f", "v", "before", "f/mul")
    g.add("f/mul", "MatMul", "f/vB", "f/w", T=FLOAT)
    g.unary("y", "Relu", out)
    return g


def test_a_loop_is_one_op_between_what_enters_and_what_leaves(loader: Loader) -> None:
    graph = loader.graph(simple_loop())
    assert names(graph) == ["before", "f", "y"]
    loop = op_named(graph, "f")
    assert loop.kind == "WhileFrame"
    assert [graph.tensors[t].name for t in loop.outputs] == ["f/vX:0"]
    assert {graph.tensors[t].name for t in loop.inputs} == {"before:0", "w:0", "zero:0", "five:0"}
    assert loop.captures == len(loop.inputs)
    assert loop.attributes["trip_count"] == 5


def test_the_body_of_a_loop_is_one_round_of_it(loader: Loader) -> None:
    (body,) = op_named(loader.graph(simple_loop()), "f").subgraphs
    order = names(body)
    assert order.index("f/vM") < order.index("f/mul") < order.index("f/vN")
    tensors = {t.name: t for t in body.tensors}
    assert tensors["before:0"].role is Role.CAPTURED
    # The current value counts outside, as the result of the loop; the next one counts here.
    assert tensors["f/vM:0"].bytes == tensors["f/vX:0"].bytes == 0
    assert tensors["f/mul:0"].bytes == 256
    assert tensors["f/vN:0"].storage == tensors["f/mul:0"].storage


def test_a_loop_holds_a_variable_twice_while_the_next_value_is_made(loader: Loader) -> None:
    graph = loader.graph(simple_loop())
    # x dies in the first step. Then the value of this round takes over from the first value;
    # beside it lie the next value, and the counter, which is added to in place.
    assert op_named(graph, "f").in_place == ((3, 0),)
    assert peak(graph) == 256 + 256 + 4


def test_a_loop_in_a_loop_is_an_op_of_its_body(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 4)
    g.const("zero", 0)
    g.const("three", 3)
    count_to(g, "outer", "zero", "three")
    out = carry(g, "outer", "v", "x", "inner/vX")
    g.const("outer/zero", 0, after="outer/vB")
    g.const("outer/two", 2, after="outer/vB")
    count_to(g, "inner", "outer/zero", "outer/two")
    carry(g, "inner", "v", "outer/vB", "inner/twice")
    g.binary("inner/twice", "Add", "inner/vB", "inner/vB")
    g.unary("y", "Relu", out)
    graph = loader.graph(g)
    assert names(graph) == ["outer", "y"]
    (body,) = op_named(graph, "outer").subgraphs
    inner = op_named(body, "inner")
    assert inner.kind == "WhileFrame"
    assert inner.attributes["trip_count"] == 2
    assert "inner/twice" in names(inner.subgraphs[0])


def test_loops_that_need_each_other_are_one_op(loader: Loader) -> None:
    # As one op each, both would wait for the other: a gets b's result, b gets a's.
    g = GraphDef()
    g.input("x", 4)
    for frame in ("a", "b"):
        g.const(f"zero{frame}", 0)
        g.const(f"two{frame}", 2)
        count_to(g, frame, f"zero{frame}", f"two{frame}")
    first = carry(g, "a", "v", "x", "a/vR")
    g.unary("a/vR", "Relu", "a/vB")
    second = carry(g, "b", "v", first, "b/vR")
    g.unary("b/vR", "Relu", "b/vB")
    g.add("a/late", "Enter", second, T=FLOAT, frame_name="a", is_constant=True)
    g.binary("a/use", "Add", "a/late", "a/late")
    g.add("a/out", "Exit", "a/use", T=FLOAT)
    g.unary("y", "Neg", "a/out")
    graph = loader.graph(g)
    assert [op.kind for op in graph.ops] == ["Region", "Neg"]


def test_a_loop_whose_variable_grows_is_planned_for_its_first_round(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 4)
    g.const("zero", 0)
    g.const("two", 2)
    count_to(g, "f", "zero", "two")
    carry(g, "f", "v", "x", "f/double")
    g.const("f/axis", 0, after="f/vB")
    g.add("f/double", "ConcatV2", "f/vB", "f/vB", "f/axis", T=FLOAT, N=2, Tidx=INT)
    model = loader.model(g)
    assert {t.name: t.shape for t in model.graph.tensors}["f/vX:0"] == (4,)
    assert any("f/vM:0" in note for note in getattr(model.source, "notes", ()))


def test_what_a_loop_does_to_a_variable_keeps_its_place(loader: Loader) -> None:
    g = simple_loop()
    g.variable("s", 8, 8)
    g.add("f/s", "Enter", "s", T=20, frame_name="f", is_constant=True)
    g.proto.node[-1].attr["T"].type = 20
    g.add("f/write", "AssignVariableOp", "f/s", "f/vB", dtype=FLOAT)
    g.add("read", "ReadVariableOp", "s", dtype=FLOAT)
    graph = loader.graph(g)
    assert waits(graph, "read") == {"f"}
    assert op_named(graph, "f").colocation == op_named(graph, "read").colocation != ""


def test_a_loop_with_strings_stays_on_the_host(loader: Loader) -> None:
    g = simple_loop()
    g.input("s", dtype=STRING)
    g.add("f/s", "Enter", "s", frame_name="f", is_constant=True)
    g.proto.node[-1].attr["T"].type = STRING
    g.add("f/print", "PrintV2", "f/s", "^f/vB")
    assert op_named(loader.graph(g), "f").devices == ("cpu",)


def functional(kind: str) -> GraphDef:
    g = GraphDef()
    g.input("x", 8)
    g.input("p", dtype=BOOL)
    for name, op in (("yes", "Relu"), ("no", "Neg")):
        f = g.function(name, ["a"], ["r"])
        f.add("half", op, "a", T=FLOAT)
        f.add("out", "Exp", "half:y:0" if op == "Neg" else "half:activations:0", T=FLOAT)
        f.returns(r="out:y:0")
    branches = {"then_branch": {"function": "yes"}, "else_branch": {"function": "no"}}
    g.add("if", kind, "p", "x", Tcond=BOOL, Tin=[FLOAT], Tout=[FLOAT], **branches)
    g.unary("y", "Relu", "if")
    return g


@pytest.mark.parametrize("kind", ["If", "StatelessIf"])
def test_an_if_has_a_body_per_branch_that_writes_its_result_outside(
    loader: Loader, kind: str
) -> None:
    graph = loader.graph(functional(kind))
    op = op_named(graph, "if")
    assert [body.name for body in op.subgraphs] == ["yes", "no"]
    assert [names(body) for body in op.subgraphs] == [["half", "out"], ["half", "out"]]
    assert op.captures == 1
    body = op.subgraphs[0]
    roles = {t.name: (t.role, t.bytes) for t in body.tensors}
    assert roles == {
        "a:0": (Role.CAPTURED, 32),
        "half:0": (Role.ACTIVATION, 32),
        "out:0": (Role.OUTPUT, 0),
    }
    # x, the result, and what a branch needs besides.
    assert peak(graph) == 32 + 32 + 32 + 1


def while_graph() -> GraphDef:
    """Return five times v = relu(v + v), as a While."""
    g = GraphDef()
    g.input("x", 8)
    g.const("zero", 0)
    g.const("limit", 5)
    c = g.function("cond", ["i:3", "n:3", "v"], ["go:10"])
    c.add("less", "Less", "i", "n", T=INT)
    c.returns(go="less:z:0")
    b = g.function("body", ["i:3", "n:3", "v"], ["i2:3", "n2:3", "v2"])
    b.add("one", "Const", dtype=INT)
    tensor = b.proto.node_def[-1].attr["value"].tensor
    tensor.dtype = INT
    tensor.tensor_shape.SetInParent()
    tensor.int_val.append(1)
    b.add("next", "AddV2", "i", "one:output:0", T=INT)
    b.add("same", "Identity", "n", T=INT)
    b.add("twice", "AddV2", "v", "v", T=FLOAT)
    b.add("new", "Relu", "twice:z:0", T=FLOAT)
    b.returns(i2="next:z:0", n2="same:output:0", v2="new:activations:0")
    functions = {"cond": {"function": "cond"}, "body": {"function": "body"}}
    g.add("loop", "While", "zero", "limit", "x", T=[INT, INT, FLOAT], **functions)
    g.unary("y", "Neg", "loop:2")
    return g


def test_a_while_has_a_condition_and_a_body(loader: Loader) -> None:
    graph = loader.graph(while_graph())
    op = op_named(graph, "loop")
    assert [body.name for body in op.subgraphs] == ["cond", "body"]
    assert op.captures == 3
    assert op.attributes["trip_count"] == 5
    assert {t.name: t.shape for t in graph.tensors}["loop:2"] == (8,)
    body = op.subgraphs[1]
    # What a round returns lies beside what it was given, which counts outside.
    assert {t.name: t.bytes for t in body.tensors}["new:0"] == 32
    assert {t.name: t.role for t in body.tensors}["v:0"] is Role.CAPTURED


def test_a_body_in_which_a_node_is_missing_is_refused(loader: Loader) -> None:
    g = while_graph()
    g.proto.library.function[1].node_def[0].input.append("nowhere:0")
    with pytest.raises(ModelError) as caught:
        loader.graph(g)
    assert "function 'body'" in str(caught.value)
    assert "'nowhere:0'" in str(caught.value)


def test_a_case_has_all_its_branches(loader: Loader) -> None:
    g = functional("If")
    del g.proto.node[-2:]
    g.const("which", 1)
    branches = [{"function": name} for name in ("yes", "no", "yes")]
    g.add("case", "Case", "which", "x", Tin=[FLOAT], Tout=[FLOAT], branches=branches)
    op = op_named(loader.graph(g), "case")
    assert [body.name for body in op.subgraphs] == ["yes", "no", "yes"]


def test_the_handle_that_leaves_a_while_is_the_one_that_entered(loader: Loader) -> None:
    # The gradient of a loop asks the handles that it gets from the loop for their shapes.
    g = GraphDef()
    g.add("v", "VarHandleOp", dtype=FLOAT, shape=(3, 5), shared_name="v")
    g.const("zero", 0)
    c = g.function("cond", ["i:3", f"h:{RESOURCE}"], ["go:10"])
    c.add("less", "Less", "i", "i", T=INT)
    c.returns(go="less:z:0")
    b = g.function("body", ["i:3", f"h:{RESOURCE}"], ["i2:3", f"h2:{RESOURCE}"])
    b.add("next", "AddV2", "i", "i", T=INT)
    b.returns(i2="next:z:0", h2="h")
    functions = {"cond": {"function": "cond"}, "body": {"function": "body"}}
    g.add("loop", "While", "zero", "v", T=[INT, RESOURCE], **functions)
    g.add("read", "ReadVariableOp", "loop:1", dtype=FLOAT)
    g.unary("y", "Neg", "read")
    tensors = {t.name: t for t in loader.graph(g).tensors}
    assert tensors["y:0"].shape == (3, 5)
    assert tensors["v:0"].role is Role.STATE
    assert tensors["loop:1"].storage == tensors["read:0"].storage == tensors["v:0"].storage
