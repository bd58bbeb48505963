"""Training, start to end: tasks, searches, learning, validation, checkpoints."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from regal.learning.config import config_to_dict, require_same_options
from regal.learning.learner import Learner, advantages
from regal.learning.replay import Experience
from regal.learning.standing import Standing, save_whole, saved_state
from regal.learning.types import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from regal.learning.actors import Actors
    from regal.learning.metrics import Metrics
    from regal.learning.options import TrainConfig
    from regal.learning.standing import Progress
    from regal.learning.types import Drawn, Environment, TaskSpec, Trainable
    from regal.learning.workload import Workload

CHECKPOINT = "checkpoint.pt"
BEST = "best.pt"


class Trainer:
    """One training run; everything random follows from the seed of its config."""

    def __init__(
        self,
        config: TrainConfig,
        policy: Trainable,
        workload: Workload,
        environment: Environment,
        actors: Actors,
    ) -> None:
        self._config, self._policy = config, policy
        self._workload, self._environment, self._actors = workload, environment, actors
        self._learner = Learner(policy, environment, config.learner)
        self._rng = np.random.default_rng(config.trainer.seed)
        self._standing = Standing()
        self._is_warm = False

    @property
    def best(self) -> float:
        """Return the mean gain of the best validation."""
        return self._standing.best

    def run(self, folder: Path, metrics: Metrics, report: Callable[[Progress], None]) -> Progress:
        """Train until the iterations are done, or validation has stopped to improve.

        The best network is kept as BEST, the whole state as CHECKPOINT: a run that resumes from
        it goes on exactly as if it had not been interrupted.
        """
        options = self._config.trainer
        started = time.perf_counter()
        if not self._is_warm:
            self._warm_up(metrics)
            self._validate(folder, metrics)
            save_whole(folder / CHECKPOINT, self.state())
        standing, reward = self._standing, 0.0
        while standing.iteration < options.iterations and not standing.has_stopped(
            options.patience
        ):
            log = self.iterate()
            reward = log["reward"]
            metrics.write("train", standing.iteration, log)
            if standing.iteration % options.valid_every == 0:
                self._validate(folder, metrics)
            if standing.iteration % options.checkpoint_every == 0:
                save_whole(folder / CHECKPOINT, self.state())
            report(standing.progress(options.iterations, reward, started))
        save_whole(folder / CHECKPOINT, self.state())
        return standing.progress(options.iterations, reward, started)

    def iterate(self) -> dict[str, float]:
        """Do one iteration: draw tasks and choices, search, learn; return what to log."""
        options, search = self._config.trainer, self._config.search
        specs = self._workload.draw(self._standing.iteration, options.tasks, self._rng)
        drawn: list[Drawn] = []
        requests = []
        for spec in specs:
            seed = int(self._rng.integers(search.seeds))
            drawn.append(self._learner.draw(spec, options.samples, self._rng))
            requests += [
                Request(
                    spec=spec,
                    action=action,
                    evaluations=search.evaluations,
                    seed=seed,
                    wants_keys=self._config.learner.imitation > 0,
                )
                for action in drawn[-1].actions
            ]
        replies = self._actors.run(requests)
        for request, reply in zip(requests, replies, strict=True):
            self._learner.note(request.spec, reply.cost, reply.keys)
        rewards = np.array([reply.reward for reply in replies]).reshape(len(specs), -1)
        experiences = [
            Experience(
                spec=spec,
                choices=one.choices,
                log_probs=one.log_probs,
                advantages=advantages(row, self._config.learner.least_deviation),
            )
            for spec, one, row in zip(specs, drawn, rewards, strict=True)
        ]
        log = self._learner.learn(experiences, self._rng)
        self._standing.count(len(requests))
        return {
            "reward": float(rewards.mean()),
            "best_reward": float(rewards.max(axis=1).mean()),
            "searches": self._standing.searches,
            "ops": float(np.mean([self._environment.inputs(spec).n_ops for spec in specs])),
            **log,
        }

    def gains(self, specs: Sequence[TaskSpec], evaluations: int, seeds: int) -> list[float]:
        """Return the mean reward of each task, over seeds that training never uses."""
        requests = []
        first = self._config.search.seeds
        for spec in specs:
            with torch.no_grad():
                inputs = self._environment.inputs(spec)
                action = self._policy.distribution(inputs).expected_action()
            requests += [
                Request(spec=spec, action=action, evaluations=evaluations, seed=first + seed)
                for seed in range(seeds)
            ]
        rewards = [reply.reward for reply in self._actors.run(requests)]
        return np.array(rewards).reshape(len(specs), seeds).mean(axis=1).tolist()

    def _warm_up(self, metrics: Metrics) -> None:
        """Imitate lessons: good schedules of the training tasks."""
        options = self._config.trainer
        if options.warmup:
            for spec, lessons in self._workload.lessons(self._rng):
                self._learner.teach(spec, lessons)
        for step in range(options.warmup):
            likelihood = self._learner.imitate(options.tasks, self._rng)
            if (step + 1) % 20 == 0:
                metrics.write("warmup", step + 1, {"likelihood": likelihood})
        self._is_warm = True

    def _validate(self, folder: Path, metrics: Metrics) -> None:
        search = self._config.search
        with self._learner.averaged():
            gains = self.gains(self._workload.valid, search.valid_evaluations, search.valid_seeds)
            weights = {k: v.clone() for k, v in self._policy.network.state_dict().items()}
        by_objective: dict[str, list[float]] = {}
        for spec, gain in zip(self._workload.valid, gains, strict=True):
            by_objective.setdefault(spec.objective, []).append(gain)
        # Objectives count alike: running time gains most, and has most tasks.
        gain = float(np.mean([np.mean(part) for part in by_objective.values()]))
        log: dict[str, float] = {"gain": gain, "searches": self._standing.searches}
        for name, part in by_objective.items():
            log[f"gain_{name}"] = float(np.mean(part))
            log[f"margin_{name}"] = 1.96 * float(np.std(part)) / math.sqrt(len(part))
        metrics.write("valid", self._standing.iteration, log)
        if self._standing.judge(gain):
            save_whole(folder / BEST, weights)

    def state(self) -> dict[str, Any]:
        """Return everything that `restore` needs, the configuration too."""
        return {
            "config": config_to_dict(self._config),
            "learner": self._learner.state(),
            "rng": self._rng.bit_generator.state,
            "is_warm": self._is_warm,
            **self._standing.state(),
        }

    def restore(self, path: Path) -> None:
        """Become the trainer that wrote a checkpoint.

        Only checkpoints of one's own; see `saved_state`.

        Raises:
            UsageError: it was written by another configuration, or cannot be read.
        """
        state = saved_state(path)
        require_same_options(state["config"], self._config, path)
        self._learner.restore(state["learner"])
        self._rng.bit_generator.state = state["rng"]
        self._standing.restore(state)
        self._is_warm = state["is_warm"]
