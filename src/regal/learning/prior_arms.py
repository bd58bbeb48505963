"""Which stage comes next: learned by REINFORCE from whole runs of the guided portfolio."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch

from regal.learning.prior_network import LONGEST, OBJECTIVES, PARTS, SPENT, objective_of_state
from regal.policy.inputs import policy_context
from regal.policy.prior import PriorGuide
from regal.search.devices.guide import ARMS, PROGRESS
from regal.search.devices.guided import guided_search, log_value
from regal.search.devices.portfolio import PortfolioRun, usual_search
from regal.search.types import Budget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import nn

    from regal._native import CompactDevices, DeviceRule, NamedSchedule
    from regal.learning.prior_network import PriorNetwork
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.types import Objective

MOST_REWARD = 0.15  # of one run, either way: what does not fit would drown all else
MOST_GAIN = 0.3


class _Run(PortfolioRun):
    """A run whose rules are looked up where another run of its task has run them."""

    known: dict[tuple[DeviceRule, ...], tuple[Sequence[NamedSchedule], int]]

    def _ruled(self, rules: Sequence[DeviceRule]) -> tuple[Sequence[NamedSchedule], int]:
        key = tuple(rules)
        if key not in self.known:
            self.known[key] = super()._ruled(rules)
        return self.known[key]


@dataclass(slots=True)
class ArmTask:
    """A problem that runs are made on, and what the unguided portfolio reaches."""

    problem: ScheduleProblem
    compact: CompactDevices
    objective: Objective
    best_rule: float = math.nan  # log value, once it is known
    usual: dict[tuple[int, int], float] = field(default_factory=dict)
    ruled: dict[tuple[DeviceRule, ...], tuple[Sequence[NamedSchedule], int]] = field(
        default_factory=dict
    )

    @property
    def capacity(self) -> float:
        """Return the bytes of all devices; see `PortfolioRun.capacity`."""
        return self.run(1, 0).capacity

    @property
    def context(self) -> NDArray[np.float32]:
        """Return what a policy sees of it before a run."""
        return policy_context(self.problem, self.compact, self.objective)

    def run(self, evaluations: int, seed: int) -> PortfolioRun:
        """Return a run that has not begun."""
        budget = Budget(evaluations=evaluations)
        run = _Run(self.problem, self.objective, budget, seed=seed, threads=1, compact=self.compact)
        run.known = self.ruled
        return run

    def guide(self, speaker: Speaker) -> PriorGuide:
        """Return a guide that asks a network."""
        return PriorGuide(speaker, self.problem, self.compact, self.objective)

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


class Speaker:
    """A network as `PriorGuide` asks it; draws arms if it has a generator.

    Computed by NumPy: a forward pass of torch takes longer than an evaluation of a search.
    """

    def __init__(self, network: PriorNetwork, rng: np.random.Generator | None = None) -> None:
        self._network, self._rng = network, rng
        self._seen = network.get_buffer("seen").numpy()
        self._guides = network.get_buffer("guides").numpy()

    def __call__(self, state: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
        """Return what it says of a state; the logits of arms with Gumbel noise."""
        network, seen = self._network, state * self._seen
        objective = objective_of_state(state)
        head = network.arms[OBJECTIVES[objective]]
        weight, bias = (values.detach().numpy() for values in head.line())
        arms = _linear(_hidden(seen, head.trunk), head.bent) + weight @ seen + bias
        arms *= state[SPENT] < LONGEST * self._guides[objective]
        if self._rng is not None:
            arms = arms + self._rng.gumbel(size=len(ARMS)).astype(np.float32)
        of_modes = _hidden(seen, network.mode_trunk)
        answer = {"arms": arms, "log_step": _linear(of_modes, network.step)}
        for part in PARTS:
            bonus = network.get_buffer(f"{part}_bonus").numpy()
            answer[f"{part}_modes"] = _linear(of_modes, network.modes[part]) + bonus
            answer[f"{part}_means"] = network.means(part)
        return answer


def _hidden(state: NDArray[np.float32], trunk: nn.Module) -> NDArray[np.float32]:
    first, _, second, _ = trunk.children()
    return np.tanh(_linear(np.tanh(_linear(state, first)), second))


def _linear(values: NDArray[np.float32], layer: nn.Module) -> NDArray[np.float32]:
    weight, bias = (one.detach().numpy() for one in layer.parameters())
    found: NDArray[np.float32] = weight @ values + bias
    return found


def sampled(
    network: PriorNetwork, task: ArmTask, evaluations: int, seed: int, rng: np.random.Generator
) -> Steps:
    """Return one run with drawn arms, and its reward: log-ratio to the unguided one."""
    run = task.run(evaluations, seed)
    guide = task.guide(Speaker(network, rng))
    choices = guided_search(run, guide)
    gain = task.usual_value(evaluations, seed) - log_value(run)
    context = guide.context
    states = [np.concatenate((context, one.progress)) for one in choices]
    width = len(context) + len(PROGRESS)
    return Steps(
        states=np.array(states, dtype=np.float32).reshape(-1, width),
        chosen=np.array([ARMS.index(one.arm) for one in choices], dtype=np.int64),
        open=np.array([[a in one.open for a in ARMS] for one in choices]).reshape(-1, len(ARMS)),
        reward=float(np.clip(gain, -MOST_REWARD, MOST_REWARD)),
    )


def greedy_gain(network: PriorNetwork, task: ArmTask, evaluations: int, seed: int) -> float:
    """Return the log-ratio of the unguided portfolio to the guided one, cut at MOST_GAIN."""
    run = task.run(evaluations, seed)
    guided_search(run, task.guide(Speaker(network)))
    gain = task.usual_value(evaluations, seed) - log_value(run)
    return float(np.clip(gain, -MOST_GAIN, MOST_GAIN))


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
