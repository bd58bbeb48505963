"""The replay buffer: a ring, drawn by priority, restored exactly."""

import numpy as np
import pytest

from regal.learning.replay import Experience, ReplayBuffer
from regal.learning.types import TaskSpec


def experience(name: int, advantage: float = 1.0) -> Experience:
    return Experience(
        spec=TaskSpec(key=str(name)),
        choices=np.zeros((2, 1)),
        log_probs=np.zeros((2, 1), dtype=np.float32),
        advantages=np.array([advantage, -advantage], dtype=np.float32),
    )


def keys(buffer: ReplayBuffer, draws: int = 4000, seed: int = 0) -> dict[str, int]:
    sampled = buffer.sample(draws, np.random.default_rng(seed)).experiences
    names = [one.spec.key for one in sampled]
    return {name: names.count(name) for name in sorted(set(names))}


def test_the_oldest_experience_is_overwritten_first() -> None:
    buffer = ReplayBuffer(3, exponent=0.0, correction=0.0)
    for i in range(5):
        buffer.add(experience(i))
    assert len(buffer) == 3
    assert set(keys(buffer)) == {"2", "3", "4"}


def test_experiences_are_drawn_in_proportion_to_their_priority() -> None:
    buffer = ReplayBuffer(4, exponent=1.0, correction=0.0)
    for i, advantage in enumerate((1.0, 3.0, 0.0)):
        buffer.add(experience(i, advantage))
    counts = keys(buffer)
    assert counts["1"] / counts["0"] == pytest.approx(3.0, rel=0.15)
    assert counts.get("2", 0) < 10  # nothing to learn: nearly never drawn


def test_without_exponent_all_are_alike() -> None:
    buffer = ReplayBuffer(4, exponent=0.0, correction=0.0)
    for i, advantage in enumerate((1.0, 100.0)):
        buffer.add(experience(i, advantage))
    counts = keys(buffer)
    assert counts["1"] / counts["0"] == pytest.approx(1.0, abs=0.15)


def test_full_correction_undoes_the_bias_of_the_sampling() -> None:
    buffer = ReplayBuffer(4, exponent=1.0, correction=1.0)
    for i, advantage in enumerate((1.0, 4.0)):
        buffer.add(experience(i, advantage))
    batch = buffer.sample(4000, np.random.default_rng(0))
    names = np.array([one.spec.key for one in batch.experiences])
    assert batch.weights.max() == 1.0
    first, second = (batch.weights[names == name].sum() for name in ("0", "1"))
    assert first / second == pytest.approx(1.0, abs=0.15)


def test_priorities_that_were_learned_count() -> None:
    buffer = ReplayBuffer(4, exponent=1.0, correction=0.0)
    for i in range(2):
        buffer.add(experience(i))
    buffer.set_priorities(np.array([0, 1]), [1.0, 9.0])
    assert keys(buffer)["1"] > 6 * keys(buffer)["0"]


def test_a_restored_buffer_draws_the_same() -> None:
    buffer = ReplayBuffer(3, exponent=0.7, correction=0.4)
    for i in range(4):
        buffer.add(experience(i, 1.0 + i))
    other = ReplayBuffer(3, exponent=0.7, correction=0.4)
    other.restore(buffer.state())
    buffer.add(experience(9))  # the state is a copy
    other.add(experience(9))
    assert keys(other, seed=3) == keys(buffer, seed=3)
