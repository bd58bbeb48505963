"""Means of the weight prior, learned from what long searches on training graphs end at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from regal.learning.prior_network import PriorNetwork

LATE = 0.2  # weight of the plain mean beside that of what beats the best rule
TRIED = 8  # of a ranking, this many of the first modes count
SAMPLES = 16
FALL = 0.02  # of the first logits, from one mode to the next


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeTable:
    """What every candidate is worth on every training problem."""

    candidates: NDArray[np.float32]  # (M, canonical size)
    costs: NDArray[np.float64]  # (P, M): log of the value
    rules: NDArray[np.float64]  # (P,): log of the best rule's value
    states: NDArray[np.float32]  # (P, STATE): what a policy sees when it chooses
    always: int  # of the first candidates, these are always tried


def chosen_modes(table: ModeTable, count: int) -> list[int]:
    """Return candidates that cover the problems: each next one gains most beside those before.

    The first `always` are among them. Cost: O(count * P * M).
    """
    chosen = list(range(table.always))
    best = table.costs[:, chosen].min(axis=1)
    rules = table.rules[:, None]
    while len(chosen) < count:
        least = np.minimum(best[:, None], table.costs)
        gain = 1.0 - np.exp(np.minimum(least - rules, 0.0))
        worth = gain.mean(axis=0) - LATE * np.minimum(least - rules, 0.5).mean(axis=0)
        worth[chosen] = -np.inf
        chosen.append(int(worth.argmax()))
        best = np.minimum(best, table.costs[:, chosen[-1]])
    return chosen


def train_modes(
    network: PriorNetwork,
    part: str,
    table: ModeTable,
    modes: list[int],
    *,
    steps: int,
    seed: int,
) -> None:
    """Teach a network which modes to try first, by REINFORCE on the table of all outcomes.

    An action is a sequence of modes (Plackett-Luce); its reward is the gain of the best of the
    first TRIED over the best rule, less than that of the other samples.
    """
    generator = torch.Generator().manual_seed(seed)
    costs = torch.as_tensor(table.costs[:, modes], dtype=torch.float32)
    rules = torch.as_tensor(table.rules, dtype=torch.float32)
    states = torch.as_tensor(table.states)
    first = costs[:, : table.always].amin(dim=1)
    head = network.modes[part]
    with torch.no_grad():  # the sequence in which they were chosen, to begin with
        head.bias.copy_(-FALL * torch.arange(len(modes)))
    optimizer = torch.optim.Adam([*network.mode_trunk.parameters(), *head.parameters()], lr=2e-3)
    for _ in range(steps if len(modes) > table.always else 0):
        rows = torch.randint(len(states), (64,), generator=generator)
        logits = network(states[rows]).modes[part][:, table.always :]
        uniform = torch.rand((SAMPLES, *logits.shape), generator=generator)
        noise = -torch.log(-torch.log(uniform.clamp(1e-9, 1 - 1e-7)))
        order = (
            (logits.detach() + noise).topk(min(TRIED, logits.shape[1]), dim=2).indices
        )  # (S, 64, TRIED)
        found = costs[rows][:, table.always :].expand(SAMPLES, -1, -1).gather(2, order).amin(dim=2)
        found = torch.minimum(found, first[rows])
        over = found - rules[rows]
        reward = 1.0 - torch.exp(over.clamp(max=0.0)) - LATE * over.clamp(-0.5, 0.5)
        advantage = (reward - reward.mean(dim=0)) * SAMPLES / (SAMPLES - 1)
        likely = _plackett_luce(logits.expand(SAMPLES, -1, -1), order)
        entropy = torch.distributions.Categorical(logits=logits).entropy().mean()
        loss = -(advantage / (reward.std() + 1e-4) * likely).mean() - 0.02 * entropy
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def _plackett_luce(logits: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """Return the log-likelihood of the first places of a sequence."""
    taken = torch.zeros_like(logits)
    total = torch.zeros(logits.shape[:2])
    for place in range(order.shape[2]):
        one = order[:, :, place : place + 1]
        left = torch.log_softmax(logits - 1e9 * taken, dim=2)
        total = total + left.gather(2, one).squeeze(2)
        taken = taken.scatter(2, one, 1.0)
    return total
