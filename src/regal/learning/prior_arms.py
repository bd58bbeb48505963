"""Which stage comes next: learned by REINFORCE from whole runs of the guided portfolio."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch

from regal.policy.inputs import policy_context
from regal.policy.prior import device_places, head_weights
from regal.search.devices.es import WeightPrior
from regal.search.devices.guide import ARMS
from regal.search.devices.guided import guided_search, log_value
from regal.search.devices.portfolio import PortfolioRun, usual_search
from regal.search.types import Budget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from regal._native import CompactDevices
    from regal.learning.prior_network import PriorNetwork
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.types import Objective

MODES_TRIED = 16
MOST_REWARD = 0.15


@dataclass(slots=True)
class ArmTask:
    """A problem that runs are made on, and what the unguided portfolio reaches."""

    problem: ScheduleProblem
    compact: CompactDevices
    objective: Objective
    usual: dict[tuple[int, int], float] = field(default_factory=dict)

    def run(self, evaluations: int, seed: int) -> PortfolioRun:
        """Return a run that has not begun."""
        budget = Budget(evaluations=evaluations)
        return PortfolioRun(
            self.problem, self.objective, budget, seed=seed, threads=1, compact=self.compact
        )

    def usual_value(self, evaluations: int, seed: int) -> float:
        """Return the logarithm of what the unguided portfolio reaches; it is searched once."""
        key = (evaluations, seed)
        if key not in self.usual:
            run = self.run(evaluations, seed)
            usual_search(run)
            self.usual[key] = log_value(run)
        return self.usual[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What one run has seen and chosen."""

    states: NDArray[np.float32]  # (S, STATE)
    chosen: NDArray[np.int64]  # (S,)
    open: NDArray[np.bool_]  # (S, ARMS): what could be chosen
    reward: float


class SamplingGuide:
    """A `Guide` that draws arms as the network says, and remembers them."""

    def __init__(
        self, network: PriorNetwork, task: ArmTask, rng: np.random.Generator | None
    ) -> None:
        self._network, self._task, self._rng = network, task, rng
        self._context = policy_context(task.problem, task.compact, task.objective)
        self._part = "time" if task.objective.per_ns > 0 else "memory"
        self.states: list[NDArray[np.float32]] = []
        self.noisy: list[NDArray[np.float32]] = []

    def scores(self, progress: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return logits with Gumbel noise; see `Guide`."""
        state = np.concatenate((self._context, progress))
        with torch.no_grad():
            logits: NDArray[np.float32] = self._network(torch.as_tensor(state)[None]).arms[0].numpy()
        if self._rng is not None:
            logits = logits + self._rng.gumbel(size=len(logits)).astype(np.float32)
        self.states.append(state)
        self.noisy.append(logits)
        return logits

    def prior(self, progress: NDArray[np.float32]) -> WeightPrior | None:
        """Return the likeliest means; see `Guide`."""
        state = torch.as_tensor(np.concatenate((self._context, progress)))[None]
        with torch.no_grad():
            said = self._network(state)
        order = said.modes[self._part][0].numpy().argsort(kind="stable")[::-1][:MODES_TRIED]
        means = getattr(self._network, f"{self._part}_means").numpy()[order].astype(np.float64)
        return WeightPrior(
            mean=np.ascontiguousarray(head_weights(means, device_places(self._task.problem))),
            deviation=np.array(_usual_deviation(self._task)),
            step=float(said.log_step.exp()[0, 0]),
        )


def sampled(
    network: PriorNetwork, task: ArmTask, evaluations: int, seed: int, rng: np.random.Generator
) -> Steps:
    """Return one run with drawn arms, and its reward: log-ratio to the unguided one."""
    guide = SamplingGuide(network, task, rng)
    run = task.run(evaluations, seed)
    taken = guided_search(run, guide)
    gain = task.usual_value(evaluations, seed) - log_value(run)
    n = len(taken)
    states = np.array(guide.states[:n], dtype=np.float32).reshape(n, -1)
    return Steps(
        states=states,
        chosen=np.array([ARMS.index(arm) for arm, _ in taken], dtype=np.int64),
        open=np.array([[a in left for a in ARMS] for _, left in taken]).reshape(n, len(ARMS)),
        reward=float(np.clip(gain, -MOST_REWARD, MOST_REWARD)),
    )


def greedy_gain(network: PriorNetwork, task: ArmTask, evaluations: int, seed: int) -> float:
    """Return by what share the policy is better than the unguided portfolio."""
    run = task.run(evaluations, seed)
    guided_search(run, SamplingGuide(network, task, None))
    return 1.0 - math.exp(min(log_value(run) - task.usual_value(evaluations, seed), 3.0))


def learn(
    network: PriorNetwork,
    optimizer: torch.optim.Optimizer,
    batches: Sequence[Sequence[Steps]],
    entropy: float,
) -> None:
    """Take one step along the policy gradient.

    Args:
        network: is changed.
        optimizer: of its parameters.
        batches: runs of equal task, seed and budget; each against the mean of the others.
        entropy: weight of the bonus.
    """
    loss = torch.zeros(())
    count = 0
    for runs in batches:
        rewards = np.array([run.reward for run in runs])
        scale = max(float(rewards.std()), 0.003)
        advantages = (rewards - rewards.mean()) / scale * len(runs) / max(len(runs) - 1, 1)
        for run, advantage in zip(runs, advantages, strict=True):
            if not len(run.states):
                continue
            logits = network(torch.as_tensor(run.states)).arms
            logits = logits.masked_fill(~torch.as_tensor(run.open), -1e9)
            log_all = torch.log_softmax(logits, dim=1)
            likely = log_all.gather(1, torch.as_tensor(run.chosen)[:, None]).sum()
            spread = -(log_all.exp() * log_all).sum(dim=1).mean()
            loss = loss - float(advantage) * likely - entropy * spread
            count += 1
    if count == 0:
        return
    optimizer.zero_grad()
    (loss / count).backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimizer.step()


def _usual_deviation(task: ArmTask) -> list[float]:
    from regal import _native

    return list(_native.usual_deviation(task.problem.native))
