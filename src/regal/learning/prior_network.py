"""The network of the default method's policy: arms, modes of the weight prior, and its step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from regal.policy.canonical import canonical_size
from regal.policy.inputs import CONTEXT
from regal.search.devices.guide import ARMS, PROGRESS, STRATEGY

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

HIDDEN = 48
STATE = len(CONTEXT) + len(PROGRESS)
PARTS = ("time", "memory")  # decoders: with and without running time in the objective
ALWAYS = 1e3  # added to the logits of means that are always tried
# Arms before any training: the evolution strategy, then the rules, then the other searches.
FIRST_BIAS: Mapping[str, float] = {
    "strategy": 4.0,
    "dfs": 0.6,
    "file-order": 0.5,
    "greedy-memory": 0.4,
    "bfs": -1.0,
    "spread": -1.0,
    "local": -0.6,
    "anneal": -0.6,
    "genetic": -1.2,
}
FIRST_TIRES = -4.0  # the strategy, per log(1 + evaluations) / 6 that it has spent


class Said(NamedTuple):
    """What the network says of B states."""

    arms: Tensor  # (B, ARMS) logits
    modes: dict[str, Tensor]  # part -> (B, K) logits
    log_step: Tensor  # (B, 1)


class PriorNetwork(nn.Module):
    """Two layers over the state, and a straight line beside them."""

    def __init__(
        self, means: Mapping[str, NDArray[np.float32]], always: Mapping[str, int], seed: int
    ) -> None:
        """Make an untrained network.

        Args:
            means: of each part, (K, canonical_size()).
            always: of each part, how many of the first means are always tried.
            seed: of the random weights.
        """
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            # Apart from each other: what arms learn later must not move the modes.
            self.trunk, self.mode_trunk = _trunk(), _trunk()
        self.always = dict(always)
        self.arms = _zero_linear(HIDDEN, len(ARMS))
        self.straight = _zero_linear(STATE, len(ARMS))
        self.modes = nn.ModuleDict({p: _zero_linear(HIDDEN, len(means[p])) for p in PARTS})
        self.step = _zero_linear(HIDDEN, 1)
        nn.init.constant_(self.step.bias, math.log(0.4))
        for part in PARTS:
            rows = torch.as_tensor(means[part], dtype=torch.float32)
            if rows.shape[1] != canonical_size():
                raise ValueError(f"{part}: means have {rows.shape[1]} numbers")
            self.register_buffer(f"{part}_means", rows)
            bonus = torch.zeros(len(rows))
            bonus[: always[part]] = ALWAYS
            self.register_buffer(f"{part}_bonus", bonus)
        with torch.no_grad():
            for i, arm in enumerate(ARMS):
                self.straight.bias[i] = FIRST_BIAS[arm]
            spent = len(CONTEXT) + PROGRESS.index(f"{STRATEGY}_spent")
            self.straight.weight[ARMS.index(STRATEGY), spent] = FIRST_TIRES

    def means(self, part: str) -> NDArray[np.float32]:
        """Return the (K, canonical_size()) means of a part."""
        values: NDArray[np.float32] = getattr(self, f"{part}_means").numpy()
        return values

    def forward(self, state: Tensor) -> Said:
        """Return what it says of (B, STATE) states."""
        seen, of_modes = self.trunk(state), self.mode_trunk(state)
        return Said(
            arms=self.arms(seen) + self.straight(state),
            modes={p: self.modes[p](of_modes) + getattr(self, f"{p}_bonus") for p in PARTS},
            log_step=self.step(of_modes),
        )


def _trunk() -> nn.Sequential:
    return nn.Sequential(nn.Linear(STATE, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh())


def _zero_linear(n_in: int, n_out: int) -> nn.Linear:
    layer = nn.Linear(n_in, n_out)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
