"""Checks of what a policy can learn by; run in child processes, as `torch_checks`."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from regal.errors import UsageError
from regal.learning.evolution import centered_ranks, draw_moves, set_gradient
from regal.learning.learner import advantages, preference_gain
from regal.learning.metrics import Metrics
from regal.learning.network import new_network
from regal.learning.options import ALGORITHMS
from regal.learning.paper import PaperPolicy
from regal.learning.replay import Experience
from regal.learning.run import CONFIG, run_training
from regal.learning.toy import ToyEnvironment
from regal.learning.trainer import CHECKPOINT
from regal.learning.types import TaskSpec
from tests.learning.children import ignore, run_named
from tests.learning.torch_checks import (
    SMALL,
    averaging,
    moved,
    share_learned,
    toy_config,
    toy_trainer,
)

SPEC = TaskSpec(key="1")


def ranks_are_centered_and_equal_values_share_theirs() -> None:
    found = centered_ranks(np.array([3.0, 1.0, 3.0, 7.0], dtype=np.float32))
    assert np.allclose(found, [0.0, -0.5, 0.0, 0.5])
    assert centered_ranks(np.array([2.0], dtype=np.float32)).tolist() == [0.0]


def moves_come_in_opposite_pairs_and_leave_the_weights_as_they_were() -> None:
    policy = PaperPolicy(moved(new_network(SMALL, 0)))
    before = {name: value.clone() for name, value in policy.network.state_dict().items()}
    inputs = ToyEnvironment().inputs(SPEC)
    drawn = draw_moves(policy, inputs, 5, 0.5, np.random.default_rng(3))
    after = policy.network.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    seeds, signs = drawn.choices.T.tolist()
    assert signs == [1, -1, 1, -1, 1]
    assert seeds[0] == seeds[1] != seeds[2] == seeds[3] != seeds[4]
    assert len({action.tobytes() for action in drawn.actions}) == 5
    again = draw_moves(policy, inputs, 5, 0.5, np.random.default_rng(3))
    assert np.array_equal(drawn.actions, again.actions)


def the_gradient_of_moves_is_down_where_they_ranked_higher() -> None:
    """Of a line whose rewards are known: what its moves change along one direction."""
    line = nn.Linear(3, 1, bias=False)
    wanted = torch.tensor([[1.0, -2.0, 0.5]])
    rng = np.random.default_rng(0)
    experiences = []
    for _ in range(50):
        choices = [(int(seed), sign) for seed in rng.integers(1 << 40, size=8) for sign in (1, -1)]
        moves = [
            sign * np.random.default_rng(seed).standard_normal(3, dtype=np.float32)
            for seed, sign in choices
        ]
        rewards = np.array([float(move @ wanted.numpy()[0]) for move in moves])
        experiences.append(
            Experience(
                spec=SPEC,
                choices=np.array(choices),
                log_probs=np.zeros((16, 0), dtype=np.float32),
                advantages=advantages(rewards, 0.0),
            )
        )
    set_gradient(line, experiences, 0.5)
    assert line.weight.grad is not None
    likeness = nn.functional.cosine_similarity(-line.weight.grad, wanted)
    assert float(likeness) > 0.98


def the_best_choice_is_preferred_by_how_much_better_it_is() -> None:
    log_probs = torch.tensor([[-1.0, -3.0], [-4.0, -4.0], [-5.0, -1.0]], requires_grad=True)
    found = preference_gain(log_probs, torch.tensor([1.0, -2.0, 1.0]), 0.5)
    # Means are -2, -4, -3. The first is the best; the third does as well and says nothing.
    sure = np.log(1.0 / (1.0 + np.exp(-0.5 * 3.0 * 2.0)))
    assert abs(float(found) - (2.0 * np.log(0.5) + sure) / 3.0) < 1e-6
    found.backward()
    assert log_probs.grad is not None
    assert (log_probs.grad[0] > 0).all()
    assert (log_probs.grad[1] < 0).all()
    assert (log_probs.grad[2] == 0).all()


def the_toy_is_learned_from_preferences() -> None:
    """Mean of three seeds: of six, five went 74 to 99 % of the way, one 1 %."""
    assert mean_learned(3, iterations=100, algorithm="preference") > 0.4


def the_toy_is_learned_by_evolution() -> None:
    """Mean of two seeds: of four, all went 76 to 97 % of the way."""
    options = {"learning_rate": 0.1, "deviation": 1.0}
    assert mean_learned(2, iterations=60, algorithm="es", **options) > 0.5


def mean_learned(seeds: int, *, iterations: int, algorithm: str, **options: float) -> float:
    shares = []
    for seed in range(seeds):
        config = toy_config(iterations=iterations, valid_every=iterations, seed=seed)
        learner = dataclasses.replace(config.learner, algorithm=algorithm, **options)  # type: ignore[arg-type]
        shares.append(share_learned(dataclasses.replace(config, learner=learner)))
    return sum(shares) / seeds


def every_algorithm_goes_on_exactly_after_an_interruption() -> None:
    for algorithm in ALGORITHMS:
        whole, parts = (averaging(toy_config(iterations=count)) for count in (4, 2))
        learner = dataclasses.replace(whole.learner, algorithm=algorithm)
        whole, parts = (dataclasses.replace(one, learner=learner) for one in (whole, parts))
        with tempfile.TemporaryDirectory() as folder, Metrics(Path(folder)) as metrics:
            first, second, third = toy_trainer(whole), toy_trainer(parts), toy_trainer(whole, 99)
            first.run(Path(folder, "whole"), metrics, ignore)
            second.run(Path(folder, "parts"), metrics, ignore)
            third.restore(Path(folder, "parts", CHECKPOINT))
            third.run(Path(folder, "parts"), metrics, ignore)
        for part in ("network", "average"):
            one, two = (trainer.state()["learner"][part] for trainer in (first, third))
            assert all(torch.equal(one[name], two[name]) for name in one), algorithm
            start = second.state()["learner"][part]
            assert any(not torch.equal(one[name], start[name]) for name in one), algorithm


def a_checkpoint_from_before_an_option_was_added_is_resumed() -> None:
    config = toy_config(iterations=1, tasks=1, samples=2)
    with tempfile.TemporaryDirectory() as folder, Metrics(Path(folder)) as metrics:
        toy_trainer(config).run(Path(folder), metrics, ignore)
        path = Path(folder, CHECKPOINT)
        state = torch.load(path, weights_only=False)
        del state["config"]["learner"]["deviation"]
        torch.save(state, path)
        trainer = toy_trainer(config)
        trainer.restore(path)
        assert trainer.state()["counts"] == state["counts"]


def a_checkpoint_of_other_options_is_refused_and_the_folder_stays_as_it_was() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        run_training(toy_config(iterations=1), path, resume=False, report=ignore)
        before = (path / CONFIG).read_bytes()
        config = toy_config(iterations=2)
        other = dataclasses.replace(
            config, learner=dataclasses.replace(config.learner, learning_rate=1.0)
        )
        with pytest.raises(UsageError, match="other options of 'learner'"):
            run_training(other, path, resume=True, report=ignore)
        assert (path / CONFIG).read_bytes() == before
        (path / CHECKPOINT).write_bytes(b"broken")
        with pytest.raises(UsageError, match=r"checkpoint.pt' cannot be read: [^\n]+$"):
            run_training(config, path, resume=True, report=ignore)
        torch.save({"network": {}}, path / CHECKPOINT)
        with pytest.raises(UsageError, match=r"checkpoint.pt' holds no configuration of a run"):
            run_training(config, path, resume=True, report=ignore)


if __name__ == "__main__":
    run_named(globals())
