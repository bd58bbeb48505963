"""The learning baseline: its gradient, its sampling, what it learns, how it reads a graph."""

import numpy as np
import pytest

from regal.baselines.devices import graph_as_sequence as module
from regal.baselines.devices.graph_as_sequence import graph_as_sequence
from regal.baselines.devices.reinforce import sampled
from regal.baselines.devices.sequence_network import Walk, gradient, new_parameters, walk
from regal.search.devices.types import Objective
from regal.search.types import Budget
from tests.baselines.devices.problems import schedule_problem_of, task_graph

TIME = Objective(name="time", per_ns=1, per_byte=0)
STEPS, FEATURES, DEVICES, HIDDEN, SAMPLES = 4, 3, 3, 5, 3


def allowed_devices() -> np.ndarray:
    allowed = np.ones((STEPS, DEVICES), dtype=bool)
    allowed[1, 0] = False
    allowed[2] = [False, False, True]
    return allowed


def network(seed: int) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Return weights (none is zero), features, and the devices that samples choose."""
    rng = np.random.default_rng(seed)
    weights = new_parameters(FEATURES, DEVICES, HIDDEN, rng)
    weights = {name: value + rng.normal(0, 0.3, value.shape) for name, value in weights.items()}
    devices = np.array([rng.choice(np.flatnonzero(row), SAMPLES) for row in allowed_devices()])
    return weights, rng.normal(size=(STEPS, FEATURES)), devices


def forced(weights: dict[str, np.ndarray], features: np.ndarray, devices: np.ndarray) -> Walk:
    return walk(weights, features, allowed_devices(), SAMPLES, lambda step, _: devices[step])


def test_the_gradient_is_that_of_finite_differences() -> None:
    weights, features, devices = network(0)
    blame, bonus = np.array([0.7, -1.3, 0.4]), 0.2

    def loss() -> float:
        p = forced(weights, features, devices).probabilities
        log_p = np.log(np.where(p > 0, p, 1))
        chosen = np.take_along_axis(log_p, devices[:, :, None], axis=2)[:, :, 0]
        return float((blame * chosen.sum(axis=0)).sum() + bonus * (p * log_p).sum())

    slope = gradient(weights, forced(weights, features, devices), blame, bonus)
    assert set(slope) == set(weights)
    step = 1e-6
    for name, value in weights.items():
        measured = np.zeros_like(value)
        for index in np.ndindex(value.shape):
            kept = value[index]
            value[index] = kept + step
            above = loss()
            value[index] = kept - step
            measured[index] = (above - loss()) / (2 * step)
            value[index] = kept
        assert np.abs(measured).max() > 1e-4, name  # every weight matters
        np.testing.assert_allclose(slope[name], measured, atol=1e-7, err_msg=name)


def test_probabilities_are_those_of_allowed_devices() -> None:
    weights, features, devices = network(1)
    p = forced(weights, features, devices).probabilities
    np.testing.assert_allclose(p.sum(axis=2), 1)
    assert ((p > 0) == allowed_devices()[:, None, :]).all()


def test_a_new_network_takes_all_devices_for_equal() -> None:
    weights = new_parameters(FEATURES, DEVICES, HIDDEN, np.random.default_rng(0))
    _, features, devices = network(2)
    p = forced(weights, features, devices).probabilities
    np.testing.assert_allclose(p[0], 1 / DEVICES)


@pytest.mark.parametrize("chance", [0.0, 0.5, np.nextafter(1, 0)])
def test_no_chance_draws_a_device_of_probability_zero(chance: float) -> None:
    rows = np.array([[0.0, 0.25, 0.75], [0.3, 0.7, 0.0], [0.0, 1.0, 0.0]])
    drawn = sampled(rows, np.full(3, chance))
    assert (rows[np.arange(3), drawn] > 0).all()


def test_it_learns_to_keep_two_chains_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the 2^20 placements two are best: samples without learning miss them."""
    chains = [(i, i + 1, 20) for i in range(19) if i != 9]
    problem = schedule_problem_of(task_graph([[10, 10]] * 20, chains))
    budget = Budget(evaluations=3200)
    outcome = graph_as_sequence(problem, TIME, budget, seed=0, threads=1)
    assert outcome.figures.time == 100
    assert outcome.evaluations == 3200
    monkeypatch.setattr(module, "LEARNING_RATE", 0.0)
    assert graph_as_sequence(problem, TIME, budget, seed=0, threads=1).figures.time > 110


def test_large_graphs_are_read_in_fewer_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten pairs of ops whose first one has a single reader, between a source and a sink."""
    edges = [(0, 1 + 2 * i, 1) for i in range(10)]
    edges += [(1 + 2 * i, 2 + 2 * i, 1) for i in range(10)]
    edges += [(2 + 2 * i, 21 + i % 2, 1) for i in range(10)] + [(0, 21, 1), (0, 22, 1)]
    problem = schedule_problem_of(task_graph([[10, 10]] * 23, edges))
    plain = module._Steps.of(problem)
    assert plain.of_op.tolist() == list(range(23))
    monkeypatch.setattr(module, "MOST_STEPS", 12)
    together = module._Steps.of(problem)
    assert together.of_op.max() + 1 == 3  # the source, and two trees that end in a sink
    monkeypatch.setattr(module, "MOST_STEPS", 2)
    merged = module._Steps.of(problem)
    assert merged.of_op.max() + 1 == 2
    assert np.isfinite(merged.features).all()
    assert merged.features.shape[0] == merged.allowed.shape[0] == 2


def test_steps_without_a_common_device_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_STEPS", 2)
    tasks = task_graph([[1, -1], [1, 1], [-1, 1], [1, 1], [1, -1]], [])
    steps = module._Steps.of(schedule_problem_of(tasks))
    assert steps.of_op.tolist() == [0, 0, 1, 1, 2]
    assert steps.allowed.tolist() == [[True, False], [False, True], [True, False]]
