"""How learned columns are trained; in a child process, skipped where torch is not installed."""

from tests.learning.children import needs, run_checks

pytestmark = needs("torch", "onnxscript")


def test_an_untrained_network_is_the_plain_heuristic_for_time_and_for_memory() -> None:
    run_checks(
        "columns_checks",
        "a_new_network_says_the_plain_heuristic",
        "time_and_memory_have_heads_of_their_own",
        "the_baseline_of_a_task_is_the_plain_rule",
    )


def test_choices_lie_around_the_rule_and_equal_devices_have_one_name() -> None:
    run_checks(
        "columns_checks",
        "choices_are_pairs_around_the_rule_and_scored_where_they_lie",
        "with_two_devices_nothing_is_tried_of_the_arch",
        "the_first_op_is_drawn_to_the_first_of_equal_devices",
    )


def test_columns_that_pay_are_learned() -> None:
    run_checks("columns_checks", "columns_that_pay_are_learned_from_choices")


def test_an_exported_network_says_the_same_and_guides_the_search() -> None:
    run_checks("columns_checks", "an_exported_network_says_the_same_and_guides_the_search")


def test_a_run_leaves_a_policy_and_goes_on_exactly() -> None:
    run_checks("columns_checks", "a_run_leaves_a_policy_and_goes_on_exactly")
