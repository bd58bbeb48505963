"""Other kernels compute what PyTorch's own do, and are asked only where they can."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pytorch.run_child import needs_torch, results_of

pytestmark = needs_torch


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return results_of("tests.pytorch.kernel_checks")


def test_every_kernel_of_a_convolution_and_its_gradients_agrees_with_pytorch(
    found: dict[str, Any],
) -> None:
    assert {each for each in found["convolutions"].values() if each} == set()
    by = {key.rpartition(": ")[2] for key in found["convolutions"]}
    assert by == {"aten", "onednn", "split", "product"}


@pytest.mark.parametrize(
    ("convolution", "kernels"),
    [
        ("plain", ["aten", "onednn", "product", "packed"]),
        ("strided", ["aten", "onednn", "packed"]),
        ("grouped", ["aten", "onednn", "packed"]),
        ("wide", ["aten", "onednn", "packed"]),
    ],
)
def test_only_convolutions_of_single_pixels_are_products(
    found: dict[str, Any], convolution: str, kernels: list[str]
) -> None:
    assert found["choices"][convolution] == kernels


def test_normalization_in_training_takes_either_layout_since_it_reads_before_anything_is_written(
    found: dict[str, Any],
) -> None:
    assert found["normalization"] == {
        "in groups": True,
        "either layout": True,
        "later reader alone": True,
    }


def test_random_numbers_are_drawn_in_one_layout(found: dict[str, Any]) -> None:
    assert found["dropout"]
