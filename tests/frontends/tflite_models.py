"""Small models for tests: one per thing that a .tflite file can hold."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from regal.frontends.tflite import load
from tests.frontends.tflite_writer import (
    ADD_OPTIONS,
    CONCATENATION_AXIS_1,
    MUL_OPTIONS,
    RESHAPE_OPTIONS,
    G,
    M,
    O,
    T,
    call_once_options,
    if_options,
    variable_options,
    while_options,
    write_tflite,
)

if TYPE_CHECKING:
    from pathlib import Path

    from regal.graph.types import LoadedModel


def floats(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def add(a: str, b: str, out: str) -> O:
    return O(kind="ADD", inputs=(a, b), outputs=(out,), options=ADD_OPTIONS)


def mul(a: str, b: str, out: str) -> O:
    return O(kind="MUL", inputs=(a, b), outputs=(out,), options=MUL_OPTIONS)


def diamond() -> M:
    """x feeds two wide branches that shrink again; the file runs both wide ops first."""
    wide, narrow = (1, 32), (1, 4)
    ops = [
        O(kind="CONCATENATION", inputs=("x",) * 8, outputs=("a",), options=CONCATENATION_AXIS_1),
        O(kind="CONCATENATION", inputs=("x",) * 8, outputs=("b",), options=CONCATENATION_AXIS_1),
        O(kind="MEAN", inputs=("a", "axis"), outputs=("a1",), options=(27, ((0, "u8", 1),))),
        O(kind="MEAN", inputs=("b", "axis"), outputs=("b1",), options=(27, ((0, "u8", 1),))),
        add("a1", "b1", "y"),
    ]
    tensors = [
        T(name="x", shape=narrow),
        T(name="a", shape=wide),
        T(name="b", shape=wide),
        T(name="axis", shape=(1,), dtype="int32", data=struct.pack("<i", 1)),
        T(name="a1", shape=(1, 1)),
        T(name="b1", shape=(1, 1)),
        T(name="y", shape=(1, 1)),
    ]
    return M(subgraphs=[G(tensors=tensors, ops=ops, inputs=("x",), outputs=("y",))])


def chain(*, scale: float = 0.0) -> M:
    """x * w -> reshape -> + w, element-wise all the way."""
    tensors = [
        T(name="x", scale=scale),
        T(name="w", data=floats(1, 2, 3, 4)),
        T(name="shape", shape=(2,), dtype="int32", data=struct.pack("<2i", 1, 4)),
        T(name="p"),
        T(name="q"),
        T(name="y"),
    ]
    ops = [
        mul("x", "w", "p"),
        O(kind="RESHAPE", inputs=("p", "shape"), outputs=("q",), options=RESHAPE_OPTIONS),
        add("q", "w", "y"),
    ]
    return M(subgraphs=[G(tensors=tensors, ops=ops, inputs=("x",), outputs=("y",))])


def counter() -> M:
    """Two resource variables: read, add, write; a second read after the write."""
    tensors = [
        T(name="x"),
        T(name="h", shape=(), dtype="resource"),
        T(name="k", shape=(), dtype="resource"),
        T(name="old"),
        T(name="new"),
        T(name="again"),
        T(name="other"),
        T(name="y"),
    ]
    ops = [
        O(kind="CALL_ONCE", options=call_once_options(1)),
        O(kind="VAR_HANDLE", outputs=("h",), options=variable_options("h")),
        O(kind="VAR_HANDLE", outputs=("k",), options=variable_options("k")),
        O(kind="READ_VARIABLE", inputs=("h",), outputs=("old",)),
        add("old", "x", "new"),
        O(kind="ASSIGN_VARIABLE", inputs=("h", "new")),
        O(kind="READ_VARIABLE", inputs=("h",), outputs=("again",)),
        O(kind="READ_VARIABLE", inputs=("k",), outputs=("other",)),
        add("again", "other", "y"),
    ]
    init = G(
        name="init",
        tensors=[
            T(name="h", shape=(), dtype="resource"),
            T(name="k", shape=(), dtype="resource"),
            T(name="zero", data=floats(0, 0, 0, 0)),
            T(name="one", data=floats(1, 1, 1, 1)),
        ],
        ops=[
            O(kind="VAR_HANDLE", outputs=("h",), options=variable_options("h")),
            O(kind="ASSIGN_VARIABLE", inputs=("h", "zero")),
            O(kind="VAR_HANDLE", outputs=("k",), options=variable_options("k")),
            O(kind="ASSIGN_VARIABLE", inputs=("k", "one")),
        ],
    )
    main = G(tensors=tensors, ops=ops, inputs=("x",), outputs=("y",))
    return M(subgraphs=[main, init], signatures=[("serving_default", 0)])


def branches(*, idle_else: bool = False) -> M:
    """An IF whose input is read again afterwards: bodies must not overwrite it.

    `idle_else`: the other branch has no ops and returns what it got.
    """
    main = G(
        tensors=[
            T(name="c", shape=(1,), dtype="bool"),
            T(name="x"),
            T(name="z"),
            T(name="i"),
            T(name="y"),
        ],
        ops=[
            O(kind="IF", inputs=("c", "x", "z"), outputs=("i",), options=if_options(1, 2)),
            add("i", "x", "y"),
        ],
        inputs=("c", "x", "z"),
        outputs=("y",),
    )
    bodies = [
        G(name="else", tensors=[T(name="p"), T(name="q")], inputs=("p", "q"), outputs=("p",))
        if idle_else and name == "else"
        else G(
            name=name,
            tensors=[T(name="p"), T(name="q"), T(name="m"), T(name="r")],
            ops=[op("p", "q", "m"), op("m", "q", "r")],
            inputs=("p", "q"),
            outputs=("r",),
        )
        for name, op in (("then", add), ("else", mul))
    ]
    return M(subgraphs=[main, *bodies])


def loop(*, shared: bool = False) -> M:
    """WHILE i < 3: i += 1, v *= 2. `shared`: two loops run the same bodies."""
    state = [T(name="i", shape=(1,), dtype="int32"), T(name="v")]
    one = T(name="one", shape=(1,), dtype="int32", data=struct.pack("<i", 1))
    three = T(name="three", shape=(1,), dtype="int32", data=struct.pack("<i", 3))
    two = T(name="two", data=floats(2, 2, 2, 2))
    cond = G(
        name="cond",
        tensors=[*state, three, T(name="less", shape=(1,), dtype="bool")],
        ops=[O(kind="LESS", inputs=("i", "three"), outputs=("less",), options=(41, ()))],
        inputs=("i", "v"),
        outputs=("less",),
    )
    body = G(
        name="body",
        tensors=[*state, one, two, T(name="j", shape=(1,), dtype="int32"), T(name="w")],
        ops=[add("i", "one", "j"), mul("v", "two", "w")],
        inputs=("i", "v"),
        outputs=("j", "w"),
    )
    tensors = [*state, T(name="j", shape=(1,), dtype="int32"), T(name="w")]
    ops = [O(kind="WHILE", inputs=("i", "v"), outputs=("j", "w"), options=while_options(1, 2))]
    outputs = ("j", "w")
    if shared:
        tensors += [T(name="i2", shape=(1,), dtype="int32", data=struct.pack("<i", 1))]
        tensors += [T(name="j2", shape=(1,), dtype="int32"), T(name="w2")]
        ops.append(
            O(
                kind="WHILE",
                inputs=("i2", "w"),
                outputs=("j2", "w2"),
                options=while_options(1, 2),
            )
        )
        outputs = ("j", "w2")
    main = G(tensors=tensors, ops=ops, inputs=("i", "v"), outputs=outputs)
    return M(subgraphs=[main, cond, body])


def two_outputs() -> M:
    """A SPLIT whose second output nobody reads, then ops that could land on it."""
    tensors = [
        T(name="x", shape=(1, 8)),
        T(name="axis", shape=(), dtype="int32", data=struct.pack("<i", 1)),
        T(name="a"),
        T(name="unused"),
        T(name="b"),
        T(name="y"),
    ]
    ops = [
        O(
            kind="SPLIT",
            inputs=("axis", "x"),
            outputs=("a", "unused"),
            options=(35, ((0, "i32", 2),)),
        ),
        mul("a", "a", "b"),
        add("b", "a", "y"),
    ]
    return M(subgraphs=[G(tensors=tensors, ops=ops, inputs=("x",), outputs=("y",))])


def all_models() -> dict[str, M]:
    """Return every model by name."""
    return {
        "diamond": diamond(),
        "chain": chain(),
        "counter": counter(),
        "branches": branches(),
        "loop": loop(),
        "shared loop": loop(shared=True),
        "idle branch": branches(idle_else=True),
        "two outputs": two_outputs(),
    }


def loaded(tmp_path: Path, model: M, **shapes: tuple[int, ...]) -> LoadedModel:
    path = tmp_path / "model.tflite"
    path.write_bytes(write_tflite(model))
    return load(path, shapes, {})


def one_op(op: O, *tensors: T, outputs: tuple[str, ...] = ("y",)) -> M:
    inputs = tuple(t.name for t in tensors if t.name.startswith("x"))
    return M(subgraphs=[G(tensors=tensors, ops=[op], inputs=inputs, outputs=outputs)])
