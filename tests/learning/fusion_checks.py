"""Checks of how the policy of fusion is trained; they need torch: see test_fusion.py."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import torch

from regal.fusion.policy import network_action, proposal_of_action
from regal.fusion.search import plan_fusion
from regal.learning.actors import InlineActors
from regal.learning.config import config_of
from regal.learning.environment import TaskEnvironment
from regal.learning.export import onnx_bytes, require_parity
from regal.learning.fusion import FusionNetwork, FusionPolicy
from regal.learning.fusion_environment import FusionTask
from regal.learning.network import graph_tensors
from regal.learning.options import NetworkOptions
from regal.learning.run import run_training
from regal.learning.toy import ToyWorkload
from regal.learning.trainer import CHECKPOINT, Trainer
from regal.learning.types import TaskSpec
from regal.policy.model import FUSION, PolicyNetwork
from regal.search.types import Budget
from tests.fusion.problems import TOO_WIDE, WIDE, quads_optimum, quads_problem
from tests.learning.children import ignore, run_named

SMALL = NetworkOptions(hidden=8, layers=2)
QUADS, EVALUATIONS = 8, 40  # fewer evaluations are all for whole heuristics
TOY_ITERATIONS = 250


def widths_of(key: str) -> list[int]:
    """Return the widths of the toy that a task is named after."""
    rng = np.random.default_rng(int(key))
    return [int(width) for width in rng.choice((WIDE, TOO_WIDE), size=QUADS)]


def toy_task(spec: TaskSpec) -> FusionTask:
    return FusionTask(quads_problem(widths_of(spec.key)), "time")


def moved(seed: int = 0) -> FusionNetwork:
    """Return a network whose heads are not 0 any more."""
    network = FusionNetwork(SMALL, seed)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if not name.startswith("body"):
                parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    return network


# What follows are the checks.


def a_new_network_changes_nothing() -> None:
    task = toy_task(TaskSpec(key="3"))
    policy = FusionPolicy(FusionNetwork(SMALL, 4))
    action = policy.distribution(task.inputs).expected_action()
    assert action.shape == (3 * QUADS, 3)
    assert proposal_of_action(action) is None
    assert task.attempt(action, 50, 1, wants_keys=False) == (task.baseline(50, 1), None)


def choices_come_in_opposite_pairs_and_are_scored_where_they_lie() -> None:
    task = toy_task(TaskSpec(key="3"))
    distribution = FusionPolicy(moved()).distribution(task.inputs)
    drawn = distribution.draw(6, np.random.default_rng(0))
    assert drawn.actions.shape == (6, 3 * QUADS, 3)
    scored = distribution.log_probs(drawn.choices).detach().numpy()
    assert np.array_equal(scored, drawn.log_probs)
    means = (
        FusionPolicy(FusionNetwork(SMALL, 0))
        .distribution(task.inputs)
        .draw(400, np.random.default_rng(1))
        .actions[:, :, 0]
    )
    assert np.allclose((means[::2] + means[1::2]) / 2, 0.5, atol=0.04)
    assert means.std() > 0.15


def an_exported_network_says_the_same_and_guides_the_search() -> None:
    network = moved()
    exported = FusionPolicy(network).exported()
    problems = [quads_problem([WIDE] * count) for count in (3, 1, 9)]
    tasks = [FusionTask(problem, "time") for problem in problems]
    data = onnx_bytes(network, exported, tasks[0].inputs, {})
    assert require_parity(exported, data, [task.inputs for task in tasks]) < 1e-4
    running = PolicyNetwork(data, "test")
    assert running.kind == FUSION
    for task in tasks:
        with torch.no_grad():
            wanted = FusionPolicy(network).distribution(task.inputs).expected_action()
            said = network(graph_tensors(task.inputs))[0].numpy()
        assert np.allclose(running(task.inputs)["fusion"], said, atol=1e-4)
        assert np.allclose(network_action(running, task.inputs), wanted, atol=1e-4)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "policy.onnx")
        path.write_bytes(data)
        budget = Budget(evaluations=60)
        one, two = (
            plan_fusion(problems[2], "time", budget, policy=str(path), threads=threads).plan
            for threads in (1, 2)
        )
        assert one == two


def fusion_keys_with_a_known_optimum_are_learned() -> None:
    """Which inner pair to keep apart depends on the width beside it."""
    config = config_of(
        {
            "policy": FUSION,
            "network": {"hidden": 16, "layers": 1},
            "search": {"evaluations": EVALUATIONS, "seeds": 4},
            "learner": {
                "algorithm": "reinforce",
                "learning_rate": 5e-3,
                "entropy": 1e-2,
                "average": 0.0,
            },
            "trainer": {"tasks": 4, "samples": 16, "correlation": 0.5},
        }
    )
    environment = TaskEnvironment(toy_task)
    network = FusionNetwork(config.network, 0)
    policy = FusionPolicy(network, correlation=config.trainer.correlation)
    workload = ToyWorkload()
    trainer = Trainer(config, policy, workload, environment, InlineActors(environment))
    keys = [spec.key for spec in workload.valid]
    optima = [quads_optimum(widths_of(key)) for key in keys]
    tasks = [environment.task(spec) for spec in workload.valid]

    def above() -> float:
        """Return by how much the plans of tasks that are not trained on miss the optima."""
        with torch.no_grad():
            actions = [policy.distribution(task.inputs).expected_action() for task in tasks]
        reached = [
            task.attempt(action, EVALUATIONS, 9, wants_keys=False)[0]
            for task, action in zip(tasks, actions, strict=True)
        ]
        return float(np.mean(np.array(reached) / np.array(optima))) - 1.0

    before = above()
    for _ in range(TOY_ITERATIONS):
        trainer.iterate()
    after = above()
    print(f"above the optimum: {before:.4f} before, {after:.4f} after")
    assert before > 0.02
    assert after < 0.5 * before


def a_run_leaves_a_policy_and_goes_on_exactly() -> None:
    def config(iterations: int) -> dict[str, object]:
        return {
            "policy": FUSION,
            "data": {
                "most_ops": 110,
                "valid_graphs": 6,
                "limit": 6,
                "objectives": ["balanced"],
                "devices": ["cpu"],
                "frameworks": ["torch", "onnx"],
                "varied": 0.0,
                "headroom": -1.0,
            },
            "network": {"hidden": 8, "layers": 1},
            "search": {"evaluations": 20, "valid_evaluations": 30, "valid_seeds": 1},
            "learner": {"algorithm": "reinforce"},
            "trainer": {"iterations": iterations, "tasks": 2, "samples": 4, "valid_every": 1},
        }

    with tempfile.TemporaryDirectory() as name:
        whole, parts = Path(name, "whole"), Path(name, "parts")
        done = run_training(config_of(config(2)), whole, resume=False, report=ignore)
        assert done.parity < 1e-4
        assert PolicyNetwork(done.policy.read_bytes(), "done").kind == FUSION
        run_training(config_of(config(1)), parts, resume=False, report=ignore)
        again = run_training(config_of(config(2)), parts, resume=True, report=ignore)
        states = [
            torch.load(folder / CHECKPOINT, weights_only=False)["learner"]["network"]
            for folder in (whole, parts)
        ]
        assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])
        assert again.progress.best == done.progress.best
        first = json.loads((whole / "metrics.jsonl").read_text().splitlines()[0])
        assert first["gain"] == 0.0  # an untrained network changes nothing


if __name__ == "__main__":
    run_named(globals())
