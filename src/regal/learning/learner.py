"""How a policy learns from experiences: REINFORCE, replay, preferences, evolution, imitation."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from regal.learning.evolution import draw_moves, set_gradient
from regal.learning.options import EVOLUTION, OFF_POLICY, PREFERENCE
from regal.learning.replay import Experience, ReplayBuffer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from regal.learning.options import LearnerOptions
    from regal.learning.types import (
        Distribution,
        Drawn,
        Environment,
        Reply,
        TaskSpec,
        Trainable,
    )


def advantages(rewards: NDArray[np.float64], least_deviation: float) -> NDArray[np.float32]:
    """Return each reward over the mean of its siblings, in standard deviations of them all.

    Leaving a reward out of its own baseline keeps the gradient unbiased.

    Source: Kool et al. 2019 (buy 4 REINFORCE samples, get a baseline for free).
    """
    if len(rewards) < 2:
        return np.zeros(len(rewards), dtype=np.float32)
    others = (rewards.sum() - rewards) / (len(rewards) - 1)
    deviation = max(float(rewards.std()), least_deviation)
    return ((rewards - others) / deviation).astype(np.float32)


def policy_gain(log_probs: Tensor, ratios: Tensor, advantages: Tensor) -> Tensor:
    """Return what the policy gradient climbs: likelier choices the better they were.

    Args:
        log_probs: (K, rows), with gradients.
        ratios: (K, rows) importance weights.
        advantages: (K,).
    """
    return (advantages.unsqueeze(1) * ratios * log_probs).mean()


def preference_gain(log_probs: Tensor, advantages: Tensor, scale: float) -> Tensor:
    """Return how surely the best choice is preferred to each of its siblings, at most 0.

    Log of the logistic function of the difference in mean log-probability, times the difference
    in advantage: pairs that do as well as each other say nothing.

    Args:
        log_probs: (K, rows), with gradients.
        advantages: (K,).
        scale: how sure is sure enough; 0: never.

    Source: Liao et al. 2025, arXiv:2503.07580 (best-anchored, objective-guided preferences).
    """
    likelihoods = log_probs.mean(dim=1)
    best = int(advantages.argmax())
    gaps = advantages[best] - advantages
    return nn.functional.logsigmoid(scale * gaps * (likelihoods[best] - likelihoods)).mean()


class Learner:
    """The optimizer of a policy's network, its replay buffer, and the best keys per task."""

    def __init__(
        self, policy: Trainable, environment: Environment, options: LearnerOptions
    ) -> None:
        self._policy, self._environment, self._options = policy, environment, options
        self._optimizer = torch.optim.Adam(policy.network.parameters(), lr=options.learning_rate)
        self.replay = ReplayBuffer(
            options.replay_capacity,
            exponent=options.replay_exponent,
            correction=options.replay_correction,
        )
        self._average = _copied(policy.network)
        self._best: OrderedDict[TaskSpec, tuple[float, NDArray[np.float32]]] = OrderedDict()
        self._lessons: list[tuple[TaskSpec, list[NDArray[np.float32]]]] = []

    def note(self, spec: TaskSpec, cost: float, keys: NDArray[np.float32] | None) -> None:
        """Remember the keys of a good schedule, if they are the best that are known."""
        if keys is None:
            return
        known = self._best.get(spec)
        if known is None or cost < known[0]:
            self._best[spec] = (cost, keys)
        self._best.move_to_end(spec)
        if len(self._best) > self._options.most_kept:
            self._best.popitem(last=False)

    def draw(self, spec: TaskSpec, count: int, rng: np.random.Generator) -> Drawn:
        """Return `count` actions to be tried for a task."""
        if self._options.algorithm == EVOLUTION:
            inputs = self._environment.inputs(spec)
            return draw_moves(self._policy, inputs, count, self._options.deviation, rng)
        with torch.no_grad():
            return self._of(spec).draw(count, rng)

    def learn(self, fresh: Sequence[Experience], rng: np.random.Generator) -> dict[str, float]:
        """Learn from fresh experiences, and from old ones where that is asked for.

        Returns:
            What to log.
        """
        if self._options.algorithm == EVOLUTION:
            set_gradient(self._policy.network, fresh, self._options.deviation)
            return {"gradient": self._update()}
        log = self._step(fresh, np.ones(len(fresh)))[0]
        if self._options.algorithm != OFF_POLICY:
            return log
        for experience in fresh:
            self.replay.add(experience)
        ratios = []
        for _ in range(self._options.replays):
            batch = self.replay.sample(self._options.replay_batch, rng)
            parts, priorities = self._step(batch.experiences, batch.weights)
            self.replay.set_priorities(batch.places, priorities)
            ratios.append(parts["weight"])
        return log | {"replay_weight": float(np.mean(ratios)) if ratios else 1.0}

    def teach(self, spec: TaskSpec, lessons: Sequence[Reply]) -> None:
        """Remember good schedules of a task, for `imitate`."""
        self._lessons.append((spec, [one.keys for one in lessons if one.keys is not None]))

    def imitate(self, count: int, rng: np.random.Generator) -> float:
        """Raise the likelihood of `count` random lessons; return their mean log-likelihood."""
        if not self._lessons:
            return 0.0
        losses = []
        for place in rng.integers(len(self._lessons), size=count):
            spec, keys = self._lessons[place]
            chosen = keys[int(rng.integers(len(keys)))]
            losses.append(-self._of(spec).likelihood(chosen))
        loss = torch.stack(losses).mean()
        self._apply(loss)
        return -loss.item()

    def _step(
        self, experiences: Sequence[Experience], weights: NDArray[np.float64]
    ) -> tuple[dict[str, float], list[float]]:
        """Take one step; return what to log, and a priority per experience.

        Each row of a choice has its own importance weight, cut from above: the product over the
        thousands of rows would be 0 or huge. The gradient is biased a little, and stable.
        """
        options = self._options
        gains: list[Tensor] = []
        entropies: list[Tensor] = []
        likelihoods: list[Tensor] = []
        ratios, priorities = [], []
        for experience, weight in zip(experiences, weights, strict=True):
            distribution = self._of(experience.spec)
            log_probs = distribution.log_probs(experience.choices)
            with torch.no_grad():
                ratio = torch.exp(log_probs - torch.as_tensor(experience.log_probs))
                ratio = ratio.clamp(max=options.clip)
            advantages = torch.as_tensor(experience.advantages) * float(weight)
            if options.algorithm == PREFERENCE:
                gains.append(preference_gain(log_probs, advantages, options.preference_scale))
            else:
                gains.append(policy_gain(log_probs, ratio, advantages))
            ratios.append(float(ratio.mean()))
            priorities.append(experience.first_priority * ratios[-1])
            entropies.append(distribution.entropy())
            if options.imitation > 0 and experience.spec in self._best:
                likelihoods.append(distribution.likelihood(self._best[experience.spec][1]))
        gain, entropy = torch.stack(gains).mean(), torch.stack(entropies).mean()
        loss = -gain - options.entropy * entropy
        log = {"entropy": entropy.item(), "weight": float(np.mean(ratios))}
        if likelihoods:
            likelihood = torch.stack(likelihoods).mean()
            loss = loss - options.imitation * likelihood
            log["likelihood"] = likelihood.item()
        log["gradient"] = self._apply(loss)
        return log, priorities

    def _of(self, spec: TaskSpec) -> Distribution:
        return self._policy.distribution(self._environment.inputs(spec))

    def _apply(self, loss: Tensor) -> float:
        """Take a step down `loss`; return the norm of its gradient."""
        self._optimizer.zero_grad()
        loss.backward()
        return self._update()

    def _update(self) -> float:
        """Take a step down the gradients; return their norm."""
        norm = torch.nn.utils.clip_grad_norm_(
            self._policy.network.parameters(), self._options.gradient_norm
        )
        if torch.isfinite(norm):
            self._optimizer.step()
            with torch.no_grad():
                for name, value in self._policy.network.state_dict().items():
                    self._average[name].lerp_(value, 1.0 - self._options.average)
        return float(norm)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Give the network the average of its weights over the last steps, for a while.

        Single steps follow noisy searches; their average is steadier.

        Source: Polyak & Juditsky 1992.
        """
        network = self._policy.network
        current = _copied(network)
        network.load_state_dict(self._average)
        try:
            yield
        finally:
            network.load_state_dict(current)

    def state(self) -> dict[str, Any]:
        """Return everything that `restore` needs."""
        return {
            "network": self._policy.network.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "average": self._average,
            "replay": self.replay.state(),
            "best": dict(self._best),
            "lessons": list(self._lessons),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the learner that the state was taken of."""
        self._policy.network.load_state_dict(state["network"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._average = state["average"]
        self.replay.restore(state["replay"])
        self._best = OrderedDict(state["best"])
        self._lessons = list(state["lessons"])


def _copied(network: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in network.state_dict().items()}
