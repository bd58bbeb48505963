"""What may be written in place in TFLite models, and what may lie inside something else."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from tests.frontends.tflite_models import chain, loaded, mul, one_op
from tests.frontends.tflite_writer import O, T

if TYPE_CHECKING:
    from pathlib import Path


def test_element_wise_ops_may_overwrite_an_input_of_the_same_shape(tmp_path: Path) -> None:
    graph = loaded(tmp_path, chain()).graph
    assert graph.ops[0].in_place == ((0, 0), (1, 0))  # the weight is ruled out by its role
    assert graph.ops[1].in_place == ((0, 0),)


def test_a_broadcast_input_is_never_overwritten(tmp_path: Path) -> None:
    model = one_op(
        mul("x1", "x2", "y"),
        T(name="x1", shape=(2, 2)),
        T(name="x2", shape=(1, 2)),
        T(name="y", shape=(2, 2)),
    )
    assert loaded(tmp_path, model).graph.ops[0].in_place == ((0, 0),)


def test_equal_bytes_do_not_make_broadcasting_safe(tmp_path: Path) -> None:
    # Both inputs have as many bytes as the output, but each is read several times.
    model = one_op(
        mul("x1", "x2", "y"),
        T(name="x1", shape=(4, 1), dtype="int32"),
        T(name="x2", shape=(1, 4), dtype="int32"),
        T(name="y", shape=(4, 4), dtype="int8"),
    )
    assert loaded(tmp_path, model).graph.ops[0].in_place == ()


def test_a_dequantize_that_widens_its_elements_is_not_in_place(tmp_path: Path) -> None:
    op = O(kind="DEQUANTIZE", inputs=("x",), outputs=("y",))
    model = one_op(op, T(name="x", dtype="int8"), T(name="y"))
    assert loaded(tmp_path, model).graph.ops[0].in_place == ()


@pytest.mark.parametrize("kind", ["SOFTMAX", "CONV_2D", "TRANSPOSE", "CUMSUM", "SELECT_V2"])
def test_kinds_that_nobody_read_are_not_in_place(tmp_path: Path, kind: str) -> None:
    op = O(kind=kind, inputs=("x",), outputs=("y",))
    assert loaded(tmp_path, one_op(op, T(name="x"), T(name="y"))).graph.ops[0].in_place == ()


def test_parts_of_a_contiguous_concatenation_may_lie_inside_it(tmp_path: Path) -> None:
    op = O(kind="CONCATENATION", inputs=("x1", "x2"), outputs=("y",), options=(10, ()))
    parts = (T(name="x1", shape=(2, 4)), T(name="x2", shape=(3, 4)))
    whole = T(name="y", shape=(5, 4))
    graph = loaded(tmp_path, one_op(op, *parts, whole)).graph
    assert graph.ops[0].sub_buffers == ((0, 2, 0), (1, 2, 32))


def test_parts_that_interleave_do_not_lie_inside_the_whole(tmp_path: Path) -> None:
    op = O(
        kind="CONCATENATION",
        inputs=("x1", "x2"),
        outputs=("y",),
        options=(10, ((0, "i32", 1),)),
    )
    parts = (T(name="x1", shape=(2, 4)), T(name="x2", shape=(2, 4)))
    graph = loaded(tmp_path, one_op(op, *parts, T(name="y", shape=(2, 8)))).graph
    assert graph.ops[0].sub_buffers == ()


def test_a_concatenation_that_rescales_is_no_copy(tmp_path: Path) -> None:
    op = O(kind="CONCATENATION", inputs=("x1", "x2"), outputs=("y",), options=(10, ()))
    parts = (
        T(name="x1", shape=(16,), dtype="int8", scale=0.5),
        T(name="x2", shape=(16,), dtype="int8", scale=0.25),
    )
    whole = T(name="y", shape=(32,), dtype="int8", scale=0.5)
    assert loaded(tmp_path, one_op(op, *parts, whole)).graph.ops[0].sub_buffers == ()


def integers(name: str, *values: int) -> T:
    data = struct.pack(f"<{len(values)}i", *values)
    return T(name=name, shape=(len(values),), dtype="int32", data=data)


@pytest.mark.parametrize(
    ("begin", "size", "expected"),
    [
        ((1, 0), (1, 4), ((4, 0, 16),)),  # a row
        ((0, 0), (2, 4), ((4, 0, 0),)),  # two rows
        ((1, 0), (2, -1), ((4, 0, 16),)),  # -1: to the end
        ((0, 1), (1, 2), ((4, 0, 4),)),  # a piece of one row
        ((0, 1), (2, 2), ()),  # pieces of two rows: not contiguous
        ((2, 0), (2, 4), ()),  # beyond the end
    ],
)
def test_contiguous_slices_may_lie_inside_their_source(
    tmp_path: Path, begin: tuple[int, ...], size: tuple[int, ...], expected: object
) -> None:
    op = O(kind="SLICE", inputs=("x", "b", "s"), outputs=("y",))
    shape = tuple(4 if n == -1 else n for n in size)
    model = one_op(
        op,
        T(name="x", shape=(3, 4)),
        integers("b", *begin),
        integers("s", *size),
        T(name="u", shape=()),
        T(name="y", shape=shape),
    )
    assert loaded(tmp_path, model).graph.ops[0].sub_buffers == expected
