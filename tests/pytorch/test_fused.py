"""Objectives "time" and "balanced": groups, layouts, kernels, and what keeps results right."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pytorch.run_child import needs_torch, results_of

pytestmark = needs_torch

NOT_FINITE = "result 0 differs where one of the two is not finite, or all of the original is zero"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    cache = str(tmp_path_factory.mktemp("cache"))
    return results_of("tests.pytorch.fused_checks", cache) | results_of(
        "tests.pytorch.run_checks", cache
    )


@pytest.mark.parametrize("objective", ["time", "balanced"])
def test_outputs_are_those_of_eager_code_and_have_their_strides(
    found: dict[str, Any], objective: str
) -> None:
    assert found["inference"][objective] == ""
    assert found["inference"][f"{objective} strides"]


def test_gradients_and_buffers_are_those_of_eager_code_with_its_random_numbers(
    found: dict[str, Any],
) -> None:
    assert found["training"]["gradients"] == ""
    assert found["training"]["buffers"] == ""
    assert found["training"]["gradient strides"]


def test_a_group_written_by_hand_computes_the_same_compiled_or_not(found: dict[str, Any]) -> None:
    assert found["by hand"]["node by node"] == ""
    assert found["by hand"]["compiled"] == ""


def test_a_view_that_leaves_a_group_is_made_again_behind_it(found: dict[str, Any]) -> None:
    # What leaves: relu, which the view shows, and the sum; the view is none of them.
    assert found["by hand"]["outputs"] == 2


def test_outputs_of_a_plan_with_other_layouts_have_the_promised_strides(
    found: dict[str, Any],
) -> None:
    assert found["by hand"]["conversions"]
    assert found["by hand"]["strides"]


def test_results_that_share_memory_share_it_in_other_layouts_too(found: dict[str, Any]) -> None:
    assert found["shared"] == [0, 0, 0, 3]


def test_attention_and_random_numbers_get_the_strides_of_the_trace(found: dict[str, Any]) -> None:
    # One copy makes the product channels last, the other one what is read as traced again.
    assert found["bound to strides"] == ["2 copies", "2 copies"]


def test_random_numbers_like_an_image_are_drawn_in_its_own_layout(found: dict[str, Any]) -> None:
    assert found["drawn"]


def test_a_thread_that_calls_during_the_first_run_waits_for_it(found: dict[str, Any]) -> None:
    assert found["threads"] == ["", ""]


def test_normalization_under_autocast_is_planned(found: dict[str, Any]) -> None:
    assert found["under autocast"]["unfused"] == []
    assert found["under autocast"]["off"] < 5e-2


def test_fake_statistics_have_the_dtypes_of_real_ones(found: dict[str, Any]) -> None:
    assert len(found["statistics"]) >= 16
    assert all(found["statistics"].values())


def test_a_graph_whose_kernels_yield_other_dtypes_than_foreseen_is_not_planned(
    found: dict[str, Any],
) -> None:
    assert found["other dtype"] == (
        "node 'native_group_norm_backward_default' yields torch.bfloat16, not torch.float32"
    )


def test_what_follows_a_kernel_of_other_strides_runs_with_those_that_were_foreseen(
    found: dict[str, Any],
) -> None:
    other = found["other strides"]
    assert other["noted"] == {other["first"]: [[1, 4]]}
    assert other["right"]


def test_a_group_whose_code_yields_other_strides_is_none(found: dict[str, Any]) -> None:
    assert found["other group"] == "a group yields strides (128, 16, 4, 1), not (128, 1, 32, 8)"


def test_a_difference_is_said_where_double_precision_cannot_say_who_is_right(
    found: dict[str, Any],
) -> None:
    assert found["no exact result"] == (
        "result 1 differs by 1.0e-02 of its largest element, 8.9e-03 in the mean"
    )


def test_what_is_random_mutated_sorted_or_a_convolution_stays_alone(found: dict[str, Any]) -> None:
    classes = {name: row[0] for name, row in found["classes"].items()}
    assert classes == {
        "convolution": "opaque",
        "copy_": "opaque",
        "mul": "opaque",  # it reads what copy_ wrote
        "add": "pointwise",
        "view": "view",
        "rand_like": "opaque",
        "_softmax": "reduction",
        "topk": "opaque",
    }


def test_only_images_have_two_layouts(found: dict[str, Any]) -> None:
    rules = {name: row[1] for name, row in found["classes"].items()}
    assert rules["convolution"] == "sensitive"
    assert rules["add"] == "agnostic"
    assert rules["_softmax"] == "fixed"
    assert rules["mul"] == "fixed"


@pytest.mark.parametrize(
    ("ways", "runs"), [("wrong", ""), ("wrong right", "right"), ("far wrong right", "right")]
)
def test_a_wrong_graph_never_runs_twice_and_leaves_nothing_behind(
    found: dict[str, Any], ways: str, runs: str
) -> None:
    # Results, what it writes, random numbers; then who is said to run.
    assert found["fallbacks"][ways] == [True, runs]


@pytest.mark.parametrize(
    ("refused", "forward", "backward"),
    [
        ("0", "channels last", "channels last"),
        ("1", "joint", "channels last"),
        ("2", "as traced", "channels last"),
        ("3", "as traced", "joint"),
    ],
)
def test_where_a_way_is_refused_the_next_runs_and_the_backward_graph_follows(
    found: dict[str, Any], refused: str, forward: str, backward: str
) -> None:
    row = found["refused"][refused]
    assert row["gradients"] == ""
    assert row["buffers"] == ""
    assert row["chosen"] == [forward, backward]
    assert not row["as traced"]


def test_exact_results_are_doubles_throughout(found: dict[str, Any]) -> None:
    assert found["doubled"] == [True, True]


def test_gradients_of_16_bit_numbers_are_compared_with_exact_ones(found: dict[str, Any]) -> None:
    assert found["autocast"]["chosen"] == ["joint", "joint"]
    assert found["autocast"]["gradients"] < 0.02


def test_sizes_that_come_back_get_a_plan_of_their_own(found: dict[str, Any]) -> None:
    # Size 4 has one from the start; once sizes are free it is one of them.
    assert found["sizes"]["planned"] == [2, 4]
    assert found["sizes"]["differences"] == [""] * 8  # random numbers, too


def test_no_more_than_eight_sizes_get_plans(found: dict[str, Any]) -> None:
    anything = [f"any {n}" for n in range(9)]
    assert found["many sizes"] == [*anything, *([*map(str, range(8)), "any 8"] * 2)]


def test_an_error_of_a_mean_counts_as_a_share_of_the_spread_around_it(
    found: dict[str, Any],
) -> None:
    means = found["means"]
    assert means["at"] == {"1": 2, "4": 5}  # JSON has text for names
    for name in ("batch", "running"):
        right, wrong, nan = means[name]
        assert right == ""
        assert "differs" in wrong
        assert "differs" in nan
    assert all("differs" in each for each in means["no mean"])


def test_an_error_of_a_sum_counts_as_a_share_of_the_length_of_its_terms(
    found: dict[str, Any],
) -> None:
    sums = found["sums"]
    assert sums["lengths"].keys() == {"1", "2"}
    assert max(sums["lengths"].values()) < 1e-9
    for name in ("bias", "sum"):
        right, wrong, nan = sums[name]
        assert right == ""
        assert "differs" in wrong
        assert "differs" in nan
    assert "differs" in sums["no sum"][1]
    right, wrong = sums["terms of zeros"]
    assert right == ""
    assert "differs" in wrong
    assert sums["counts"] == "result 0 differs in 100.00% of its elements"


def test_without_a_compiler_or_with_free_sizes_results_are_right_and_a_log_says_why(
    found: dict[str, Any],
) -> None:
    assert found["fallbacks"]["no compiler"] == ""
    assert found["fallbacks"]["symbols"] == ""
    assert found["fallbacks"]["said"] == [True, True]
    assert found["fallbacks"]["lines"] == [
        "the broken graph gives up 'joint': RuntimeError: no kernel",
        "the broken graph runs as traced",
    ]


def test_inputs_without_elements_are_drawn_too(found: dict[str, Any]) -> None:
    assert found["fallbacks"]["empty"] == [[0, 1]]


@pytest.mark.parametrize(
    "change", ["first", "one element through .data", "all signs", "other memory", "every time"]
)
def test_blocked_weights_follow_every_change_of_the_plain_ones(
    found: dict[str, Any], change: str
) -> None:
    assert found["weights"][change]


def test_blocked_weights_are_kept_until_they_change_all_the_time(found: dict[str, Any]) -> None:
    assert found["weights"]["kept"]
    assert found["weights"]["given up"]


@pytest.mark.parametrize("pair", ["equal", "rounding", "same nan", "noise beside the exact result"])
def test_results_agree_that_differ_by_rounding(found: dict[str, Any], pair: str) -> None:
    assert found["agreements"][pair] == ""


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ("one percent", "result 0 differs by 1.0e-02 of its largest element, 5.6e-03 in the mean"),
        ("one nan", NOT_FINITE),
        ("zero", NOT_FINITE),
        ("other dtype", "result 0 has another shape or dtype"),
        ("fewer", "1 results instead of 2"),
        ("noise", "result 0 differs by 2.0e+00 of its largest element, 1.3e+00 in the mean"),
    ],
)
def test_results_that_differ_by_more_are_named(found: dict[str, Any], pair: str, said: str) -> None:
    assert found["agreements"][pair] == said


def test_what_is_far_from_the_exact_result_is_wrong_however_small_the_original(
    found: dict[str, Any],
) -> None:
    assert found["agreements"]["wrong beside the exact result"] != ""
    assert found["agreements"]["more noise"] != ""
    assert found["agreements"]["exactly zero"] != ""
    assert found["agreements"]["nothing but rounding, then not a number"] != ""


def test_saved_positions_may_differ_as_often_as_those_of_the_original_differ_from_the_exact_ones(
    found: dict[str, Any],
) -> None:
    assert found["agreements"]["saved ties"] == ""
    for wrong in ("saved wrong", "saved without a witness"):
        assert found["agreements"][wrong] == "result 0 differs in 100.00% of its elements"
    assert (
        found["agreements"]["ties for the caller"] == "result 0 differs in 12.50% of its elements"
    )


def test_times_are_read_back_without_lines_that_are_broken(found: dict[str, Any]) -> None:
    assert found["remembered"] == {"known": {"a": 5, "b": 7}, "none": True}


def test_the_searched_plan_both_layouts_and_the_trace_are_measured(found: dict[str, Any]) -> None:
    assert found["plan"]["ways"] == ["as traced", "channels last", "contiguous", "joint"]
    assert found["plan"]["chosen"]
    assert found["plan"]["better"]
