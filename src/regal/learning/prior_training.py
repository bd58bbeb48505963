"""A training run of the default method's policy: modes first, then which stage comes next."""

from __future__ import annotations

import math
import os
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from regal.learning.prior_arms import ArmTask, Steps, greedy_gain, learn, sampled
from regal.learning.prior_data import arm_tasks, mode_table
from regal.learning.prior_modes import chosen_modes, train_modes
from regal.learning.prior_network import PARTS, PriorNetwork
from regal.learning.trainer import BEST, CHECKPOINT, Progress
from regal.learning.workload import TRAIN, VALID

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from regal.learning.metrics import Metrics
    from regal.learning.options import TrainConfig

VALID_SEED = 1_000  # of searches; training never uses it


class PriorTrainer:
    """One run; everything random follows from the seed of its config."""

    def __init__(self, config: TrainConfig, report: Callable[[str], None]) -> None:
        """Choose the problems. Cost: see `arm_tasks`."""
        self._config = config
        seed = config.trainer.seed
        self._tasks = arm_tasks(config.data, TRAIN, config.prior.problems, seed)
        self._valid = arm_tasks(config.data, VALID, config.data.valid_graphs, seed)
        report(f"{len(self._tasks)} problems, {len(self._valid)} to validate on")
        self._report = report
        self._rng = np.random.default_rng(seed)
        self._network: PriorNetwork | None = None
        self._average: dict[str, torch.Tensor] = {}  # of the weights; validated and exported
        self._optimizer: torch.optim.Optimizer | None = None
        self._iteration = self._searches = self._stale = 0
        self._gain, self._best = math.nan, -math.inf

    @property
    def network(self) -> PriorNetwork:
        """Return the network; `start` or `restore` has made it."""
        if self._network is None:
            raise AssertionError("the run has not started")
        return self._network

    def start(self) -> None:
        """Learn the modes. Cost: long searches on all problems, then candidates on all of them."""
        options, seed = self._config.prior, self._config.trainer.seed
        means, always, tables, modes = {}, {}, {}, {}
        for part in PARTS:
            table = mode_table(self._tasks, part, options, seed, self._report)
            modes[part] = chosen_modes(table, min(options.modes, len(table.candidates)))
            means[part], always[part] = table.candidates[modes[part]], table.always
            tables[part] = table
        network = PriorNetwork(means, always, seed)
        for part in PARTS:
            train_modes(
                network, part, tables[part], modes[part], steps=options.mode_steps, seed=seed
            )
        self._adopt(network)

    def run(self, folder: Path, metrics: Metrics, report: Callable[[Progress], None]) -> Progress:
        """Learn the arms, until the iterations are done or validation has stopped to improve."""
        options = self._config.trainer
        started = time.perf_counter()
        if self._iteration == 0:
            self._validate(folder, metrics)
            self._save(folder / CHECKPOINT)
        progress = self._progress(0.0, started)
        while self._iteration < options.iterations and not self._has_stopped():
            reward = self.iterate()
            metrics.write("train", self._iteration, {"reward": reward, "searches": self._searches})
            if self._iteration % options.valid_every == 0:
                self._validate(folder, metrics)
            if self._iteration % options.checkpoint_every == 0:
                self._save(folder / CHECKPOINT)
            progress = self._progress(reward, started)
            report(progress)
        self._save(folder / CHECKPOINT)
        return progress

    def iterate(self) -> float:
        """Do one iteration; return the mean reward."""
        options, prior = self._config.trainer, self._config.prior
        batches: list[Sequence[Steps]] = []
        for _ in range(options.tasks):
            task = self._tasks[int(self._rng.integers(len(self._tasks)))]
            evaluations = int(self._rng.choice(prior.budgets, p=_shares(prior.budget_weights)))
            seed = int(self._rng.integers(self._config.search.seeds))
            batches.append(
                [
                    sampled(self.network, task, evaluations, seed, self._rng)
                    for _ in range(options.samples)
                ]
            )
        if self._optimizer is None:
            raise AssertionError("the run has not started")
        learn(self.network, self._optimizer, batches, self._config.learner.entropy)
        for name, values in self.network.state_dict().items():
            self._average[name] += (1.0 - prior.average) * (values - self._average[name])
        self._iteration += 1
        self._searches += options.tasks * options.samples
        return float(np.mean([run.reward for runs in batches for run in runs]))

    def gains(self, tasks: Sequence[ArmTask], evaluations: int) -> list[float]:
        """Return the log-ratio of the unguided to the guided value, over seeds of validation."""
        seeds = range(VALID_SEED, VALID_SEED + self._config.search.valid_seeds)
        network = network_of(self._state_of_network())
        return [
            float(np.mean([greedy_gain(network, task, evaluations, seed) for seed in seeds]))
            for task in tasks
        ]

    def _validate(self, folder: Path, metrics: Metrics) -> None:
        by_budget = {n: self.gains(self._valid, n) for n in self._config.prior.budgets}
        self._gain = float(np.mean(list(by_budget.values())))
        values = {f"gain_{n}": float(np.mean(gains)) for n, gains in by_budget.items()}
        metrics.write("valid", self._iteration, {"gain": self._gain, **values})
        self._stale += 1
        if self._gain > self._best:
            self._best, self._stale = self._gain, 0
            _replace(folder / BEST, self._state_of_network())

    def _has_stopped(self) -> bool:
        patience = self._config.trainer.patience
        return patience > 0 and self._stale >= patience

    def _progress(self, reward: float, started: float) -> Progress:
        return Progress(
            iteration=self._iteration,
            iterations=self._config.trainer.iterations,
            searches=self._searches,
            reward=reward,
            valid=self._gain,
            best=self._best,
            seconds=time.perf_counter() - started,
        )

    def _adopt(self, network: PriorNetwork) -> None:
        self._network = network
        self._average = {name: values.clone() for name, values in network.state_dict().items()}
        learned = [network.trunk, network.arms, network.straight]
        self._optimizer = torch.optim.Adam(
            [parameter for part in learned for parameter in part.parameters()],
            lr=self._config.learner.learning_rate,
        )

    def _state_of_network(self) -> dict[str, Any]:
        network = self.network
        return {
            "means": {part: network.means(part) for part in PARTS},
            "always": network.always,
            "weights": self._average,
        }

    def _save(self, path: Path) -> None:
        if self._optimizer is None:
            raise AssertionError("the run has not started")
        state = {
            "network": self._state_of_network(),
            "weights": self.network.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "rng": self._rng.bit_generator.state,
            "counts": (self._iteration, self._searches, self._stale),
            "gains": (self._gain, self._best),
        }
        _replace(path, state)

    def restore(self, path: Path) -> None:
        """Become the trainer that wrote a checkpoint of the same configuration.

        Only checkpoints of one's own: they hold Python objects, and reading runs code.
        """
        state = torch.load(path, weights_only=False)
        self._adopt(network_of(state["network"]))
        self._average = state["network"]["weights"]
        self.network.load_state_dict(state["weights"])
        if self._optimizer is not None:
            self._optimizer.load_state_dict(state["optimizer"])
        self._rng.bit_generator.state = state["rng"]
        self._iteration, self._searches, self._stale = state["counts"]
        self._gain, self._best = state["gains"]


def network_of(state: dict[str, Any]) -> PriorNetwork:
    """Return the network that a run kept as its best."""
    network = PriorNetwork(state["means"], state["always"], 0)
    network.load_state_dict(state["weights"])
    return network


def _shares(weights: Sequence[float]) -> list[float]:
    return [weight / sum(weights) for weight in weights]


def _replace(path: Path, state: object) -> None:
    """Write a file whole or not at all."""
    partial = path.with_suffix(".partial")
    torch.save(state, partial)
    os.replace(partial, path)
