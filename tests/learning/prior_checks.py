"""Checks of how the default method's policy is trained; they need torch: see test_prior.py."""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

from regal.learning.config import config_of
from regal.learning.prior_arms import ArmTask, Steps, learn, sampled
from regal.learning.prior_export import prior_onnx, require_prior_parity
from regal.learning.prior_modes import ModeTable, chosen_modes, train_modes
from regal.learning.prior_network import PARTS, STATE, PriorNetwork
from regal.learning.run import run_training
from regal.learning.trainer import CHECKPOINT, Progress
from regal.policy.model import PRIOR, PolicyNetwork
from regal.policy.prior import PriorMethod, canonical_size
from regal.search.devices.compact import compact_devices
from regal.search.devices.guide import ARMS
from regal.search.devices.types import Objective
from regal.search.types import Budget
from tests.policy.problems import random_problem

TIME = Objective(name="time", per_ns=1.0, per_byte=0.0)
TINY = {
    "policy": PRIOR,
    "data": {
        "most_ops": 110,
        "valid_graphs": 3,
        "limit": 8,
        "objectives": ["time", "memory", "balanced"],
        "devices": ["2", "random"],
    },
    "prior": {
        "problems": 8,
        "elite_evaluations": 30,
        "candidates": 4,
        "modes": 12,
        "mode_steps": 2,
        "budgets": [40, 130],
        "budget_weights": [0.5, 0.5],
    },
    "search": {"seeds": 2, "valid_seeds": 1},
    "trainer": {"iterations": 2, "tasks": 2, "samples": 2, "valid_every": 1},
}


def new_network(modes: int = 20) -> PriorNetwork:
    rng = np.random.default_rng(0)
    means = {p: rng.normal(size=(modes, canonical_size())).astype(np.float32) for p in PARTS}
    return PriorNetwork(means, {"time": 1, "memory": 9}, 0)


def ignore(progress: Progress) -> None:
    """Do nothing."""


def modes_cover_the_problems_one_by_one() -> None:
    # Candidate 0 always counts. 3 is best on most problems, 1 adds the last one, 2 nothing.
    costs = np.log([[1.0, 0.99, 0.9, 0.8], [1.0, 0.99, 0.9, 0.8], [1.0, 0.5, 0.99, 1.0]])
    table = ModeTable(
        candidates=np.zeros((4, 1), dtype=np.float32),
        costs=costs,
        rules=np.zeros(3),
        states=np.zeros((3, STATE), dtype=np.float32),
        always=1,
    )
    assert chosen_modes(table, 3) == [0, 1, 3]
    assert chosen_modes(table, 4) == [0, 1, 3, 2]


def the_mode_that_suits_a_state_comes_first() -> None:
    rng = np.random.default_rng(0)
    count, modes = 60, 24
    states = rng.normal(size=(count, STATE)).astype(np.float32)
    costs = np.zeros((count, modes))
    # On half of the problems only mode 15 helps, on the others only mode 20: a state tells which.
    for row in range(count):
        costs[row, 15 if states[row, 0] > 0 else 20] = -0.5
    table = ModeTable(
        candidates=np.zeros((modes, canonical_size()), dtype=np.float32),
        costs=costs,
        rules=np.zeros(count),
        states=states,
        always=1,
    )
    network = new_network(modes)
    train_modes(network, "time", table, list(range(modes)), steps=200, seed=0)
    with torch.no_grad():
        logits = network(torch.as_tensor(states)).modes["time"].numpy()
    wanted = np.where(states[:, 0] > 0, 15, 20)
    rank = (logits[:, 1:] > logits[np.arange(count), wanted][:, None]).sum(axis=1)
    assert np.mean(rank < 2) > 0.9


def an_arm_that_pays_is_chosen_more_often() -> None:
    network = new_network()
    state = np.random.default_rng(1).normal(size=(1, STATE)).astype(np.float32)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    is_open = np.ones((1, len(ARMS)), dtype=bool)
    good = ARMS.index("genetic")
    is_open[0, ARMS.index("anneal")] = False

    def chance() -> float:
        with torch.no_grad():
            return float(network(torch.as_tensor(state)).arms.softmax(dim=1)[0, good])

    before = chance()
    for _ in range(30):
        runs = [
            Steps(
                states=state,
                chosen=np.array([arm]),
                open=is_open,
                reward=0.1 if arm == good else 0.0,
            )
            for arm in range(len(ARMS))
            if is_open[0, arm]
        ]
        learn(network, optimizer, [runs], 0.0)
    assert chance() > before + 0.3


def a_run_remembers_what_was_open_and_chosen() -> None:
    problem = random_problem(5, 30)
    task = ArmTask(problem=problem, compact=compact_devices(problem), objective=TIME)
    steps = sampled(new_network(), task, 600, 0, np.random.default_rng(0))
    assert steps.states.shape == (len(steps.chosen), STATE)
    assert steps.open[np.arange(len(steps.chosen)), steps.chosen].all()
    for arm in range(4, len(ARMS)):  # a rule runs once
        assert (steps.chosen == arm).sum() <= 1


def an_exported_policy_says_the_same() -> None:
    network = new_network()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    data = prior_onnx(network, {"note": 1})
    assert require_prior_parity(network, data) < 1e-5
    found = PolicyNetwork(data, "test")
    assert found.kind == PRIOR
    means = found.run({"state": np.zeros((1, STATE), dtype=np.float32)})["time_means"]
    assert (means == network.means("time")).all()


def a_network_of_zeros_leaves_the_search_as_it_is() -> None:
    network = new_network()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "zeros.onnx")
        path.write_bytes(prior_onnx(network, {}))
        problem = random_problem(9, 30)
        ours, usual = (
            PriorMethod(policy=policy)(
                problem, TIME, Budget(evaluations=700), seed=1, threads=1
            ).schedule
            for policy in (str(path), "none")
        )
    assert ours.placement.tolist() == usual.placement.tolist()
    assert ours.order.tolist() == usual.order.tolist()


def a_run_leaves_a_policy_and_goes_on_exactly() -> None:
    config = config_of(TINY)
    longer = dataclasses.replace(config, trainer=dataclasses.replace(config.trainer, iterations=3))
    with tempfile.TemporaryDirectory() as name:
        whole, parts = Path(name, "whole"), Path(name, "parts")
        done = run_training(longer, whole, resume=False, report=ignore)
        run_training(config, parts, resume=False, report=ignore)
        run_training(longer, parts, resume=True, report=ignore)
        assert done.progress.iteration == 3
        first, second = (
            torch.load(folder / CHECKPOINT, weights_only=False) for folder in (whole, parts)
        )
        assert first["counts"] == second["counts"]
        for key, values in first["network"]["weights"].items():
            assert torch.equal(values, second["network"]["weights"][key]), key
        problem = random_problem(3, 20)
        PriorMethod(policy=str(done.policy))(
            problem, TIME, Budget(evaluations=200), seed=0, threads=1
        )


def main(names: list[str]) -> None:
    """Run the checks of these names."""
    torch.set_num_threads(1)
    for name in names:
        globals()[name]()
        print("passed", name)


if __name__ == "__main__":
    main(sys.argv[1:])
