"""Graphs of jaxprs, of programs small enough to write their ops down."""

from typing import Any

import jax
import jax.numpy as jnp

from regal.frontends.jax.jaxpr import graph_of
from regal.graph.check import require_valid_graph
from regal.graph.types import ABSENT, Graph, Role


def traced(function: Any, *shapes: tuple[int, ...], roles: tuple[Role, ...] = ()) -> Graph:
    given = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    return require_valid_graph(graph_of(jax.make_jaxpr(function)(*given), "g", roles))


def kinds(graph: Graph) -> list[str]:
    return [op.kind for op in graph.ops]


def test_a_product_knows_its_roles_and_operations() -> None:
    graph = traced(lambda w, x: x @ w, (5, 6), (4, 5), roles=(Role.PARAMETER,))
    assert kinds(graph) == ["dot_general"]
    assert [t.role for t in graph.tensors] == [Role.PARAMETER, Role.INPUT, Role.OUTPUT]
    assert graph.inputs == (1,)
    assert graph.ops[0].flops == 2 * 24 * 5


def test_literals_are_absent_inputs() -> None:
    graph = traced(lambda x: x * 2.0, (3,))
    assert graph.ops[0].inputs == (0, ABSENT)


def test_calls_are_inlined() -> None:
    graph = traced(lambda x: jax.nn.relu(jax.jit(jnp.sin)(x)), (3,))
    assert kinds(graph) == ["sin", "max"]


def test_reshapes_share_the_memory_of_their_operand() -> None:
    graph = traced(lambda x: jnp.sin(jnp.cos(x).reshape(6)), (2, 3))
    assert kinds(graph) == ["cos", "reshape", "sin"]
    made, seen, last = (graph.tensors[op.outputs[0]] for op in graph.ops)
    assert made.storage == seen.storage != last.storage


def test_what_no_result_needs_is_left_out() -> None:
    def function(x: Any) -> Any:
        jnp.tanh(x)
        return jnp.sin(x)

    assert kinds(traced(function, (3,))) == ["sin"]


def test_a_scan_is_one_op_that_counts_every_trip() -> None:
    def function(w: Any, xs: Any) -> Any:
        return jax.lax.scan(lambda c, x: (jnp.tanh(c @ w + x), None), xs[0], xs)[0]

    graph = traced(function, (8, 8), (5, 4, 8))
    (scan,) = [op for op in graph.ops if op.kind == "scan"]
    body = scan.subgraphs[0]
    assert kinds(body) == ["dot_general", "add", "tanh"]
    assert {t.role for t in body.tensors[:3]} == {Role.CAPTURED}
    assert scan.attributes["trip_count"] == 5
    assert scan.flops == 5 * (2 * 32 * 8 + 32 + 32)


def test_the_branches_of_a_condition_are_bodies() -> None:
    graph = traced(lambda x: jax.lax.cond(x.sum() > 0, jnp.sin, lambda a: a, x), (3,))
    (cond,) = [op for op in graph.ops if op.kind == "cond"]
    assert sorted(len(body.ops) for body in cond.subgraphs) == [0, 1]


def test_gradients_are_read_like_any_program() -> None:
    graph = traced(jax.grad(lambda x: (jnp.sin(x) ** 2).sum()), (3,))
    assert "cos" in kinds(graph)
    assert [graph.tensors[t].shape for t in graph.outputs] == [(3,)]


def test_convolutions_count_the_axes_of_their_own_layout() -> None:
    def function(x: Any, w: Any) -> Any:
        layout = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=layout)

    graph = traced(function, (1, 8, 8, 3), (3, 3, 3, 4))
    assert graph.ops[0].flops == 2 * 144 * 27


def test_random_keys_take_the_bytes_of_their_words() -> None:
    graph = traced(lambda x: x + jax.random.uniform(jax.random.key(0), x.shape), (3,))
    key = graph.tensors[graph.ops[kinds(graph).index("random_seed")].outputs[0]]
    assert (key.dtype, key.bytes) == ("uint32", 8)
