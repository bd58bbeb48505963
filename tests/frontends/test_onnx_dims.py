"""Dimensions that a file leaves free: --shape, --dim, and the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from regal.errors import ModelError, UsageError
from regal.frontends.onnx import load
from tests.onnx_models import graph, model, node, save, source_of, tensor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from regal.graph.types import LoadedModel

Dimension = int | str | None


def read(
    folder: Path,
    shape: Sequence[Dimension],
    other: Sequence[Dimension] = (2,),
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    dims: Mapping[str, int] | None = None,
) -> LoadedModel:
    nodes = [node("Abs", ["x"], ["y"]), node("Abs", ["o"], ["z"])]
    proto = model(graph(nodes, [tensor("x", shape), tensor("o", other)], ["y", "z"]))
    return load(save(proto, folder / "m.onnx"), shapes or {}, dims or {})


def output_shapes(loaded: LoadedModel) -> list[tuple[int, ...]]:
    found = loaded.graph
    return [found.tensors[t].shape for t in found.outputs]


def test_a_free_first_dimension_is_a_batch_of_one(tmp_path: Path) -> None:
    loaded = read(tmp_path, ["N", 3], [4, "N"])
    assert output_shapes(loaded) == [(1, 3), (4, 1)]
    assert source_of(loaded).notes == ("planned for batch size 1 of x, o",)


def test_all_other_free_dimensions_are_listed(tmp_path: Path) -> None:
    message = (
        r"3 input dimensions are free: x\[2\] 'H', x\[3\], o\[1\] 'L'"
        " - give --shape NAME=DIMS or --dim NAME=SIZE"
    )
    with pytest.raises(ModelError, match=message):
        read(tmp_path, ["N", 3, "H", None], [1, "L"])


def test_a_dim_binds_its_name_everywhere(tmp_path: Path) -> None:
    loaded = read(tmp_path, ["N", "L"], ["L"], dims={"L": 7})
    assert output_shapes(loaded) == [(1, 7), (7,)]


def test_a_shape_also_binds_the_names_in_it(tmp_path: Path) -> None:
    loaded = read(tmp_path, ["N", "L"], ["L"], shapes={"x": (2, 5)})
    assert output_shapes(loaded) == [(2, 5), (5,)]


def test_a_shape_may_replace_sizes_of_the_file(tmp_path: Path) -> None:
    assert output_shapes(read(tmp_path, [8, 8], shapes={"x": (4, 2)}))[0] == (4, 2)


def test_sums_of_names_follow_from_their_parts(tmp_path: Path) -> None:
    loaded = read(tmp_path, [1, "past+L"], ["L"], dims={"L": 3, "past": 4})
    assert output_shapes(loaded) == [(1, 7), (3,)]


def test_nameless_dimensions_are_not_equal(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"1 input dimension is free: x\[1\] - give"):
        read(tmp_path, ["None", "None"])


@pytest.mark.parametrize(
    ("shapes", "dims", "message"),
    [
        ({"q": (1,)}, {}, "the model has no input 'q'; it has: x, o"),
        ({}, {"Q": 1}, "the model has no dimension 'Q'; it has: L, N"),
        ({"x": (1,)}, {}, "input 'x' has 2 dimensions, the shape given for it 1"),
        ({"x": (1, 2)}, {"L": 3}, "dimension 'L' of input 'x' is 2 here and 3 elsewhere"),
        ({"x": (1, -2)}, {}, "input 'x': -2 is no size of a dimension"),
        ({"x": (1, 1 << 60)}, {}, "input 'x': 1152921504606846976 is no size"),
    ],
)
def test_wrong_bindings_are_named(
    shapes: dict[str, tuple[int, ...]], dims: dict[str, int], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        read(tmp_path, ["N", "L"], [2], shapes, dims)


def test_sizes_beyond_any_memory_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        read(tmp_path, [1 << 40, 1 << 40])
