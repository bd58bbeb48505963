"""Which stage comes next: what arms are worth, learned off-policy from detours of whole runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from regal.learning.prior_arms import Speaker
from regal.search.devices.guide import ARMS
from regal.search.devices.guided import guided_search, log_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from regal.learning.prior_arms import ArmTask
    from regal.learning.prior_network import PriorNetwork
    from regal.policy.prior import PriorGuide
    from regal.search.devices.es import WeightPrior

MOST_WORTH = 5.0  # percent, either way, of one detour: what does not fit would drown all else
BEND = 2.0  # percent: from here on, errors count in proportion, not by their square
EARLY = 1.5  # detours leave the run at this power of a uniform share of it: early choices matter
WANDERING = 0.3  # percent: scale of what the runs of a task prefer at random, in every other task


@dataclass(frozen=True, slots=True, kw_only=True)
class Detours:
    """One state, and what its arms are worth: the same search, continued by the policy."""

    state: NDArray[np.float32]  # (STATE,)
    tried: NDArray[np.bool_]  # (ARMS,)
    worth: NDArray[np.float32]  # (ARMS,) percent of the value, over what the policy chose; 0: it


class _Detour:
    """A guide that takes one other arm, once."""

    def __init__(self, guide: PriorGuide, shift: NDArray[np.float32], place: int, arm: int) -> None:
        self._guide, self._shift, self._arm = guide, shift, arm
        self._until = place + 1  # the search asks once before its first choice

    def scores(self, progress: NDArray[np.float32]) -> NDArray[np.float32]:
        scores = self._guide.scores(progress) + self._shift
        if self._until == 0:
            scores[self._arm] = np.inf
        self._until -= 1
        return scores

    def prior(self, progress: NDArray[np.float32]) -> WeightPrior | None:
        return self._guide.prior(progress)


def detours(
    network: PriorNetwork,
    task: ArmTask,
    evaluations: int,
    seed: int,
    rng: np.random.Generator,
    count: int,
) -> Detours | None:
    """Return what other arms would have been worth at one choice of a run; None: it had none.

    Args:
        network: chooses all arms but one.
        task: what is searched.
        evaluations: of each run.
        seed: of all runs.
        rng: draws the choice, and the arms.
        count: runs, with the one that follows the policy.
    """
    guide = task.guide(Speaker(network))
    shift = np.zeros(len(ARMS), dtype=np.float32)
    if rng.random() < 0.5:
        shift += rng.gumbel(scale=WANDERING, size=len(ARMS)).astype(np.float32)

    def value(place: int, arm: int) -> float:
        run = task.run(evaluations, seed)
        guided_search(run, _Detour(guide, shift, place, arm))
        return log_value(run)

    run = task.run(evaluations, seed)
    choices = guided_search(run, _Detour(guide, shift, -2, 0))
    if not choices:
        return None
    place = int(len(choices) * rng.random() ** EARLY)
    choice = choices[place]
    others = [ARMS.index(arm) for arm in choice.open if arm != choice.arm]
    drawn = rng.permutation(others)[: count - 1].tolist()
    tried = np.zeros(len(ARMS), dtype=np.bool_)
    worth = np.zeros(len(ARMS), dtype=np.float32)
    tried[ARMS.index(choice.arm)] = True
    usual = log_value(run)
    for arm in drawn:
        tried[arm] = True
        worth[arm] = np.clip(100.0 * (usual - value(place, arm)), -MOST_WORTH, MOST_WORTH)
    return Detours(state=np.concatenate((guide.context, choice.progress)), tried=tried, worth=worth)


class Memory:
    """The detours of a run, the latest ones."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.rows: list[Detours] = []

    def add(self, rows: Sequence[Detours]) -> None:
        """Add some; the oldest are forgotten."""
        self.rows = [*self.rows, *rows][-self._capacity :]

    def drawn(self, count: int, rng: np.random.Generator) -> tuple[torch.Tensor, ...]:
        """Return the states, tried arms and worths of some, each as likely as any."""
        rows = [self.rows[i] for i in rng.integers(len(self.rows), size=count)]
        arrays = ([r.state for r in rows], [r.tried for r in rows], [r.worth for r in rows])
        return tuple(torch.as_tensor(np.array(values)) for values in arrays)


def learn_worth(
    network: PriorNetwork,
    optimizer: torch.optim.Optimizer,
    states: torch.Tensor,
    tried: torch.Tensor,
    worth: torch.Tensor,
) -> float:
    """Take one step towards what arms are worth, over the mean of those that were tried.

    Args:
        network: is changed.
        optimizer: of its parameters.
        states: (B, STATE)
        tried: (B, ARMS) bool
        worth: (B, ARMS) see `Detours`.

    Returns:
        The loss.
    """
    share = tried / tried.sum(dim=1, keepdim=True)
    said = network(states).arms
    errors = (said - (said * share).sum(dim=1, keepdim=True)) - (
        worth - (worth * share).sum(dim=1, keepdim=True)
    )
    size = errors.abs()
    bent = torch.where(size < BEND, 0.5 * size**2, BEND * (size - 0.5 * BEND))
    loss = (bent * share).sum(dim=1).mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimizer.step()
    return float(loss.detach())
