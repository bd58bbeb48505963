"""What trainers, actors and policies say to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor, nn

    from regal.learning.export import Exported
    from regal.policy.inputs import PolicyInputs

    Array = NDArray[np.generic]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """What a task is made of; small, so that it can be sent to other processes."""

    key: str  # of an entry of the data set, or of the problem of a toy
    objective: str = "memory"
    devices: str = "2"  # a preset or a number; "random:SEED": drawn
    variation: int = -1  # seed of the augmentation; -1: the graph as it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """K random choices of a policy for one task."""

    choices: Array  # (K, ...): what their log-probability is asked for, later
    actions: NDArray[np.float32]  # (K, ...): what the searches are given
    log_probs: NDArray[np.float32]  # (K, rows): of the independent parts of each choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A search to be run by an actor."""

    spec: TaskSpec
    action: NDArray[np.float32] | None  # None: the baseline
    evaluations: int
    seed: int
    wants_keys: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came of a request."""

    reward: float  # logarithm of the baseline's cost over that of the search
    cost: float
    keys: NDArray[np.float32] | None  # of the best schedule, for imitation, if they are wanted


class SearchTask(Protocol):
    """A problem and an objective: what a policy sees of it, and what searches reach."""

    @property
    def inputs(self) -> PolicyInputs:
        """Return what a policy sees."""
        ...

    @property
    def bound(self) -> float:
        """Return a cost that a good search may come near to; tasks already there teach nothing."""
        ...

    def baseline(self, evaluations: int, seed: int) -> float:
        """Return the cost that a search without a policy reaches."""
        ...

    def attempt(
        self,
        action: NDArray[np.float32] | None,
        evaluations: int,
        seed: int,
        *,
        wants_keys: bool,
    ) -> tuple[float, NDArray[np.float32] | None]:
        """Return the cost that a search reaches, and its keys where there are some to imitate."""
        ...

    def lesson(self, evaluations: int, seed: int) -> tuple[float, NDArray[np.float32] | None]:
        """Return the cost and the keys of a good plan."""
        ...


class Environment(Protocol):
    """Where actions are tried; lives in the trainer's process and, a copy, in each actor."""

    def inputs(self, spec: TaskSpec) -> PolicyInputs:
        """Return what a policy sees of a task."""
        ...

    def run(self, request: Request) -> Reply:
        """Return what a search reaches; the same for equal requests."""
        ...


class Distribution(Protocol):
    """What a policy may choose for one task."""

    def draw(self, count: int, rng: np.random.Generator) -> Drawn:
        """Return `count` random choices; two that follow each other may be opposites."""
        ...

    def log_probs(self, choices: Array) -> Tensor:
        """Return the (K, rows) log-probabilities of K choices, with gradients."""
        ...

    def entropy(self) -> Tensor:
        """Return the mean entropy of a row, with gradients."""
        ...

    def likelihood(self, keys: NDArray[np.float32]) -> Tensor:
        """Return the mean log-likelihood of good keys, with gradients."""
        ...

    def expected_action(self) -> NDArray[np.float32]:
        """Return what the exported policy does."""
        ...


class Trainable(Protocol):
    """A policy that can be trained."""

    @property
    def network(self) -> nn.Module:
        """Return the network whose weights are trained."""
        ...

    def distribution(self, inputs: PolicyInputs) -> Distribution:
        """Return what the policy may choose, with gradients."""
        ...

    def exported(self) -> Exported:
        """Return how it is exported."""
        ...
