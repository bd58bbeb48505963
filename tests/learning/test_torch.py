"""Networks, learners and trainers; in child processes, skipped where torch is not installed."""

from tests.learning.children import needs, run_checks

pytestmark = needs("torch", "onnxscript")

# Torch takes seconds to load: checks of a kind share a process.
NETWORK = (
    "a_new_network_proposes_the_prior",
    "proposals_follow_the_ops_when_they_are_renumbered",
    "a_network_that_is_blind_to_the_graph_sees_no_edges",
    "one_network_says_other_things_for_time_than_for_memory",
)
CHOICES = (
    "bins_are_drawn_with_their_probabilities",
    "the_entropy_is_that_of_the_bins",
    "the_likelihood_of_keys_is_that_of_the_mixture",
)
LEARNER = (
    "an_advantage_leaves_its_own_reward_out",
    "importance_weights_are_cut_and_replay_makes_good_choices_likelier",
    "the_toy_is_learned_from_replay_with_fewer_searches",
)
ALGORITHMS = (
    "ranks_are_centered_and_equal_values_share_theirs",
    "moves_come_in_opposite_pairs_and_leave_the_weights_as_they_were",
    "the_gradient_of_moves_is_down_where_they_ranked_higher",
    "the_best_choice_is_preferred_by_how_much_better_it_is",
    "the_toy_is_learned_from_preferences",
    "the_toy_is_learned_by_evolution",
)
RESUMED = (
    "every_algorithm_goes_on_exactly_after_an_interruption",
    "a_checkpoint_from_before_an_option_was_added_is_resumed",
    "a_checkpoint_of_other_options_is_refused_and_the_folder_stays_as_it_was",
)
TRAINER = (
    "a_run_that_was_interrupted_goes_on_exactly",
    "validation_that_stops_to_improve_ends_the_run",
)


def test_the_network_sees_the_graph_and_not_the_numbers_of_ops() -> None:
    run_checks("torch_checks", *NETWORK)


def test_choices_have_the_probabilities_that_they_are_scored_with() -> None:
    run_checks("torch_checks", *CHOICES)


def test_the_toy_is_learned_and_replay_needs_fewer_searches() -> None:
    run_checks("torch_checks", *LEARNER)


def test_preferences_and_evolution_learn_the_toy() -> None:
    run_checks("algorithm_checks", *ALGORITHMS)


def test_every_algorithm_resumes_exactly() -> None:
    run_checks("algorithm_checks", *RESUMED)


def test_training_resumes_exactly_and_stops_early() -> None:
    run_checks("torch_checks", *TRAINER)


def test_an_exported_network_gives_equal_outputs_for_all_sizes() -> None:
    run_checks("torch_checks", "an_exported_network_gives_equal_outputs_for_all_sizes")


def test_actors_of_all_kinds_reply_the_same() -> None:
    run_checks("torch_checks", "actors_of_all_kinds_reply_the_same")


def test_a_training_run_on_graphs_leaves_a_policy_that_runs() -> None:
    run_checks("torch_checks", "a_training_run_on_graphs_leaves_a_policy_that_runs")


@needs("ray")
def test_ray_actors_on_two_nodes_reply_as_one_process_does() -> None:
    run_checks("torch_checks", "ray_actors_on_two_nodes_reply_as_one_process_does")
