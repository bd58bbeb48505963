"""The paper's policy as trainers see it: independent bins for each gene."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from regal.learning.actions import (
    actions_of,
    bins_at,
    entropy_of,
    expected_of,
    key_log_likelihood,
    log_probs_of,
    rows_of,
)
from regal.learning.exploration import paired_uniforms
from regal.learning.export import paper_export
from regal.learning.network import PaperNetwork, graph_tensors
from regal.learning.types import Drawn

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from torch import Tensor

    from regal.learning.export import Exported
    from regal.learning.types import Array
    from regal.policy.inputs import PolicyInputs

    Pair = tuple[NDArray[np.float64], NDArray[np.float64]]

PARTS = 3  # of a choice: mean, spread, elite bias


class PaperPolicy:
    """A `Trainable`: the network, and how its logits become choices."""

    def __init__(self, network: PaperNetwork, *, correlation: float = 0.0) -> None:
        """Wrap a network.

        Args:
            network: whose weights are trained.
            correlation: of the choices of alike ops when they are drawn; see `exploration`.
        """
        self._network, self._correlation = network, correlation

    @property
    def network(self) -> PaperNetwork:
        """Return the network whose weights are trained."""
        return self._network

    def distribution(self, inputs: PolicyInputs) -> BinDistribution:
        """Return what the policy may choose, with gradients."""
        logits = rows_of(self._network(graph_tensors(inputs))[1])
        return BinDistribution(logits, partial(paired_uniforms, inputs, PARTS, self._correlation))

    def exported(self) -> Exported:
        """Return how it is exported."""
        return paper_export(self._network)


class BinDistribution:
    """A `Distribution`: bins of mean, spread and elite bias, independent for each row."""

    def __init__(self, logits: Tensor, draw_pair: Callable[[np.random.Generator], Pair]) -> None:
        """Make the distribution of (rows, LOGITS); `draw_pair` returns opposite uniform draws."""
        self._logits, self._draw_pair = logits, draw_pair

    def draw(self, count: int, rng: np.random.Generator) -> Drawn:
        """Return random choices, in pairs of opposites."""
        with torch.no_grad():
            bins: list[NDArray[np.uint8]] = []
            while len(bins) < count:
                bins += [bins_at(self._logits, draws) for draws in self._draw_pair(rng)]
            choices = np.stack(bins[:count])
            log_probs = self.log_probs(choices).numpy()
        return Drawn(choices=choices, actions=actions_of(choices), log_probs=log_probs)

    def log_probs(self, choices: Array) -> Tensor:
        """Return the (K, rows) log-probabilities of K choices, with gradients."""
        return log_probs_of(self._logits, torch.as_tensor(choices).long())

    @cached_property
    def _entropy(self) -> Tensor:
        return entropy_of(self._logits)

    def entropy(self) -> Tensor:
        """Return the mean entropy of a row, with gradients."""
        return self._entropy

    def likelihood(self, keys: NDArray[np.float32]) -> Tensor:
        """Return the mean log-likelihood of good keys, with gradients; uniform keys have 0."""
        return key_log_likelihood(self._logits, keys)

    def expected_action(self) -> NDArray[np.float32]:
        """Return what the exported policy does: the averages of each row's bins."""
        return expected_of(self._logits)
