"""State and side effects keep their order, whatever tensors say."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from regal.errors import PlanError
from regal.frontends.tflite import load
from regal.graph.memory import dependencies
from regal.plan.check import require_valid_plan
from tests.backends.simple_plans import graph_plan, plan_in_order, random_order
from tests.frontends.tflite_models import add, counter, floats, loop
from tests.frontends.tflite_writer import G, M, O, T, variable_options, while_options, write_tflite

if TYPE_CHECKING:
    from pathlib import Path

    from regal.graph.types import Graph

# Positions of the ops in the counter model.
CALL_ONCE, H, K, READ, ADD, WRITE, READ_AGAIN, READ_OTHER, SUM = range(9)


def loaded(tmp_path: Path, model: M) -> Graph:
    path = tmp_path / "model.tflite"
    path.write_bytes(write_tflite(model))
    return load(path, {}, {}).graph


def must_precede(graph: Graph) -> set[tuple[int, int]]:
    """Return all (earlier, later) pairs of ops, also through others."""
    n = len(graph.ops)
    reach = np.zeros((n, n), dtype=bool)
    for earlier, later in dependencies(graph):
        reach[earlier, later] = True
    for k in range(n):
        reach |= np.outer(reach[:, k], reach[k, :])
    return {(int(a), int(b)) for a, b in zip(*np.nonzero(reach), strict=True)}


def test_reads_and_writes_of_one_variable_keep_their_order(tmp_path: Path) -> None:
    before = must_precede(loaded(tmp_path, counter()))
    assert {(READ, WRITE), (WRITE, READ_AGAIN)} <= before


def test_call_once_precedes_every_access(tmp_path: Path) -> None:
    before = must_precede(loaded(tmp_path, counter()))
    assert all((CALL_ONCE, op) in before for op in (READ, WRITE, READ_AGAIN, READ_OTHER))


def test_call_once_precedes_even_what_its_body_does_not_touch(tmp_path: Path) -> None:
    main, init = counter().subgraphs
    only_h = replace(init, ops=init.ops[:2])
    before = must_precede(loaded(tmp_path, M(subgraphs=[main, only_h])))
    assert (CALL_ONCE, READ_OTHER) in before


def test_different_variables_do_not_wait_for_each_other(tmp_path: Path) -> None:
    before = must_precede(loaded(tmp_path, counter()))
    assert (WRITE, READ_OTHER) not in before
    assert (READ_OTHER, WRITE) not in before


def test_handles_are_free_to_move(tmp_path: Path) -> None:
    graph = loaded(tmp_path, counter())
    assert graph.ops[H].control_inputs == ()
    assert graph.ops[K].control_inputs == ()


def test_the_checker_rejects_every_planted_wrong_state_order(tmp_path: Path) -> None:
    graph = loaded(tmp_path, counter())
    plan = graph_plan(graph)
    # What the state needs, by hand: reads between the writes they see.
    rules = {
        (CALL_ONCE, READ),
        (CALL_ONCE, WRITE),
        (CALL_ONCE, READ_AGAIN),
        (CALL_ONCE, READ_OTHER),
        (READ, WRITE),
        (WRITE, READ_AGAIN),
    }
    no_control = replace(graph, ops=tuple(replace(op, control_inputs=()) for op in graph.ops))
    broken: set[tuple[int, int]] = set()
    for seed in range(200):
        order = random_order(no_control, seed)
        step = {op: i for i, op in enumerate(order)}
        wrong = {(a, b) for a, b in rules if step[a] > step[b]}
        if not wrong:
            require_valid_plan(graph, plan_in_order(graph, order))
            continue
        broken |= wrong
        with pytest.raises(PlanError, match="runs before op"):
            require_valid_plan(graph, replace(plan, order=tuple(order)))
    # Reading before writing is in the tensors too (read, add, write): it cannot be planted.
    assert broken == rules - {(READ, WRITE)}


def test_variable_tensors_are_written_by_every_op_that_reads_them(tmp_path: Path) -> None:
    state = T(name="s", is_variable=True)
    graph = G(
        tensors=[T(name="x"), state, T(name="a"), T(name="b"), T(name="y")],
        ops=[add("x", "s", "a"), add("x", "s", "b"), add("a", "b", "y")],
        inputs=("x",),
        outputs=("y",),
    )
    assert loaded(tmp_path, M(subgraphs=[graph])).ops[1].control_inputs == (0,)


def test_unknown_custom_ops_keep_their_order_among_themselves(tmp_path: Path) -> None:
    def custom(name: str, out: str) -> O:
        return O(kind="CUSTOM", custom=name, inputs=("x",), outputs=(out,))

    graph = G(
        tensors=[T(name=n) for n in "xabcd"],
        ops=[custom("Mine", "a"), add("x", "x", "b"), custom("Yours", "c"), custom("FlexSub", "d")],
        inputs=("x",),
        outputs=("a", "b", "c", "d"),
    )
    ops = loaded(tmp_path, M(subgraphs=[graph])).ops
    assert [op.control_inputs for op in ops] == [(), (), (0,), ()]


def test_nothing_crosses_an_op_that_may_end_the_run(tmp_path: Path) -> None:
    graph = G(
        tensors=[T(name=n) for n in "xabc"],
        ops=[
            add("x", "x", "a"),
            O(kind="CUSTOM", custom="CIRCULAR_BUFFER", inputs=("x",), outputs=("b",)),
            add("x", "x", "c"),
        ],
        inputs=("x",),
        outputs=("a", "b", "c"),
    )
    assert {(0, 1), (1, 2)} <= must_precede(loaded(tmp_path, M(subgraphs=[graph])))


def test_a_body_that_touches_a_variable_makes_its_op_touch_it(tmp_path: Path) -> None:
    main, cond, body = loop().subgraphs
    writes = replace(
        body,
        tensors=[*body.tensors, T(name="h", shape=(), dtype="resource")],
        ops=[
            *body.ops,
            O(kind="VAR_HANDLE", outputs=("h",), options=variable_options("v")),
            O(kind="ASSIGN_VARIABLE", inputs=("h", "w")),
        ],
    )
    reads = replace(
        main,
        tensors=[*main.tensors, T(name="h", shape=(), dtype="resource"), T(name="r")],
        ops=[
            O(kind="VAR_HANDLE", outputs=("h",), options=variable_options("v")),
            O(kind="READ_VARIABLE", inputs=("h",), outputs=("r",)),
            *main.ops,
        ],
        outputs=(*main.outputs, "r"),
    )
    graph = loaded(tmp_path, M(subgraphs=[reads, cond, writes]))
    assert graph.ops[2].control_inputs == (1,)


def test_a_handle_passed_into_a_body_is_the_same_variable_there(tmp_path: Path) -> None:
    handle = T(name="h", shape=(), dtype="resource")
    other = T(name="k", shape=(), dtype="resource")
    flag = T(name="c", shape=(1,), dtype="bool")
    body = G(
        name="body",
        tensors=[handle, flag, T(name="one", data=floats(1, 1, 1, 1))],
        ops=[O(kind="ASSIGN_VARIABLE", inputs=("h", "one"))],
        inputs=("c", "h"),
        outputs=("c", "h"),
    )
    cond = G(name="cond", tensors=[flag, handle], inputs=("c", "h"), outputs=("c",))
    main = G(
        tensors=[
            flag,
            handle,
            other,
            T(name="d", shape=(1,), dtype="bool"),
            T(name="r"),
            T(name="s"),
            T(name="g", shape=(), dtype="resource"),
        ],
        ops=[
            O(kind="VAR_HANDLE", outputs=("h",), options=variable_options("h")),
            O(kind="VAR_HANDLE", outputs=("k",), options=variable_options("k")),
            O(kind="READ_VARIABLE", inputs=("h",), outputs=("r",)),
            O(kind="READ_VARIABLE", inputs=("k",), outputs=("s",)),
            O(kind="WHILE", inputs=("c", "h"), outputs=("d", "g"), options=while_options(1, 2)),
        ],
        inputs=("c",),
        outputs=("d", "r", "s"),
    )
    graph = loaded(tmp_path, M(subgraphs=[main, cond, body]))
    assert graph.ops[4].control_inputs == (2,)


def test_files_that_list_control_dependencies_keep_their_order(tmp_path: Path) -> None:
    model = replace(counter(), metadata=[("model_control_dependencies", b"\x01")])
    ops = loaded(tmp_path, model).ops
    assert [op.control_inputs for op in ops] == [(), *((i,) for i in range(len(ops) - 1))]
