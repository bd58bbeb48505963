"""A training run of the default method's policy: modes first, then which stage comes next."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from regal.learning.config import config_to_dict, require_same_options
from regal.learning.options import REINFORCE
from regal.learning.prior_arms import ArmTask, Steps, greedy_gain, learn, sampled
from regal.learning.prior_choice import Chosen
from regal.learning.prior_data import arm_tasks, mode_table
from regal.learning.prior_modes import chosen_modes, train_modes
from regal.learning.prior_network import OBJECTIVES, PARTS, PriorNetwork, until_of
from regal.learning.prior_values import Detours, Memory, detours, learn_worth
from regal.learning.standing import Standing, save_whole, saved_state
from regal.learning.trainer import BEST, CHECKPOINT
from regal.learning.workload import TRAIN, VALID

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from regal.learning.metrics import Metrics
    from regal.learning.options import TrainConfig
    from regal.learning.standing import Progress

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
        self._memory = Memory(config.learner.replay_capacity)
        self._standing = Standing()
        self._chosen = Chosen()

    @property
    def network(self) -> PriorNetwork:
        """Return the network; `start` or `restore` has made it."""
        if self._network is None:
            raise AssertionError("the run has not started")
        return self._network

    @property
    def _adam(self) -> torch.optim.Optimizer:
        if self._optimizer is None:
            raise AssertionError("the run has not started")
        return self._optimizer

    def start(self) -> None:
        """Learn the modes. Cost: long searches on all problems, then candidates on all of them."""
        options, seed = self._config.prior, self._config.trainer.seed
        means, always, tables, modes = {}, {}, {}, {}
        for part in PARTS:
            table = mode_table(self._tasks, part, options, seed, self._report)
            modes[part] = chosen_modes(table, min(options.modes, len(table.candidates)))
            means[part], always[part] = table.candidates[modes[part]], table.always
            tables[part] = table
        network = PriorNetwork(means, always, seed, sees_graph=self._config.network.sees_graph)
        for part in PARTS:
            train_modes(
                network, part, tables[part], modes[part], steps=options.mode_steps, seed=seed
            )
        self._adopt(network)

    def run(self, folder: Path, metrics: Metrics, report: Callable[[Progress], None]) -> Progress:
        """Learn the arms, until the iterations are done or validation has stopped to improve."""
        options, standing = self._config.trainer, self._standing
        started, reward = time.perf_counter(), 0.0
        if standing.iteration == 0:
            self._validate(folder, metrics)
            self._save(folder / CHECKPOINT)
        while standing.iteration < options.iterations and not standing.has_stopped(
            options.patience
        ):
            reward = self.iterate()
            log = {"reward": reward, "searches": standing.searches}
            metrics.write("train", standing.iteration, log)
            if standing.iteration % options.valid_every == 0:
                self._validate(folder, metrics)
            if standing.iteration % options.checkpoint_every == 0:
                self._save(folder / CHECKPOINT)
            report(standing.progress(options.iterations, reward, started))
        self._save(folder / CHECKPOINT)
        self._shorten(folder, metrics)
        return standing.progress(options.iterations, reward, started)

    def iterate(self) -> float:
        """Do one iteration; return the mean reward, or the mean worth of what was tried, over 100.

        Both are log-ratios: to the unguided portfolio, and to what the policy would have chosen.
        """
        is_on_policy = self._config.learner.algorithm == REINFORCE
        reward, searches = self._reinforce() if is_on_policy else self._take_detours()
        for name, values in self.network.state_dict().items():
            self._average[name] += (1.0 - self._config.prior.average) * (
                values - self._average[name]
            )
        self._standing.count(searches)
        return reward

    def _drawn(self) -> tuple[ArmTask, int, int]:
        """Return a task, a number of evaluations, and the seed of a search."""
        prior = self._config.prior
        task = self._tasks[int(self._rng.integers(len(self._tasks)))]
        evaluations = int(self._rng.choice(prior.budgets, p=_shares(prior.budget_weights)))
        return task, evaluations, int(self._rng.integers(self._config.search.seeds))

    def _reinforce(self) -> tuple[float, int]:
        """Draw runs, and follow the policy gradient; return their mean reward and number."""
        options = self._config.trainer
        batches: list[Sequence[Steps]] = []
        for _ in range(options.tasks):
            task, evaluations, seed = self._drawn()
            batches.append(
                [
                    sampled(self.network, task, evaluations, seed, self._rng)
                    for _ in range(options.samples)
                ]
            )
        learn(self.network, self._adam, batches, self._config.learner.entropy)
        rewards = [run.reward for runs in batches for run in runs]
        return float(np.mean(rewards)), len(rewards)

    def _take_detours(self) -> tuple[float, int]:
        """Try other arms at some choices, and learn from all that was tried lately.

        Returns the mean worth of what was tried, over 100, and the number of searches.
        """
        options, learner = self._config.trainer, self._config.learner
        found: list[Detours] = []
        for _ in range(options.tasks):
            task, evaluations, seed = self._drawn()
            one = detours(self.network, task, evaluations, seed, self._rng, options.samples)
            if one is not None:
                found.append(one)
        self._memory.add(found)
        for _ in range(learner.replays if self._memory.rows else 0):
            drawn = self._memory.drawn(learner.replay_batch, self._rng)
            learn_worth(self.network, self._adam, *drawn)
        worth = float(np.mean([one.worth[one.tried].mean() for one in found])) / 100.0
        return worth, sum(int(one.tried.sum()) for one in found)

    def gains(
        self, tasks: Sequence[ArmTask], evaluations: int, weights: Mapping[str, torch.Tensor]
    ) -> NDArray[np.float64]:
        """Return the log-ratio of the unguided to the guided value, over seeds of validation."""
        seeds = range(VALID_SEED, VALID_SEED + self._config.search.valid_seeds)
        network = network_of({**self._state_of_network(), "weights": weights})
        return np.array(
            [
                np.mean([greedy_gain(network, task, evaluations, seed) for seed in seeds])
                for task in tasks
            ]
        )

    def _validate(self, folder: Path, metrics: Metrics) -> None:
        budgets = self._config.prior.budgets
        gains = np.stack([self.gains(self._valid, n, self._average) for n in budgets])
        iteration, values, is_better = self._standing.iteration, {}, False
        for name in OBJECTIVES:
            rows = [i for i, task in enumerate(self._valid) if task.objective.name == name]
            if not rows:
                continue
            of_name = gains[:, rows]
            errors = of_name.std(axis=1) / math.sqrt(len(rows))
            for budget, mean, error in zip(budgets, of_name.mean(axis=1), errors, strict=True):
                values[f"{name}_{budget}"] = float(mean)
                values[f"{name}_{budget}_error"] = float(error)
            is_better |= self._chosen.takes(name, of_name, iteration, self._average)
        gain = float(gains.mean())
        self._standing.note(gain, is_better=is_better)
        metrics.write("valid", iteration, {"gain": gain, **values})
        self._keep_best(folder)

    def _shorten(self, folder: Path, metrics: Metrics) -> None:
        """Let the best arms guide for as many evaluations as validates best."""
        for name in self._chosen.best:
            tasks = [task for task in self._valid if task.objective.name == name]
            for until in self._config.prior.until:
                best = self._chosen.best[name]
                weights = self._chosen.weights(self._average)
                weights["guides"] = torch.full((len(OBJECTIVES),), until_of(until))
                gains = np.stack(
                    [self.gains(tasks, n, weights) for n in self._config.prior.budgets]
                )
                self._chosen.shortens(name, gains, until)
                metrics.write(
                    "until",
                    best.iteration,
                    {
                        f"{name}_{n}_until_{until}": float(g)
                        for n, g in zip(self._config.prior.budgets, gains.mean(axis=1), strict=True)
                    },
                )
        self._keep_best(folder)

    def _keep_best(self, folder: Path) -> None:
        best = {**self._state_of_network(), "weights": self._chosen.weights(self._average)}
        save_whole(folder / BEST, {**best, "chosen": self._chosen.notes()})
        self._standing.best = self._chosen.score

    def _adopt(self, network: PriorNetwork) -> None:
        self._network = network
        self._average = {name: values.clone() for name, values in network.state_dict().items()}
        self._optimizer = torch.optim.AdamW(
            network.arms.parameters(),
            lr=self._config.learner.learning_rate,
            weight_decay=self._config.prior.decay,
        )

    def _state_of_network(self) -> dict[str, Any]:
        network = self.network
        return {
            "means": {part: network.means(part) for part in PARTS},
            "always": network.always,
            "sees_graph": network.sees_graph,
            "weights": self._average,
        }

    def _save(self, path: Path) -> None:
        state = {
            "config": config_to_dict(self._config),
            "network": self._state_of_network(),
            "weights": self.network.state_dict(),
            "optimizer": self._adam.state_dict(),
            "rng": self._rng.bit_generator.state,
            "counts": self._standing.state()["counts"],
            "gain": self._standing.valid,
            "chosen": self._chosen,
            "memory": self._memory.rows,
        }
        save_whole(path, state)

    def restore(self, path: Path) -> None:
        """Become the trainer that wrote a checkpoint.

        Only checkpoints of one's own; see `saved_state`.

        Raises:
            UsageError: it was written by another configuration, or cannot be read.
        """
        state = saved_state(path)
        require_same_options(state["config"], self._config, path)
        self._adopt(network_of(state["network"]))
        self._average = state["network"]["weights"]
        self.network.load_state_dict(state["weights"])
        self._adam.load_state_dict(state["optimizer"])
        self._rng.bit_generator.state = state["rng"]
        self._chosen = state["chosen"]
        gains = state["gain"], self._chosen.score
        self._standing.restore({"counts": state["counts"], "gains": gains})
        self._memory.rows = state["memory"]


def network_of(state: dict[str, Any]) -> PriorNetwork:
    """Return the network that a run kept as its best."""
    network = PriorNetwork(state["means"], state["always"], 0, sees_graph=state["sees_graph"])
    network.load_state_dict(state["weights"])
    return network


def _shares(weights: Sequence[float]) -> list[float]:
    return [weight / sum(weights) for weight in weights]
