""".pt2 files as models on the command line."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pytorch.run_child import needs_torch, results_of

pytestmark = needs_torch

BATCH, WIDE = 8, 64
WIDE_BYTES = 4 * BATCH * WIDE


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return results_of("tests.pytorch.files", str(tmp_path_factory.mktemp("programs")))


def test_a_program_is_read_with_the_sizes_of_its_example(found: dict[str, Any]) -> None:
    assert found["inspect"]["code"] == 0
    assert found["inspect"]["framework"] == "torch"
    # Four branches side by side are what the file's own order keeps.
    assert found["inspect"]["peak_bytes"] >= 4 * WIDE_BYTES


@pytest.mark.parametrize("way", ["larger", "shaped"])
def test_free_sizes_are_bound_by_symbol_or_by_input(found: dict[str, Any], way: str) -> None:
    assert found[way]["peak_bytes"] >= 1.9 * found["inspect"]["peak_bytes"]


def test_the_planned_order_is_written_verified_and_takes_less(found: dict[str, Any]) -> None:
    result = found["optimize"]
    assert result["code"] == 0
    assert result["verified"]["outputs_equal"]
    assert result["verified"]["invocations"] == 20
    before, after = result["verified"]["before"], result["verified"]["after"]
    assert after["peak_bytes"] < 0.6 * before["peak_bytes"]
    assert found["nodes"] == {"same": True, "moved": True}


def test_a_plan_file_is_checked_and_applied(found: dict[str, Any]) -> None:
    assert found["check"]["code"] == 0
    assert found["check"]["peak_bytes"] == found["optimize"]["after"]["peak_bytes"]
    assert found["apply"]["code"] == 0
    assert found["verify"]["code"] == 0
    assert found["verify"]["verified"]["outputs_equal"]


def test_a_program_that_computes_something_else_is_found_out(found: dict[str, Any]) -> None:
    assert found["wrong"]["code"] == 1
    assert found["wrong"]["verified"]["detail"].startswith("output 0 of run 0 differs")


def test_what_cannot_be_read_is_refused_in_one_line(found: dict[str, Any]) -> None:
    assert found["unknown"]["code"] == 2
    assert "the program has no dimension 'nothing'; it has: s" in found["unknown"]["error"]
    assert "the program was exported for 1 to 64" in found["too large"]["error"]
    assert found["junk"]["error"].endswith("is no archive: expected a file of torch.export.save")
    foreign, inconsistent = (found[name]["error"] for name in ("foreign", "inconsistent"))
    assert "cannot read" in foreign
    assert "failed to resolve torch.ops.mine.relu.default" in foreign
    assert "Parameter second.bias is not in the state dict" in inconsistent
    assert "\n" not in foreign + inconsistent


def test_a_program_that_takes_numbers_is_run_with_those_of_its_example(
    found: dict[str, Any],
) -> None:
    assert found["numbers"]["code"] == 0
    assert found["numbers"]["verified"]["outputs_equal"]
