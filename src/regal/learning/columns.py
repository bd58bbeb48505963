"""Learned columns as trainers see them: a graph network, and Gaussian choices around its rule."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from regal import _native
from regal.learning.columns_environment import action_of
from regal.learning.exploration import EQUAL_DEVICES, REFERENCE_POSITION
from regal.learning.export import Exported
from regal.learning.network import TIME_WEIGHT, Body, graph_tensors
from regal.learning.types import Drawn
from regal.policy.canonical import CANONICAL_HEADS, canonical_size
from regal.policy.columns import HEADS, LearnedRule
from regal.policy.model import COLUMNS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from regal.learning.network import GraphTensors
    from regal.learning.options import ColumnOptions, NetworkOptions
    from regal.learning.types import Array
    from regal.policy.inputs import PolicyInputs

MOST = 2.0  # size of a column's values; the curve of the keys ends at 3
NARROW = 24  # numbers between the embedding of the graph and the weights of features
MOST_FEATURES = 8  # that one direction of exploration depends on
# Places of the heads that tell devices apart.
SLOPE, ARCH = CANONICAL_HEADS.index("affinity_slope"), CANONICAL_HEADS.index("affinity_arch")
GENE_FACTOR = 2.0  # weight genes vary this much more than weights of features


class ColumnNetwork(nn.Module):
    """Message passing; columns of ops from their embeddings, means from that of the graph.

    One set of heads for objectives in which time counts, one for memory alone: they have other
    decoders. All 0 at first: the plain heuristic.
    """

    def __init__(self, options: NetworkOptions, seed: int) -> None:
        """Make a network with the random weights of `seed`."""
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.body = Body(options)
            hidden, pooled = options.hidden, self.body.pooled_size
            self.time_columns = _zero_headed(hidden, hidden, HEADS)
            self.memory_columns = _zero_headed(hidden, hidden, HEADS)
            self.time_means = _zero_headed(pooled, NARROW, canonical_size())
            self.memory_means = _zero_headed(pooled, NARROW, canonical_size())

    def forward(self, graph: GraphTensors) -> tuple[Tensor, Tensor]:
        """Return the (n, HEADS) columns and the (canonical_size(),) means."""
        embedded = self.body(graph)
        is_timed = (graph.context[TIME_WEIGHT] > 0).float()
        columns = is_timed * self.time_columns(embedded.nodes)
        columns = columns + (1.0 - is_timed) * self.memory_columns(embedded.nodes)
        means = is_timed * self.time_means(embedded.graph)
        means = means + (1.0 - is_timed) * self.memory_means(embedded.graph)
        return MOST * torch.tanh(columns / MOST), means


class ColumnPolicy:
    """A `Trainable`: the network, and what is tried around its rule."""

    def __init__(self, network: ColumnNetwork, options: ColumnOptions) -> None:
        self._network, self._options = network, options

    @property
    def network(self) -> ColumnNetwork:
        """Return the network whose weights are trained."""
        return self._network

    def distribution(self, inputs: PolicyInputs) -> RuleDistribution:
        """Return what the policy may choose, with gradients."""
        columns, means = self._network(graph_tensors(inputs))
        return RuleDistribution(columns, means, inputs, self._options)

    def exported(self) -> Exported:
        """Return how it is exported."""

        def forward(graph: GraphTensors) -> tuple[Tensor, ...]:
            return tuple(self._network(graph))

        return Exported(kind=COLUMNS, outputs=("columns", "means"), forward=forward)


class RuleDistribution:
    """A `Distribution`: Gaussians around the means, and around the columns in few directions.

    Independent noise of ops averages out; so columns vary along random functions of the features,
    orthogonal over the ops. What is scored is where a choice lies along these directions.
    A choice is a row: the means, the coordinates of the columns head by head, and the seed of the
    directions.
    """

    def __init__(
        self, columns: Tensor, means: Tensor, inputs: PolicyInputs, options: ColumnOptions
    ) -> None:
        self._columns, self._means = columns, means
        self._inputs, self._options = inputs, options
        self._count = min(options.directions, inputs.n_ops)
        width = len(_native.device_feature_names())
        is_tried = np.ones(HEADS)
        is_tried[ARCH] = len(inputs.devices) > 2  # else it is 0, and what is tried of it noise
        along = options.column_deviation / math.sqrt(self._count)
        self._deviation = np.concatenate(  # (rows,)
            (
                np.repeat(options.weight_deviation * is_tried, width),
                np.full(_native.GENE_WEIGHTS, GENE_FACTOR * options.weight_deviation),
                np.repeat(along * is_tried, self._count),
            )
        )
        begin = len(means) + SLOPE * self._count
        self._slope_means = slice(SLOPE * width, (SLOPE + 1) * width)
        self._slope_moves = slice(begin, begin + self._count)

    def draw(self, count: int, rng: np.random.Generator) -> Drawn:
        """Return random choices, in pairs of opposites."""
        seed = int(rng.integers(1 << 24))  # exact as float32
        with torch.no_grad():
            center = self._centers(seed).numpy().astype(np.float64)
        half = rng.normal(size=((count + 1) // 2, len(center))) * self._deviation
        noise = np.stack((half, -half), axis=1).reshape(-1, len(center))[:count]
        directions = _directions(self._inputs, self._count, seed)
        self._rename(noise, directions)
        choices = np.concatenate((center + noise, np.full((count, 1), seed)), axis=1)
        choices = choices.astype(np.float32)
        size = len(self._means)
        columns, means = (tensor.detach().numpy() for tensor in (self._columns, self._means))
        moves = noise[:, size:].reshape(count, HEADS, self._count)
        actions = [
            action_of(
                LearnedRule(
                    columns=(columns + directions @ move.T).astype(np.float32),
                    means=(means + of_means).astype(np.float32),
                )
            )
            for move, of_means in zip(moves, noise[:, :size], strict=True)
        ]
        with torch.no_grad():
            log_probs = self.log_probs(choices).numpy()
        return Drawn(choices=choices, actions=np.stack(actions), log_probs=log_probs)

    def log_probs(self, choices: Array) -> Tensor:
        """Return the (K, rows) log-probabilities of K choices, up to constants, with gradients.

        Cost: O(n * directions^2) for the directions.
        """
        center = self._centers(int(choices[0, -1]))
        tried = torch.as_tensor(choices[:, :-1])
        unit = np.where(self._deviation > 0, self._deviation, np.inf)
        scaled = (tried - center) / torch.as_tensor(unit, dtype=torch.float32)
        return -0.5 * scaled.square()

    def entropy(self) -> Tensor:
        """Return 0: the deviations are not learned."""
        return torch.zeros(())

    def likelihood(self, keys: NDArray[np.float32]) -> Tensor:
        """Return 0: a rule is not imitated."""
        del keys
        return torch.zeros(())

    def expected_action(self) -> NDArray[np.float32]:
        """Return the rule itself."""
        columns, means = (tensor.detach().numpy() for tensor in (self._columns, self._means))
        return action_of(LearnedRule(columns=columns, means=means))

    def _centers(self, seed: int) -> Tensor:
        """Return the (rows,) means, and coordinates of the columns, with gradients."""
        directions = torch.as_tensor(_directions(self._inputs, self._count, seed))
        along = directions.float().T @ self._columns / self._inputs.n_ops  # (directions, HEADS)
        return torch.cat((self._means, along.T.reshape(-1)))

    def _rename(self, noise: NDArray[np.float64], directions: NDArray[np.float64]) -> None:
        """Turn the noise of slopes so that the first op is drawn to the first of equal devices.

        Plans that differ by the names of equal devices are one plan: what is learned of one name
        would cancel what is learned of the other.
        """
        if self._inputs.context[EQUAL_DEVICES] == 0:
            return
        first = int(np.argmin(self._inputs.nodes[:, REFERENCE_POSITION]))
        width = len(_native.device_feature_names())
        features = self._inputs.nodes[first, :width] / math.sqrt(width)
        means = self._means[self._slope_means].detach().numpy()
        now = float(self._columns[first, SLOPE].detach()) + float(means @ features)
        moved = noise[:, self._slope_means] @ features
        moved += noise[:, self._slope_moves] @ directions[first]
        is_turned = now + moved > 0
        for part in (self._slope_means, self._slope_moves):
            noise[is_turned, part] *= -1.0


def _directions(inputs: PolicyInputs, count: int, seed: int) -> NDArray[np.float64]:
    """Return (n, count) random functions of the features, orthogonal, of mean square 1 over ops."""
    rng = np.random.default_rng(seed)
    nodes = inputs.nodes.astype(np.float64)
    mixed = np.zeros((nodes.shape[1], count))
    for column in mixed.T:
        chosen = rng.choice(len(column), int(rng.integers(1, MOST_FEATURES + 1)), replace=False)
        column[chosen] = rng.normal(size=len(chosen))
    values = np.tanh(nodes @ mixed + rng.normal(size=count))
    # Where ops are too alike for so many functions, the rest of them is noise.
    values += 1e-3 * rng.normal(size=values.shape)
    orthogonal, _ = np.linalg.qr(values)
    return np.asarray(orthogonal * math.sqrt(inputs.n_ops))


def _zero_headed(n_in: int, hidden: int, n_out: int) -> nn.Sequential:
    last = nn.Linear(hidden, n_out)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(n_in, hidden), nn.SiLU(), last)
