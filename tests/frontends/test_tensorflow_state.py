"""Variables, queues and side effects: what the file's order means, and that plans must keep it."""

from dataclasses import replace

import pytest

from regal.errors import PlanError
from regal.graph.memory import state_bytes
from regal.graph.types import Graph, Role
from regal.plan.check import require_valid_plan
from regal.search.packing import before_plan
from tests.frontends.tensorflow_models import (
    FLOAT,
    INT,
    RESOURCE,
    STRING,
    DType,
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


def counter() -> GraphDef:
    """Return reads and writes of one variable, none of which waits for another by an edge."""
    g = GraphDef()
    g.input("x", 4)
    g.variable("v", 4)
    g.add("read0", "ReadVariableOp", "v", dtype=FLOAT)
    g.add("read1", "ReadVariableOp", "v", dtype=FLOAT)
    g.add("write2", "AssignAddVariableOp", "v", "x", dtype=FLOAT)
    g.add("read3", "ReadVariableOp", "v", dtype=FLOAT)
    g.add("write4", "AssignVariableOp", "v", "x", dtype=FLOAT)
    g.add("write5", "AssignSubVariableOp", "v", "x", dtype=FLOAT)
    return g


def moved(graph: Graph, name: str, before: str) -> tuple[int, ...]:
    """Return the order of the file, with one op moved to stand before another."""
    order = [i for i, op in enumerate(graph.ops) if op.name != name]
    place = order.index(names(graph).index(before))
    return (*order[:place], names(graph).index(name), *order[place:])


def test_reads_and_writes_of_a_variable_keep_their_order(loader: Loader) -> None:
    graph = loader.graph(counter())
    assert waits(graph, "read1") == set()  # reads are free among themselves
    assert waits(graph, "write2") == {"read0", "read1"}
    assert waits(graph, "read3") == {"write2"}
    assert waits(graph, "write4") == {"write2", "read3"}
    assert waits(graph, "write5") == {"write4"}


@pytest.mark.parametrize(
    ("name", "before"),
    [("write2", "read0"), ("read3", "write2"), ("write4", "read3"), ("write5", "write4")],
)
def test_a_plan_that_breaks_the_order_of_state_is_rejected(
    loader: Loader, name: str, before: str
) -> None:
    graph = loader.graph(counter())
    plan = before_plan(graph, None)
    require_valid_plan(graph, plan)
    with pytest.raises(PlanError):
        require_valid_plan(graph, replace(plan, order=moved(graph, name, before)))


def test_a_plan_that_swaps_two_reads_is_accepted(loader: Loader) -> None:
    graph = loader.graph(counter())
    plan = before_plan(graph, moved(graph, "read1", "read0"))
    assert require_valid_plan(graph, plan).peak_bytes == peak(graph)


def test_a_variable_is_state_and_what_is_read_lies_in_it(loader: Loader) -> None:
    graph = loader.graph(counter())
    tensors = {t.name: t for t in graph.tensors}
    assert tensors["v:0"].role is Role.STATE
    assert (tensors["v:0"].shape, tensors["v:0"].dtype, tensors["v:0"].bytes) == (
        (4,),
        "float32",
        16,
    )
    assert tensors["read0:0"].storage == tensors["v:0"].storage
    assert state_bytes(graph) == 16
    assert peak(graph) == 16  # x alone


def test_handles_of_one_name_are_one_variable(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 4)
    g.add("a", "VarHandleOp", dtype=FLOAT, shape=(4,), shared_name="same")
    g.add("b", "VarHandleOp", dtype=FLOAT, shape=(4,), shared_name="same")
    g.add("write", "AssignVariableOp", "a", "x", dtype=FLOAT)
    g.add("read", "ReadVariableOp", "b", dtype=FLOAT)
    graph = loader.graph(g)
    assert waits(graph, "read") == {"write"}
    assert op_named(graph, "read").colocation == op_named(graph, "write").colocation != ""


def test_ops_that_take_a_handle_stay_together_and_readers_of_its_value_need_not(
    loader: Loader,
) -> None:
    g = counter()
    g.unary("use", "Relu", "read0")
    graph = loader.graph(g)
    touching = [op.colocation for op in graph.ops if op.name != "use"]
    assert len(set(touching)) == 1
    assert touching[0] != ""
    assert op_named(graph, "use").colocation == ""


def test_a_handle_is_followed_through_identities_and_branches(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 4)
    g.input("p", dtype=DType(10))
    g.variable("v", 4)
    g.add("s", "Switch", "v", "p", T=RESOURCE)
    g.add("i", "Identity", "s:1", T=RESOURCE)
    g.add("read", "ReadVariableOp", "i", dtype=FLOAT)
    g.add("write", "AssignVariableOp", "v", "x", dtype=FLOAT)
    assert waits(loader.graph(g), "write") == {"read"}


def reference_variable() -> GraphDef:
    g = GraphDef()
    g.input("x", 4)
    g.add("v", "VariableV2", dtype=FLOAT, shape=(4,), container="", shared_name="")
    g.add("init", "Assign", "v", "x", T=FLOAT)
    g.add("read", "Identity", "v", T=FLOAT)
    g.unary("use", "Relu", "read")
    g.add("update", "AssignAdd", "v", "x", T=FLOAT)
    g.unary("after", "Relu", "update")
    return g


def test_a_variable_of_tensorflow_1_is_an_op_whose_value_can_be_sent(loader: Loader) -> None:
    graph = loader.graph(reference_variable())
    assert "v" in names(graph)
    tensors = {t.name: t for t in graph.tensors}
    assert tensors["v:0"].role is Role.STATE
    where = storages(graph)
    assert where["v:0"] == where["init:0"] == where["read:0"] == where["update:0"]
    assert state_bytes(graph) == 16


def test_what_lies_in_a_variable_is_used_before_the_variable_changes(loader: Loader) -> None:
    # An Identity of a reference is the variable's own buffer: its readers read the variable.
    graph = loader.graph(reference_variable())
    assert waits(graph, "read") == {"init"}
    assert waits(graph, "update") >= {"read", "use"}
    plan = before_plan(graph, None)
    with pytest.raises(PlanError):
        require_valid_plan(graph, replace(plan, order=moved(graph, "update", "use")))


def test_accesses_of_a_queue_keep_their_order(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 2, 3)
    g.add("q", "FIFOQueueV2", component_types=[FLOAT], shapes=[(2, 3)], capacity=4)
    g.add("put", "QueueEnqueueV2", "q", "x", Tcomponents=[FLOAT])
    g.add("get", "QueueDequeueV2", "q", component_types=[FLOAT])
    g.add("size", "QueueSizeV2", "q")
    graph = loader.graph(g)
    assert waits(graph, "get") == {"put"}
    assert waits(graph, "size") == {"get"}
    assert op_named(graph, "get").devices == ("cpu",)
    assert {t.name: t.shape for t in graph.tensors}["get:0"] == (2, 3)


def test_an_iterator_yields_in_order(loader: Loader) -> None:
    g = GraphDef()
    shapes = [(-1, 3), (-1,)]
    types = [FLOAT, INT]
    g.add(
        "it", "IteratorV2", output_types=types, output_shapes=shapes, shared_name="", container=""
    )
    g.add("first", "IteratorGetNext", "it", output_types=types, output_shapes=shapes)
    g.add("second", "IteratorGetNext", "it", output_types=types, output_shapes=shapes)
    model = loader.model(g)
    assert waits(model.graph, "second") == {"first"}
    assert {t.name: t.shape for t in model.graph.tensors}["first:0"] == (1, 3)


def test_what_comes_from_an_iterator_can_be_given_a_shape(loader: Loader) -> None:
    g = GraphDef()
    types, shapes = [FLOAT], [(-1, -1)]
    g.add(
        "it", "IteratorV2", output_types=types, output_shapes=shapes, shared_name="", container=""
    )
    g.add("next", "IteratorGetNext", "it", output_types=types, output_shapes=shapes)
    g.unary("y", "Relu", "next")
    graph = loader.graph(g, shapes={"next:0": (32, 10)})
    assert {t.name: t.shape for t in graph.tensors}["y:0"] == (32, 10)


def test_side_effects_keep_their_order_but_random_numbers_are_free(loader: Loader) -> None:
    g = GraphDef()
    g.input("s", dtype=STRING)
    g.vector("shape", 3)
    g.add("r0", "RandomUniform", "shape", T=INT, dtype=FLOAT, seed=1, seed2=2)
    g.add("print0", "PrintV2", "s")
    g.add("r1", "RandomUniform", "shape", T=INT, dtype=FLOAT, seed=3, seed2=4)
    g.add("print1", "PrintV2", "s")
    graph = loader.graph(g)
    # Each random operator has a generator of its own; what is printed is seen in order.
    assert waits(graph, "r1") == set()
    assert waits(graph, "print1") == {"print0"}


def test_a_function_that_writes_to_a_variable_is_a_write(loader: Loader) -> None:
    g = GraphDef()
    g.input("x", 4)
    g.variable("v", 4)
    for name, op in (("reading", "ReadVariableOp"), ("writing", "AssignVariableOp")):
        f = g.function(name, [f"handle:{int(RESOURCE)}", "value"], ["out"])
        operands = ["handle", "value"] if op == "AssignVariableOp" else ["handle"]
        f.add("access", op, *operands, dtype=FLOAT)
        f.add("same", "Identity", "value", T=FLOAT)
        f.returns(out="same:output:0")
    for i, name in enumerate(("reading", "reading", "writing", "reading", "writing")):
        kind = [RESOURCE, FLOAT]
        f_of = {"function": name}
        g.add(f"{i}", "StatefulPartitionedCall", "v", "x", Tin=kind, Tout=[FLOAT], f=f_of)
    graph = loader.graph(g)
    assert waits(graph, "1") == set()
    assert waits(graph, "2") == {"0", "1"}
    assert waits(graph, "3") == {"2"}
    assert waits(graph, "4") == {"2", "3"}
