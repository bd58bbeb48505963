"""Checks of how the default method's policy is trained; they need torch: see test_prior.py."""

from __future__ import annotations

import dataclasses
import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from regal.errors import UsageError
from regal.learning.config import config_of
from regal.learning.prior_arms import ArmTask, Speaker, Steps, learn, sampled
from regal.learning.prior_choice import Chosen
from regal.learning.prior_export import prior_onnx, require_prior_parity
from regal.learning.prior_modes import ModeTable, chosen_modes, train_modes
from regal.learning.prior_network import OBJECTIVES, PARTS, SPENT, STATE, PriorNetwork
from regal.learning.prior_values import detours, learn_worth
from regal.learning.run import run_training
from regal.learning.trainer import CHECKPOINT
from regal.policy.canonical import canonical_size
from regal.policy.inputs import CONTEXT
from regal.policy.model import PRIOR, PolicyNetwork
from regal.policy.prior import PriorMethod
from regal.search.devices.compact import compact_devices
from regal.search.devices.guide import ARMS, RULE_ARMS
from regal.search.types import Budget
from tests.learning.children import ignore, run_named
from tests.policy.problems import TIME, random_problem

if TYPE_CHECKING:
    from regal.learning.options import TrainConfig

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


def new_network(modes: int = 20, *, sees_graph: bool = True) -> PriorNetwork:
    rng = np.random.default_rng(0)
    means = {p: rng.normal(size=(modes, canonical_size())).astype(np.float32) for p in PARTS}
    return PriorNetwork(means, {"time": 1, "memory": 9}, 0, sees_graph=sees_graph)


def changed_network(*, sees_graph: bool = True) -> PriorNetwork:
    network = new_network(sees_graph=sees_graph)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    return network


def states_for(objective: str, count: int) -> torch.Tensor:
    states = torch.randn((count, STATE), generator=torch.Generator().manual_seed(1))
    time, balanced = {"time": (1.0, 0.0), "memory": (0.0, 0.0), "balanced": (0.5, 1.0)}[objective]
    states[:, CONTEXT.index("time_weight")] = time
    states[:, CONTEXT.index("is_balanced")] = balanced
    states[:, SPENT].abs_()
    return states


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
    state = states_for("time", 1).numpy()
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
    for name in RULE_ARMS:  # a rule runs once
        assert (steps.chosen == ARMS.index(name)).sum() <= 1


def a_detour_is_worth_what_the_same_search_gains_by_it() -> None:
    problem = random_problem(11, 60)
    task = ArmTask(problem=problem, compact=compact_devices(problem), objective=TIME)
    network = new_network()
    found = [
        one
        for seed in range(6)
        if (one := detours(network, task, 300, seed, np.random.default_rng(seed), 4)) is not None
    ]
    assert found
    for one in found:
        assert 1 <= one.tried.sum() <= 4
        assert not one.worth[~one.tried].any()
    again = detours(network, task, 300, 0, np.random.default_rng(0), 4)
    assert again is not None
    assert again.worth.tolist() == found[0].worth.tolist()


def what_arms_are_worth_is_learned_for_one_objective_and_leaves_the_others() -> None:
    network = new_network()
    optimizer = torch.optim.AdamW(network.arms.parameters(), lr=3e-3)
    states = states_for("balanced", 64)
    others = [states_for(name, 8) for name in ("time", "memory")]
    before = [network(one).arms.detach() for one in others]
    worth = torch.zeros((64, len(ARMS)))
    good, bad = ARMS.index("genetic"), ARMS.index("modes")
    column = len(CONTEXT) - 1
    worth[:, good] = torch.where(states[:, column] > 0, 2.0, -2.0)
    tried = torch.zeros((64, len(ARMS)), dtype=torch.bool)
    tried[:, [good, bad]] = True
    for _ in range(300):
        learn_worth(network, optimizer, states, tried, worth)
    with torch.no_grad():
        arms = network(states).arms
    assert ((arms[:, good] > arms[:, bad]) == (states[:, column] > 0)).float().mean() > 0.95
    for one, was in zip(others, before, strict=True):
        assert torch.allclose(network(one).arms, was, atol=0.01)  # but for the decay of weights


def objectives_keep_their_best_arms_and_those_without_a_gain_none() -> None:
    network = changed_network()
    chosen = Chosen()
    rng = np.random.default_rng(0)
    noise = rng.normal(scale=0.01, size=(3, 100))
    noise -= noise.mean(axis=1, keepdims=True)
    assert chosen.takes("time", noise + 0.02, 1, network.state_dict())
    assert not chosen.takes("time", noise + 0.01, 2, new_network().state_dict())
    assert chosen.takes("memory", noise - 0.01, 1, network.state_dict())
    # As good on average, but worse at one budget.
    assert not chosen.takes(
        "time", noise + np.array([[0.05], [-0.01], [0.02]]), 3, network.state_dict()
    )
    best = new_network()
    best.load_state_dict(chosen.weights(new_network().state_dict()))
    with torch.no_grad():
        for name in OBJECTIVES:
            states = states_for(name, 4)
            arms = best(states).arms
            if name == "memory":
                assert not arms.any()
            else:
                wanted = network if name == "time" else new_network()
                assert torch.allclose(arms, wanted(states).arms)


def arms_guide_only_as_long_as_that_is_better() -> None:
    chosen = Chosen()
    network = changed_network()
    gains = np.array([[0.04] * 20, [0.0] * 20, [-0.03] * 20])
    assert chosen.takes("balanced", gains, 5, network.state_dict())
    assert not chosen.best["balanced"].guides
    assert chosen.shortens("balanced", gains - 0.01, 320)  # they never guide to the end
    assert not chosen.shortens("balanced", gains - 0.02, 200)
    assert chosen.shortens("balanced", np.maximum(gains, 0.0), 110)
    network.load_state_dict(chosen.weights(network.state_dict()))
    states = states_for("balanced", 2)
    states[:, SPENT] = torch.tensor([math.log1p(109), math.log1p(111)]) / 6.0
    with torch.no_grad():
        first, second = network(states).arms
    assert first.any()
    assert not second.any()
    assert require_prior_parity(network, prior_onnx(network, {})) < 1e-4


def a_blind_network_sees_what_happens_but_not_the_graph() -> None:
    for name in OBJECTIVES:
        one, other = states_for(name, 5), states_for(name, 5)
        kept = [CONTEXT.index(column) for column in ("time_weight", "is_balanced")]
        graph = [i for i in range(len(CONTEXT)) if i not in kept]
        other[:, graph] += 1.0
        for sees_graph in (False, True):
            network = changed_network(sees_graph=sees_graph)
            with torch.no_grad():
                first, second = network(one), network(other)
            assert torch.equal(first.arms, second.arms) != sees_graph
            assert torch.equal(first.modes["time"], second.modes["time"]) != sees_graph
    require_prior_parity(network, prior_onnx(network, {}))
    blind = changed_network(sees_graph=False)
    assert require_prior_parity(blind, prior_onnx(blind, {})) < 1e-5


def an_exported_policy_says_the_same() -> None:
    network = changed_network()
    for name in OBJECTIVES:
        state = states_for(name, 1)
        said = Speaker(network)(state[0].numpy())
        with torch.no_grad():
            wanted = network(state)
        np.testing.assert_allclose(said["arms"], wanted.arms[0].numpy(), atol=1e-5)
        np.testing.assert_allclose(
            said["time_modes"], wanted.modes["time"][0].numpy(), rtol=1e-4, atol=1e-5
        )
    data = prior_onnx(network, {"note": 1})
    assert require_prior_parity(network, data) < 1e-5
    found = PolicyNetwork(data, "test")
    assert found.kind == PRIOR
    means = found.run({"state": np.zeros((1, STATE), dtype=np.float32)})["time_means"]
    assert (means == network.means("time")).all()


def a_network_that_guides_nothing_leaves_the_search_as_it_is() -> None:
    network = changed_network()
    network.get_buffer("guides").zero_()
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
    for algorithm in ("off-policy", "reinforce"):
        _goes_on_exactly(config_of({**TINY, "learner": {"algorithm": algorithm, "replays": 2}}))


def _goes_on_exactly(config: TrainConfig) -> None:
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
        other = dataclasses.replace(longer, prior=dataclasses.replace(config.prior, decay=0.5))
        with pytest.raises(UsageError, match="other options of 'prior'"):
            run_training(other, parts, resume=True, report=ignore)
        problem = random_problem(3, 20)
        PriorMethod(policy=str(done.policy))(
            problem, TIME, Budget(evaluations=200), seed=0, threads=1
        )


def what_its_training_does_not_do_is_refused() -> None:
    for table, text in (
        ({"learner": {"algorithm": "es"}}, "does not learn by 'es'"),
        ({"actors": {"kind": "threads"}}, "searches in this process"),
    ):
        config = config_of({**TINY, **table})
        with pytest.raises(UsageError, match=text):
            run_training(config, Path("no-run"), resume=False, report=ignore)
    assert not Path("no-run").exists()


if __name__ == "__main__":
    run_named(globals())
