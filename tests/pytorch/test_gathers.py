"""Gathers are read where they stand, and enlarged images have the gradients of eager code."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pytorch.run_child import needs_torch, results_of

pytestmark = needs_torch


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return results_of("tests.pytorch.gather_checks", str(tmp_path_factory.mktemp("cache")))


def test_a_product_with_a_vector_is_a_sum_and_one_with_a_matrix_is_none(
    found: dict[str, Any],
) -> None:
    classes = found["gathers"]["classes"]
    assert classes["index"] == "pointwise"
    assert (classes["bmm"], classes["bmm_1"]) == ("reduction", "opaque")


def test_a_gather_joins_its_positions_and_its_readers_but_not_what_it_reads_from(
    found: dict[str, Any],
) -> None:
    pairs = found["gathers"]["pairs"]
    assert "sub-index" in pairs
    assert "index-bmm" in pairs
    assert "mul-index" not in pairs


@pytest.mark.parametrize("what", ["inference", "gradients", "free sizes"])
def test_gathered_matrices_and_enlarged_images_are_those_of_eager_code(
    found: dict[str, Any], what: str
) -> None:
    assert found["compiled"][what] == ""


def test_what_a_group_gathers_from_an_image_channels_last_is_channels_last(
    found: dict[str, Any],
) -> None:
    laid_out = found["laid out"]
    assert (laid_out["node by node"], laid_out["compiled"]) == ("", "")
    assert laid_out["channels last"] == [True, True]
    assert laid_out["groups"] == 1


@pytest.mark.parametrize("scale", ["half", "quarter"])
def test_the_gradient_of_an_enlarged_image_has_its_own_operator(
    found: dict[str, Any], scale: str
) -> None:
    assert found["resizing"][scale] == [1, ""]


@pytest.mark.parametrize(
    "which",
    ["shifted", "not added", "positions given", "counted from the right", "another device"],
)
def test_other_scatters_stay(found: dict[str, Any], which: str) -> None:
    assert found["resizing"][which] == [0, ""]
