"""Evolution strategies: what is tried are moved weights of the network, not choices of bins."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from regal.learning.types import Drawn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from regal.learning.replay import Experience
    from regal.learning.types import Trainable
    from regal.policy.inputs import PolicyInputs

SEEDS = 1 << 62


def draw_moves(
    policy: Trainable,
    inputs: PolicyInputs,
    count: int,
    deviation: float,
    rng: np.random.Generator,
) -> Drawn:
    """Return `count` actions of the policy with moved weights, in pairs of opposite moves.

    A choice is the seed of a move and its sign; the weights are as before when it returns.

    Args:
        policy: whose network is moved.
        inputs: of the task.
        count: how many actions.
        deviation: of a move, as a share of the size of weights; see `_deviations`.
        rng: the source of seeds.

    Cost: `count` runs of the network.
    """
    parameters = list(policy.network.parameters())
    center = [parameter.detach().clone() for parameter in parameters]
    deviations = [deviation * one for one in _deviations(parameters)]
    actions: list[NDArray[np.float32]] = []
    choices: list[tuple[int, int]] = []
    with torch.no_grad():
        while len(actions) < count:
            seed = int(rng.integers(SEEDS))
            moves = [d * n for d, n in zip(deviations, _normals(seed, parameters), strict=True)]
            for sign in (1, -1):
                for parameter, start, move in zip(parameters, center, moves, strict=True):
                    parameter.copy_(start).add_(move, alpha=sign)
                actions.append(policy.distribution(inputs).expected_action())
                choices.append((seed, sign))
        for parameter, start in zip(parameters, center, strict=True):
            parameter.copy_(start)
    return Drawn(
        choices=np.array(choices[:count], dtype=np.int64),
        actions=np.stack(actions[:count]),
        log_probs=np.zeros((count, 0), dtype=np.float32),
    )


def set_gradient(network: nn.Module, experiences: Sequence[Experience], deviation: float) -> None:
    """Set the gradients of the weights to what the moves and their ranks say; down is better.

    Only the ranks among siblings count, from -1/2 to 1/2: neither the scale of a task's rewards
    nor single outliers do.

    Source: Salimans et al. 2017, arXiv:1703.03864 (evolution strategies).
    Cost: two normal numbers per weight and pair of siblings.
    """
    parameters = list(network.parameters())
    totals = [torch.zeros_like(parameter) for parameter in parameters]
    count = 0
    for experience in experiences:
        shares: dict[int, float] = defaultdict(float)
        for (seed, sign), rank in zip(
            experience.choices.tolist(), centered_ranks(experience.advantages), strict=True
        ):
            shares[seed] += sign * float(rank)
            count += 1
        for seed, share in shares.items():
            for total, normals in zip(totals, _normals(seed, parameters), strict=True):
                total.add_(normals, alpha=share)
    deviations = _deviations(parameters)
    for parameter, total, one in zip(parameters, totals, deviations, strict=True):
        parameter.grad = total / (-count * deviation * one)


def centered_ranks(values: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the ranks of values from -1/2 to 1/2; equal values share the mean of theirs."""
    if len(values) < 2:
        return np.zeros(len(values))
    below = (values[:, None] > values[None, :]).sum(axis=1)
    equal = (values[:, None] == values[None, :]).sum(axis=1)
    ranks = below + 0.5 * (equal - 1)
    return np.asarray(ranks / (len(values) - 1) - 0.5)


def _deviations(parameters: Sequence[nn.Parameter]) -> list[float]:
    """Return the usual size of the weights of each layer: 1 over the root of what it reads."""
    return [float(parameter.shape[-1]) ** -0.5 for parameter in parameters]


def _normals(seed: int, parameters: Sequence[nn.Parameter]) -> list[Tensor]:
    """Return the standard normal numbers of a seed, in the shapes of the parameters."""
    sizes = [parameter.numel() for parameter in parameters]
    flat = np.random.default_rng(seed).standard_normal(sum(sizes), dtype=np.float32)
    parts = torch.from_numpy(flat).split(sizes)
    return [part.view_as(parameter) for part, parameter in zip(parts, parameters, strict=True)]
