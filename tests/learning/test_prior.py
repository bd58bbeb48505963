"""How the default method's policy is trained; in a child process, skipped without torch."""

from tests.learning.children import needs, run_checks

pytestmark = needs("torch")


def test_modes_cover_the_problems_and_suit_the_state() -> None:
    run_checks(
        "prior_checks",
        "modes_cover_the_problems_one_by_one",
        "the_mode_that_suits_a_state_comes_first",
    )


def test_arms_that_pay_are_chosen_more_often() -> None:
    run_checks(
        "prior_checks",
        "an_arm_that_pays_is_chosen_more_often",
        "a_run_remembers_what_was_open_and_chosen",
    )


def test_what_arms_are_worth_is_learned_from_detours() -> None:
    run_checks(
        "prior_checks",
        "a_detour_is_worth_what_the_same_search_gains_by_it",
        "what_arms_are_worth_is_learned_for_one_objective_and_leaves_the_others",
    )


def test_each_objective_keeps_its_best_arms_and_a_blind_network_sees_no_graph() -> None:
    run_checks(
        "prior_checks",
        "objectives_keep_their_best_arms_and_those_without_a_gain_none",
        "arms_guide_only_as_long_as_that_is_better",
        "a_blind_network_sees_what_happens_but_not_the_graph",
    )


def test_an_exported_policy_says_the_same_and_may_change_nothing() -> None:
    run_checks(
        "prior_checks",
        "an_exported_policy_says_the_same",
        "a_network_that_guides_nothing_leaves_the_search_as_it_is",
    )


def test_a_training_run_leaves_a_policy_and_resumes_exactly() -> None:
    run_checks(
        "prior_checks",
        "a_run_leaves_a_policy_and_goes_on_exactly",
        "what_its_training_does_not_do_is_refused",
    )
