"""Checks of how learned columns are trained; they need torch: see test_columns.py."""

from __future__ import annotations

import itertools
import json
import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from regal import _native
from regal.learning.columns import SLOPE, ColumnNetwork, ColumnPolicy
from regal.learning.columns_environment import ColumnTask, action_of, rule_of
from regal.learning.config import config_of
from regal.learning.export import onnx_bytes, require_parity
from regal.learning.learner import Learner, advantages
from regal.learning.options import ColumnOptions, LearnerOptions, NetworkOptions
from regal.learning.replay import Experience
from regal.learning.run import run_training
from regal.learning.toy import ToyEnvironment
from regal.learning.trainer import CHECKPOINT
from regal.learning.types import TaskSpec
from regal.learning.workload import valid_specs
from regal.policy.canonical import canonical_size
from regal.policy.columns import HEADS, LearnedRule, learned_rule, plain_rule
from regal.policy.inputs import CONTEXT, PolicyInputs, policy_inputs
from regal.policy.model import COLUMNS, PolicyNetwork
from regal.policy.prior import PriorMethod
from regal.search.devices.compact import compact_devices
from regal.search.types import Budget
from tests.learning.children import ignore, run_named
from tests.policy.problems import MEMORY, TIME, random_problem

if TYPE_CHECKING:
    from regal.learning.columns import RuleDistribution
    from regal.search.devices.types import CurvePoint, Objective

SMALL = NetworkOptions(hidden=8, layers=2)
WIDTH = len(_native.device_feature_names())


def inputs_of(seed: int, ops: int, devices: int = 2, objective: Objective = TIME) -> PolicyInputs:
    problem = random_problem(seed, ops, devices)
    return policy_inputs(problem, compact_devices(problem), objective)


def moved(seed: int = 0) -> ColumnNetwork:
    """Return a network whose heads are not 0 any more."""
    network = ColumnNetwork(SMALL, seed)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if not name.startswith("body"):
                parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    return network


def distribution_of(inputs: PolicyInputs, network: ColumnNetwork) -> RuleDistribution:
    return ColumnPolicy(network, ColumnOptions(directions=6)).distribution(inputs)


# What follows are the checks.


def a_new_network_says_the_plain_heuristic() -> None:
    for objective in (TIME, MEMORY):
        inputs = inputs_of(3, 14, objective=objective)
        action = distribution_of(inputs, ColumnNetwork(SMALL, 5)).expected_action()
        plain = plain_rule(14)
        assert action.tolist() == action_of(plain).tolist()
        rule = rule_of(action)
        assert rule.columns.shape == (14, HEADS)
        assert rule.means.shape == (canonical_size(),)


def time_and_memory_have_heads_of_their_own() -> None:
    network = moved()
    with torch.no_grad():
        network.memory_columns[-1].weight.zero_()
        network.memory_columns[-1].bias.zero_()
    of_time = distribution_of(inputs_of(3, 14), network).expected_action()
    of_memory = distribution_of(inputs_of(3, 14, objective=MEMORY), network).expected_action()
    assert np.abs(rule_of(of_time).columns).max() > 0
    assert np.abs(rule_of(of_memory).columns).max() == 0
    assert np.abs(rule_of(of_memory).means).max() > 0


def choices_are_pairs_around_the_rule_and_scored_where_they_lie() -> None:
    inputs = inputs_of(4, 20, devices=3)
    distribution = distribution_of(inputs, moved())
    drawn = distribution.draw(400, np.random.default_rng(0))
    rule = rule_of(distribution.expected_action())
    means = np.array([rule_of(action).means for action in drawn.actions])
    assert np.allclose((means[0] + means[1]) / 2, rule.means, atol=1e-5)
    features = slice(0, WIDTH)
    assert abs((means - rule.means)[:, features].std() - 0.4) < 0.02
    columns = np.array([rule_of(action).columns for action in drawn.actions])
    assert abs((columns - rule.columns)[:, :, 0].std() - 0.3) < 0.03
    # A normal density, up to its constant: the nearer to the rule, the likelier.
    scaled = (means - rule.means)[:, features] / 0.4
    assert np.allclose(drawn.log_probs[:, features], -0.5 * scaled**2, atol=1e-3)
    assert np.array_equal(distribution.log_probs(drawn.choices).detach().numpy(), drawn.log_probs)


def with_two_devices_nothing_is_tried_of_the_arch() -> None:
    inputs = inputs_of(4, 20)
    distribution = distribution_of(inputs, moved())
    drawn = distribution.draw(4, np.random.default_rng(0))
    means = np.array([rule_of(action).means for action in drawn.actions])
    arch = slice((SLOPE + 1) * WIDTH, (SLOPE + 2) * WIDTH)
    assert np.ptp(means[:, arch], axis=0).max() == 0
    assert np.ptp(means[:, features_of(SLOPE)], axis=0).min() > 0
    assert (drawn.log_probs[:, arch] == 0).all()


def features_of(head: int) -> slice:
    return slice(head * WIDTH, (head + 1) * WIDTH)


def the_first_op_is_drawn_to_the_first_of_equal_devices() -> None:
    problem = random_problem(11, 30)
    compact = compact_devices(problem)
    inputs = policy_inputs(problem, compact, TIME)
    inputs.context[CONTEXT.index("equal_devices")] = 1.0
    drawn = distribution_of(inputs, ColumnNetwork(SMALL, 0)).draw(40, np.random.default_rng(2))
    first = int(compact.reference[0])
    for action in drawn.actions:
        rule = rule_of(action)
        slope = rule.means[features_of(SLOPE)] @ inputs.nodes[first, :WIDTH] / math.sqrt(WIDTH)
        assert slope + rule.columns[first, SLOPE] <= 1e-5


def columns_that_pay_are_learned_from_choices() -> None:
    """The reward: the first column is high where an op reads from a marked one."""
    environment = ToyEnvironment()
    spec = TaskSpec(key="1")
    inputs = environment.inputs(spec)
    marks = np.concatenate(((-1.0,), inputs.nodes[:-1, 1]))

    def reward(action: np.ndarray) -> float:
        return -float(np.mean((rule_of(action).columns[:, 0] - marks) ** 2))

    policy = ColumnPolicy(ColumnNetwork(SMALL, 0), ColumnOptions(directions=12))
    learner = Learner(policy, environment, LearnerOptions(learning_rate=5e-3, entropy=0.0))
    rng = np.random.default_rng(0)
    before = reward(policy.distribution(inputs).expected_action())
    for _ in range(120):
        with torch.no_grad():
            drawn = policy.distribution(inputs).draw(16, rng)
        rewards = np.array([reward(action) for action in drawn.actions])
        experience = Experience(
            spec=spec,
            choices=drawn.choices,
            log_probs=drawn.log_probs,
            advantages=advantages(rewards, 1e-3),
        )
        learner.learn([experience], rng)
    after = reward(policy.distribution(inputs).expected_action())
    assert before == -1.0
    assert after > -0.35


def an_exported_network_says_the_same_and_guides_the_search() -> None:
    network = moved()
    exported = ColumnPolicy(network, ColumnOptions()).exported()
    sizes = ((1, 5, 2, TIME), (2, 1, 1, TIME), (3, 12, 3, MEMORY), (4, 30, 5, TIME))
    samples = [inputs_of(*one) for one in sizes]
    data = onnx_bytes(network, exported, samples[0], {})
    assert require_parity(exported, data, samples) < 1e-4
    running = PolicyNetwork(data, "test")
    assert running.kind == COLUMNS
    problem = random_problem(7, 40)
    compact = compact_devices(problem)
    rule = learned_rule(running, problem, compact, MEMORY)
    wanted = distribution_of(policy_inputs(problem, compact, MEMORY), network).expected_action()
    assert np.allclose(action_of(rule), wanted, atol=1e-4)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "policy.onnx")
        path.write_bytes(data)
        is_other = []
        for seed, objective in itertools.product(range(3), (TIME, MEMORY)):
            curves = [
                [point.value for point in _curve(str(policy), seed, objective, threads)]
                for policy, threads in ((path, 1), (path, 2), ("none", 1))
            ]
            assert curves[0] == curves[1]
            assert curves[0][0] == curves[2][0]  # the rules come first
            is_other.append(curves[0] != curves[2])
        assert any(is_other)


def _curve(policy: str, seed: int, objective: Objective, threads: int) -> tuple[CurvePoint, ...]:
    method, budget = PriorMethod(policy=policy), Budget(evaluations=400)
    problem = random_problem(seed, 60, 3)
    return method(problem, objective, budget, seed=1, threads=threads).curve


def the_baseline_of_a_task_is_the_plain_rule() -> None:
    config = config_of({"data": {"most_ops": 60}})
    task = ColumnTask(valid_specs(config.data)[0])
    plain = action_of(plain_rule(task.problem.n_ops))
    found = [task.cost_of(task.search(action, 40, 3).schedule) for action in (None, plain)]
    assert found[0] == found[1] == task.baseline(40, 3)
    shifted = LearnedRule(
        columns=np.full((task.problem.n_ops, HEADS), 0.5, dtype=np.float32),
        means=np.ones(canonical_size(), dtype=np.float32),
    )
    assert task.cost_of(task.search(action_of(shifted), 1, 3).schedule) > 0


def a_run_leaves_a_policy_and_goes_on_exactly() -> None:
    def config(iterations: int) -> dict[str, object]:
        return {
            "policy": "columns",
            "data": {"most_ops": 110, "valid_graphs": 2, "limit": 4, "objectives": ["time"]},
            "network": {"hidden": 8, "layers": 1},
            "search": {"evaluations": 4, "valid_evaluations": 10, "valid_seeds": 1},
            "learner": {"replays": 1, "replay_batch": 2},
            "trainer": {"iterations": iterations, "tasks": 2, "samples": 4, "valid_every": 1},
        }

    with tempfile.TemporaryDirectory() as name:
        whole, parts = Path(name, "whole"), Path(name, "parts")
        done = run_training(config_of(config(2)), whole, resume=False, report=ignore)
        assert done.parity < 1e-4
        run_training(config_of(config(1)), parts, resume=False, report=ignore)
        again = run_training(config_of(config(2)), parts, resume=True, report=ignore)
        states = [
            torch.load(folder / CHECKPOINT, weights_only=False)["learner"]["network"]
            for folder in (whole, parts)
        ]
        assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])
        assert again.progress.best == done.progress.best
        first = json.loads((whole / "metrics.jsonl").read_text().splitlines()[0])
        assert first["gain"] == 0.0  # an untrained network is the plain heuristic


if __name__ == "__main__":
    run_named(globals())
