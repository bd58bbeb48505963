"""How the policy of fusion is trained; in a child process, skipped where torch is not installed."""

from tests.learning.children import needs, run_checks

pytestmark = needs("torch", "onnxscript")


def test_an_untrained_network_is_a_search_without_a_policy() -> None:
    run_checks(
        "fusion_checks",
        "a_new_network_changes_nothing",
        "choices_come_in_opposite_pairs_and_are_scored_where_they_lie",
    )


def test_fusion_keys_with_a_known_optimum_are_learned() -> None:
    run_checks("fusion_checks", "fusion_keys_with_a_known_optimum_are_learned")


def test_an_exported_network_says_the_same_and_guides_the_search() -> None:
    run_checks("fusion_checks", "an_exported_network_says_the_same_and_guides_the_search")


def test_a_run_leaves_a_policy_and_goes_on_exactly() -> None:
    run_checks("fusion_checks", "a_run_leaves_a_policy_and_goes_on_exactly")
