"""Experience replay: what was tried, by which policy, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from regal.learning.types import Array, TaskSpec

LEAST_PRIORITY = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Experience:
    """K searches for one task: choices, who made them, and how good they were."""

    spec: TaskSpec
    choices: Array  # (K, ...)
    log_probs: NDArray[np.float32]  # (K, rows): of the policy that made the choices
    advantages: NDArray[np.float32]  # (K,): rewards over those of siblings, in deviations

    @property
    def first_priority(self) -> float:
        """Return how much there seems to be to learn: the mean size of the advantages."""
        return float(np.abs(self.advantages).mean())


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """A batch of a replay buffer."""

    places: NDArray[np.int64]  # of the experiences, for `set_priorities`
    experiences: Sequence[Experience]
    weights: NDArray[np.float64]  # undo the bias of the sampling; the largest is 1


class ReplayBuffer:
    """A ring of experiences, drawn by priority.

    Source: Schaul et al. 2016 (prioritized experience replay), proportional variant.
    """

    def __init__(self, capacity: int, *, exponent: float, correction: float) -> None:
        """Make an empty buffer.

        Args:
            capacity: most experiences; then the oldest are overwritten.
            exponent: 0: all alike; 1: in proportion to priority.
            correction: how much of the bias the weights undo, 0 to 1.
        """
        self._capacity, self._exponent, self._correction = capacity, exponent, correction
        self._ring: list[Experience] = []
        self._priorities = np.zeros(capacity)
        self._next = 0

    def __len__(self) -> int:
        return len(self._ring)

    def add(self, experience: Experience) -> None:
        """Store an experience, over the oldest one where the buffer is full."""
        place = self._next
        if place == len(self._ring):
            self._ring.append(experience)
        else:
            self._ring[place] = experience
        self._priorities[place] = max(experience.first_priority, LEAST_PRIORITY)
        self._next = (place + 1) % self._capacity

    def sample(self, count: int, rng: np.random.Generator) -> Sampled:
        """Return `count` experiences, drawn with replacement in proportion to priority.

        Cost: O(stored).
        """
        shares = self._priorities[: len(self._ring)] ** self._exponent
        shares /= shares.sum()
        places = rng.choice(len(self._ring), size=count, p=shares)
        weights = (len(self._ring) * shares[places]) ** -self._correction
        return Sampled(
            places=places,
            experiences=[self._ring[place] for place in places],
            weights=weights / weights.max(),
        )

    def set_priorities(self, places: NDArray[np.int64], priorities: Sequence[float]) -> None:
        """Set what was learned about how much there is to learn."""
        self._priorities[places] = np.maximum(priorities, LEAST_PRIORITY)

    def state(self) -> dict[str, Any]:
        """Return everything that `restore` needs."""
        return {"ring": list(self._ring), "priorities": self._priorities.copy(), "next": self._next}

    def restore(self, state: dict[str, Any]) -> None:
        """Become the buffer that the state was taken of."""
        self._ring = list(state["ring"])
        self._priorities = state["priorities"].copy()
        self._next = state["next"]
