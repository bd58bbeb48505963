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
OBJECTIVES = ("time", "memory", "balanced")  # each has arms of its own
SPENT = len(CONTEXT) + PROGRESS.index("spent")
LONGEST = 2.0  # of SPENT: beyond any run
ALWAYS = 1e3  # added to the logits of means that are always tried
# Of the context: what is asked for, which a graph-blind network sees, too.
ASKED = ("time_weight", "is_balanced")
# What arms are taken to be worth before any training, in percent of the value: the strategy from
# its modes, then plain; then the rules; then the other searches.
FIRST_WORTH: Mapping[str, float] = {
    "strategy": 0.8,
    "modes": 0.9,
    "dfs": 0.12,
    "file-order": 0.08,
    "greedy-memory": 0.15,
    "bfs": 0.02,
    "spread": 0.02,
    "local": -0.1,
    "anneal": -0.1,
    "genetic": -0.2,
}
FIRST_TIRES = -0.8  # the strategy, per log(1 + evaluations) / 6 that it has spent


class Said(NamedTuple):
    """What the network says of B states."""

    arms: Tensor  # (B, ARMS) logits
    modes: dict[str, Tensor]  # part -> (B, K) logits
    log_step: Tensor  # (B, 1)


class Arms(nn.Module):
    """What arms are worth, in percent: two layers over the state, a straight line beside them."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = _trunk()
        self.bent = _zero_linear(HIDDEN, len(ARMS))
        self.straight = _zero_linear(STATE, len(ARMS))
        self.register_buffer("first_bias", torch.tensor([FIRST_WORTH[arm] for arm in ARMS]))
        first = torch.zeros(len(ARMS), STATE)
        spent = len(CONTEXT) + PROGRESS.index(f"{STRATEGY}_spent")
        first[ARMS.index(STRATEGY), spent] = FIRST_TIRES
        self.register_buffer("first_weight", first)

    def line(self) -> tuple[Tensor, Tensor]:
        """Return the (ARMS, STATE) and (ARMS,) of the straight line: learned, and before that."""
        weight: Tensor = self.straight.weight + self.get_buffer("first_weight")
        return weight, self.straight.bias + self.get_buffer("first_bias")

    def forward(self, state: Tensor) -> Tensor:
        """Return the (B, ARMS) worth at (B, STATE) states."""
        worth: Tensor = self.bent(self.trunk(state)) + nn.functional.linear(state, *self.line())
        return worth


class PriorNetwork(nn.Module):
    """Arms for each objective, and modes for each decoder; they share nothing."""

    def __init__(
        self,
        means: Mapping[str, NDArray[np.float32]],
        always: Mapping[str, int],
        seed: int,
        *,
        sees_graph: bool = True,
    ) -> None:
        """Make an untrained network.

        Args:
            means: of each part, (K, canonical_size()).
            always: of each part, how many of the first means are always tried.
            seed: of the random weights.
            sees_graph: False: of the context, only what is asked for.
        """
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            # Apart from each other: what arms learn later must not move the modes.
            self.mode_trunk = _trunk()
            self.arms = nn.ModuleDict({name: Arms() for name in OBJECTIVES})
        self.always, self.sees_graph = dict(always), sees_graph
        self.modes = nn.ModuleDict({p: _zero_linear(HIDDEN, len(means[p])) for p in PARTS})
        self.step = _zero_linear(HIDDEN, 1)
        nn.init.constant_(self.step.bias, math.log(0.4))
        seen = torch.ones(STATE)
        if not sees_graph:
            seen[: len(CONTEXT)] = torch.tensor([float(name in ASKED) for name in CONTEXT])
        self.register_buffer("seen", seen)
        # See `until_of`; at first, always.
        self.register_buffer("guides", torch.ones(len(OBJECTIVES)))
        for part in PARTS:
            rows = torch.as_tensor(means[part], dtype=torch.float32)
            if rows.shape[1] != canonical_size():
                raise ValueError(f"{part}: means have {rows.shape[1]} numbers")
            self.register_buffer(f"{part}_means", rows)
            bonus = torch.zeros(len(rows))
            bonus[: always[part]] = ALWAYS
            self.register_buffer(f"{part}_bonus", bonus)

    def means(self, part: str) -> NDArray[np.float32]:
        """Return the (K, canonical_size()) means of a part."""
        values: NDArray[np.float32] = getattr(self, f"{part}_means").numpy()
        return values

    def forward(self, state: Tensor) -> Said:
        """Return what it says of (B, STATE) states."""
        seen = state * self.get_buffer("seen")
        of_modes = self.mode_trunk(seen)
        shares = self.shares(state)
        arms = [self.arms[name](seen) * shares[:, i : i + 1] for i, name in enumerate(OBJECTIVES)]
        return Said(
            arms=torch.stack(arms).sum(dim=0),
            modes={p: self.modes[p](of_modes) + self.get_buffer(f"{p}_bonus") for p in PARTS},
            log_step=self.step(of_modes),
        )

    def shares(self, state: Tensor) -> Tensor:
        """Return (B, OBJECTIVES): 1 where an objective is asked for, and guided so far."""
        counts_time = torch.sign(state[:, CONTEXT.index("time_weight")])
        is_balanced = state[:, CONTEXT.index("is_balanced")]
        asked = torch.stack((counts_time - is_balanced, 1.0 - counts_time, is_balanced), dim=1)
        is_guided = state[:, SPENT, None] < LONGEST * self.get_buffer("guides")
        return asked * is_guided


def with_fixed_arms(network: PriorNetwork) -> PriorNetwork:
    """Return a network of equal modes whose arms have learned nothing: a control."""
    means = {part: network.means(part) for part in PARTS}
    fixed = PriorNetwork(means, network.always, 0, sees_graph=network.sees_graph)
    weights = fixed.state_dict()
    modes = {k: v for k, v in network.state_dict().items() if not k.startswith(("arms.", "guides"))}
    fixed.load_state_dict({**weights, **modes})
    return fixed


def until_of(evaluations: float) -> float:
    """Return the number of `guides` that leaves a search as it is after so many evaluations."""
    return min(math.log1p(evaluations) / 6.0 / LONGEST, 1.0)


def objective_of_state(state: NDArray[np.float32]) -> int:
    """Return the place in OBJECTIVES of what a (STATE,) state asks for; see `shares`."""
    if state[CONTEXT.index("is_balanced")]:
        return OBJECTIVES.index("balanced")
    return OBJECTIVES.index("time" if state[CONTEXT.index("time_weight")] > 0 else "memory")


def _trunk() -> nn.Sequential:
    return nn.Sequential(nn.Linear(STATE, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh())


def _zero_linear(n_in: int, n_out: int) -> nn.Linear:
    layer = nn.Linear(n_in, n_out)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
