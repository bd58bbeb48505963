"""Checks that need torch; each runs in a process of its own, where no OR-tools is loaded."""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from regal.learning.actions import (
    bins_at,
    entropy_of,
    expected_of,
    key_log_likelihood,
    log_probs_of,
)
from regal.learning.actors import InlineActors, RayActors, actors_of
from regal.learning.config import config_of
from regal.learning.export import onnx_bytes, paper_export, require_parity
from regal.learning.learner import Learner, advantages
from regal.learning.metrics import Metrics
from regal.learning.network import PaperNetwork, graph_tensors, new_network
from regal.learning.options import LearnerOptions, NetworkOptions
from regal.learning.paper import PaperPolicy
from regal.learning.replay import Experience
from regal.learning.run import run_training
from regal.learning.toy import OPTIMUM, UNTRAINED, ToyEnvironment, ToyWorkload
from regal.learning.trainer import CHECKPOINT, Trainer
from regal.learning.types import Request, TaskSpec
from regal.policy.bins import (
    beta_parameters,
    bin_means,
    bin_spreads,
    expected,
    prior_logits,
)
from regal.policy.choice import network_for
from regal.policy.inputs import PolicyInputs, policy_inputs
from regal.policy.model import PolicyNetwork
from regal.policy.paper import PaperMethod
from regal.search.devices.compact import compact_devices
from regal.search.types import Budget
from tests.learning.children import ignore, run_named
from tests.policy.problems import MEMORY, TIME, random_problem

if TYPE_CHECKING:
    from regal.learning.options import TrainConfig
    from regal.search.devices.types import Objective

SMALL = NetworkOptions(hidden=8, layers=2)


def inputs_of(seed: int, ops: int, devices: int = 2, objective: Objective = MEMORY) -> PolicyInputs:
    problem = random_problem(seed, ops, devices)
    return policy_inputs(problem, compact_devices(problem), objective)


def moved(network: PaperNetwork) -> PaperNetwork:
    """Return the network with heads that are not 0 any more."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in network.heads.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    return network


def toy_config(**trainer: object) -> TrainConfig:
    return config_of(
        {
            "data": {"problem": "toy"},
            "network": {"hidden": 32, "layers": 1},
            "learner": {
                "learning_rate": 5e-3,
                "entropy": 0.0,
                "replays": 3,
                "replay_batch": 8,
                "average": 0.0,
            },
            "trainer": {
                "tasks": 4,
                "samples": 8,
                "correlation": 0.0,
                "valid_every": 5,
                "patience": 0,
            }
            | trainer,
        }
    )


def toy_trainer(config: TrainConfig, seed: int = 0) -> Trainer:
    environment = ToyEnvironment()
    policy = PaperPolicy(new_network(config.network, seed), correlation=config.trainer.correlation)
    return Trainer(config, policy, ToyWorkload(), environment, InlineActors(environment))


# What follows are the checks.


def a_new_network_proposes_the_prior() -> None:
    network = new_network(NetworkOptions(), 3)
    for seed in range(5):
        _, proposed = network(graph_tensors(inputs_of(seed, 6)))
        for head in proposed:
            wanted = torch.as_tensor(prior_logits()).expand(head.shape)
            assert torch.equal(head.detach(), wanted)


def proposals_follow_the_ops_when_they_are_renumbered() -> None:
    network = moved(new_network(SMALL, 0))
    inputs = inputs_of(4, 7)
    order = np.random.default_rng(0).permutation(7)
    place = np.argsort(order)
    half = len(inputs.sources) // 2
    shuffled = np.random.default_rng(1).permutation(half)
    rows = np.concatenate((shuffled, half + shuffled))
    other = dataclasses.replace(
        inputs,
        nodes=inputs.nodes[order],
        sources=place[inputs.sources][rows],
        targets=place[inputs.targets][rows],
        edges=inputs.edges[rows],
        groups=inputs.groups[order],
    )
    _, before = network(graph_tensors(inputs))
    _, after = network(graph_tensors(other))
    assert torch.allclose(before.priority[order], after.priority, atol=1e-5)
    assert torch.allclose(before.transfer[order], after.transfer, atol=1e-5)
    assert torch.allclose(before.affinity, after.affinity, atol=1e-5)


def a_network_that_is_blind_to_the_graph_sees_no_edges() -> None:
    blind = moved(new_network(dataclasses.replace(SMALL, sees_graph=False), 0))
    inputs = inputs_of(4, 7)
    other = dataclasses.replace(inputs, edges=inputs.edges + 1.0)
    first, second = (blind(graph_tensors(one))[1].priority for one in (inputs, other))
    assert torch.equal(first, second)
    seeing = moved(new_network(SMALL, 0))
    first, second = (seeing(graph_tensors(one))[1].priority for one in (inputs, other))
    assert not torch.equal(first, second)


def one_network_says_other_things_for_time_than_for_memory() -> None:
    network = moved(new_network(SMALL, 0))
    memory, time = (inputs_of(4, 7, objective=objective) for objective in (MEMORY, TIME))
    said = [network(graph_tensors(inputs))[1].priority for inputs in (memory, time)]
    assert not torch.allclose(*said)
    # What is learned of one leaves the lines of the other alone.
    said[1].sum().backward()
    line = network.heads.priority_line
    assert line.time.weight.grad is not None
    assert line.time.weight.grad.abs().max() > 0
    assert line.memory.weight.grad is not None
    assert line.memory.weight.grad.abs().max() == 0


def bins_are_drawn_with_their_probabilities() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn((1, 37), generator=generator).expand(20_000, -1)
    bins = bins_at(logits, np.random.default_rng(0).random((20_000, 3)))
    shares = torch.softmax(logits[0, :16], dim=0).numpy()
    counts = np.bincount(bins[:, 0], minlength=16) / len(bins)
    assert np.abs(counts - shares).max() < 0.01
    log_probs = log_probs_of(logits, torch.as_tensor(bins[None]).long())
    parts = [torch.log_softmax(part, dim=0) for part in logits[0].split([16, 16, 5])]
    wanted = sum(float(part[bin_]) for part, bin_ in zip(parts, bins[7], strict=True))
    assert abs(float(log_probs[0, 7]) - wanted) < 1e-5


def the_entropy_is_that_of_the_bins() -> None:
    assert abs(float(entropy_of(torch.zeros((3, 37)))) - np.log(16 * 16 * 5)) < 1e-5


def the_likelihood_of_keys_is_that_of_the_mixture() -> None:
    logits = torch.randn((2, 37), generator=torch.Generator().manual_seed(0))
    keys = np.array([0.3, 0.8], dtype=np.float32)
    wanted = []
    for row, key in zip(logits, keys, strict=True):
        means, spreads = (torch.softmax(part, dim=0).numpy() for part in row.split([16, 16, 5])[:2])
        density = 0.0
        for mean, mean_share in zip(bin_means(), means, strict=True):
            for spread, spread_share in zip(bin_spreads(), spreads, strict=True):
                alpha, beta = beta_parameters(np.array(mean), np.array(spread))
                one = torch.distributions.Beta(torch.tensor(alpha), torch.tensor(beta))
                density += mean_share * spread_share * float(one.log_prob(torch.tensor(key)).exp())
        wanted.append(np.log(density))
    assert abs(float(key_log_likelihood(logits, keys)) - np.mean(wanted)) < 1e-3
    one_more = np.array([0.3, np.nan], dtype=np.float32)
    assert abs(float(key_log_likelihood(logits, one_more)) - wanted[0]) < 1e-3
    action = expected_of(logits)
    assert np.allclose(action, np.stack(expected(logits.numpy()), axis=1), atol=1e-6)


def an_advantage_leaves_its_own_reward_out() -> None:
    found = advantages(np.array([1.0, 2.0, 6.0]), 0.01)
    deviation = np.std([1.0, 2.0, 6.0])
    assert np.allclose(found, np.array([1 - 4, 2 - 3.5, 6 - 1.5]) / deviation)
    assert (advantages(np.array([3.0]), 0.01) == 0).all()
    assert np.allclose(advantages(np.array([1.0, 1.001]), 0.1), [-0.01, 0.01], atol=1e-6)


def importance_weights_are_cut_and_replay_makes_good_choices_likelier() -> None:
    environment = ToyEnvironment()
    spec = TaskSpec(key="1")
    policy = PaperPolicy(new_network(SMALL, 0))
    options = LearnerOptions(replays=3, replay_batch=2, clip=1.5, entropy=0.0)
    learner = Learner(policy, environment, options)
    distribution = policy.distribution(environment.inputs(spec))
    drawn = distribution.draw(4, np.random.default_rng(0))
    before = distribution.log_probs(drawn.choices).mean(dim=1).detach()
    # As if the choices had been nearly impossible for the policy that made them.
    experience = Experience(
        spec=spec,
        choices=drawn.choices,
        log_probs=drawn.log_probs - 100.0,
        advantages=np.array([1.0, -1.0, 0.0, 0.0], dtype=np.float32),
    )
    log = {}
    for _ in range(5):
        log = learner.learn([experience], np.random.default_rng(1))
    assert log["replay_weight"] == 1.5
    after = policy.distribution(environment.inputs(spec)).log_probs(drawn.choices).mean(dim=1)
    assert after[0] > before[0]
    assert after[1] < before[1]


def an_exported_network_gives_equal_outputs_for_all_sizes() -> None:
    network = moved(new_network(NetworkOptions(hidden=16, layers=2), 0))
    samples = [inputs_of(seed, ops, devices) for seed, ops, devices in
               [(1, 5, 2), (2, 1, 1), (3, 12, 3), (4, 2, 5), (5, 9, 2)]]  # fmt: skip
    exported = paper_export(network)
    data = onnx_bytes(network, exported, samples[0], {"made": "by a test"})
    assert require_parity(exported, data, samples) < 1e-4
    running = PolicyNetwork(data, "test")
    assert running.kind == "paper"
    assert running.about["notes"] == {"made": "by a test"}
    assert str(Path.cwd()).encode() not in data
    outputs = running(samples[2])
    assert outputs["node_embedding"].shape == (12, 16)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "policy.onnx")
        path.write_bytes(data)
        assert network_for(str(path), "paper") is not None
        problem = random_problem(6, 9)
        found = [
            PaperMethod(policy=policy)(
                problem, MEMORY, Budget(evaluations=120), seed=1, threads=threads
            ).schedule.order.tolist()
            for policy, threads in ((str(path), 1), (str(path), 2), ("none", 1))
        ]
        assert found[0] == found[1]


def the_toy_is_learned_from_replay_with_fewer_searches() -> None:
    """Means of three seeds: single runs, of some 5 s, may need twice as many iterations."""
    from_replay = without = 0.0
    for seed in range(3):
        config = toy_config(iterations=100, valid_every=100, seed=seed)
        on_policy = dataclasses.replace(
            config, learner=dataclasses.replace(config.learner, algorithm="reinforce")
        )
        from_replay += share_learned(config) / 3
        without += share_learned(on_policy) / 3
    assert from_replay > 0.9
    assert 0.1 < without < from_replay - 0.2


def share_learned(config: TrainConfig) -> float:
    """Return the share of the way to the optimum that a run goes, on tasks it never saw."""
    with tempfile.TemporaryDirectory() as folder, Metrics(Path(folder)) as metrics:
        trainer = toy_trainer(config)
        trainer.run(Path(folder), metrics, ignore)
        return (trainer.best - UNTRAINED) / (OPTIMUM - UNTRAINED)


def averaging(config: TrainConfig) -> TrainConfig:
    return dataclasses.replace(config, learner=dataclasses.replace(config.learner, average=0.8))


def a_run_that_was_interrupted_goes_on_exactly() -> None:
    with tempfile.TemporaryDirectory() as folder, Metrics(Path(folder)) as metrics:
        whole = toy_trainer(averaging(toy_config(iterations=6)))
        whole.run(Path(folder, "whole"), metrics, ignore)
        first = toy_trainer(averaging(toy_config(iterations=3)))
        first.run(Path(folder, "parts"), metrics, ignore)
        second = toy_trainer(averaging(toy_config(iterations=6)), seed=99)
        second.restore(Path(folder, "parts", CHECKPOINT))
        second.run(Path(folder, "parts"), metrics, ignore)
        for part in ("network", "average"):
            one, two = (t.state()["learner"][part] for t in (whole, second))
            assert all(torch.equal(one[name], two[name]) for name in one)
        assert whole.best == second.best


def validation_that_stops_to_improve_ends_the_run() -> None:
    config = toy_config(iterations=50, valid_every=1, patience=3, tasks=1, samples=2)
    config = dataclasses.replace(
        config, learner=dataclasses.replace(config.learner, learning_rate=1e-9)
    )
    with tempfile.TemporaryDirectory() as folder, Metrics(Path(folder)) as metrics:
        progress = toy_trainer(config).run(Path(folder), metrics, ignore)
    assert progress.iteration < 10


def actors_of_all_kinds_reply_the_same() -> None:
    config = config_of({"actors": {"kind": "processes", "count": 2}})
    own = ToyEnvironment()
    requests = requests_of_toy()
    wanted = InlineActors(own).run(requests)
    for kind in ("processes", "threads", "inline"):
        options = dataclasses.replace(config.actors, kind=kind)
        with actors_of(options, ToyEnvironment, own) as actors:
            assert actors.run(requests) == wanted


def ray_actors_on_two_nodes_reply_as_one_process_does() -> None:
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    cluster.add_node(num_cpus=1)
    try:
        config = config_of({"actors": {"kind": "ray", "count": 2, "address": cluster.address}})
        own = ToyEnvironment()
        requests = requests_of_toy()
        with RayActors(config.actors, ToyEnvironment) as actors:
            assert actors.run(requests) == InlineActors(own).run(requests)
            assert len(set(actors.nodes())) == 2
        assert not ray.is_initialized()
    finally:
        cluster.shutdown()


def requests_of_toy() -> list[Request]:
    rng = np.random.default_rng(0)
    action = rng.random((100, 3)).astype(np.float32)
    return [
        Request(spec=TaskSpec(key=str(i)), action=action, evaluations=1, seed=0) for i in range(4)
    ]


def a_training_run_on_graphs_leaves_a_policy_that_runs() -> None:
    config = config_of(
        {
            "data": {"most_ops": 110, "valid_graphs": 4, "limit": 6},
            "network": {"hidden": 8, "layers": 1},
            "search": {"evaluations": 20, "valid_evaluations": 20, "valid_seeds": 1},
            "learner": {"imitation": 0.1, "replays": 1, "replay_batch": 2},
            "trainer": {"iterations": 2, "tasks": 2, "samples": 2, "valid_every": 1, "warmup": 2},
        }
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "run")
        done = run_training(config, folder, resume=False, report=ignore)
        assert done.policy.exists()
        assert done.parity < 1e-4
        assert done.progress.iteration == 2
        lines = (folder / "metrics.jsonl").read_text().splitlines()
        assert len(lines) == 5  # 3 validations, 2 iterations
        assert "tensorflow" not in sys.modules


if __name__ == "__main__":
    run_named(globals())
