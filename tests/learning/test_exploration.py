"""What is tried: each row's draw is uniform, alike rows have alike draws."""

from dataclasses import replace

import numpy as np
import pytest

from regal.learning.exploration import paired_uniforms
from regal.learning.toy import ToyEnvironment
from regal.learning.types import TaskSpec
from regal.policy.inputs import CONTEXT, PolicyInputs, node_feature_names


def inputs_with(nodes: np.ndarray) -> PolicyInputs:
    """Return the inputs of a toy with other features."""
    return replace(ToyEnvironment().inputs(TaskSpec(key="0")), nodes=nodes.astype(np.float32))


def draws_of(inputs: PolicyInputs, share: float, count: int = 3000) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.stack([paired_uniforms(inputs, 1, share, rng)[0][:, 0] for _ in range(count)])


def some_nodes() -> np.ndarray:
    template = ToyEnvironment().inputs(TaskSpec(key="0")).nodes
    nodes = np.random.default_rng(1).normal(size=template.shape)
    nodes[5] = nodes[3]
    return nodes


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_every_draw_is_uniform(share: float) -> None:
    draws = draws_of(inputs_with(some_nodes()), share)
    assert draws.min() >= 0
    assert draws.max() <= 1
    assert np.abs(draws.mean(axis=0) - 0.5).max() < 0.03
    assert np.abs((draws < 0.1).mean(axis=0) - 0.1).max() < 0.03


def test_equal_ops_have_equal_draws() -> None:
    draws = draws_of(inputs_with(some_nodes()), 1.0, 50)
    assert np.array_equal(draws[:, 3], draws[:, 5])
    assert not np.array_equal(draws[:, 3], draws[:, 4])


def test_without_correlation_equal_ops_have_draws_of_their_own() -> None:
    draws = draws_of(inputs_with(some_nodes()), 0.0)
    assert abs(np.corrcoef(draws[:, 3], draws[:, 5])[0, 1]) < 0.1


def test_heads_are_drawn_apart_and_two_devices_against_each_other() -> None:
    inputs = inputs_with(some_nodes())
    draws = draws_of(inputs, 1.0)
    n = inputs.n_ops
    priority, first, second, transfer = draws[:, 3], draws[:, n + 6], draws[:, n + 7], draws[:, -9]
    assert np.corrcoef(first, second)[0, 1] < -0.95  # opposites
    for a, b in ((priority, first), (first, transfer), (priority, transfer)):
        assert abs(np.corrcoef(a, b)[0, 1]) < 0.1


def test_ops_without_any_feature_have_draws_of_their_own() -> None:
    draws = draws_of(inputs_with(np.zeros_like(some_nodes())), 1.0)
    assert abs(np.corrcoef(draws[:, 0], draws[:, 1])[0, 1]) < 0.1


def test_a_pair_is_opposite() -> None:
    inputs = inputs_with(some_nodes())
    one, other = paired_uniforms(inputs, 3, 1.0, np.random.default_rng(0))
    assert one.shape == other.shape == (len(inputs.nodes) * 4, 3)
    assert np.allclose(one + other, 1.0, atol=1e-6)


def test_of_equal_devices_the_first_op_is_always_drawn_to_the_first() -> None:
    inputs = inputs_with(some_nodes())
    context = inputs.context.copy()
    context[CONTEXT.index("equal_devices")] = 1.0
    inputs = replace(inputs, context=context)
    n = inputs.n_ops
    first = int(np.argmin(inputs.nodes[:, node_feature_names().index("reference_position")]))
    rng = np.random.default_rng(0)
    for _ in range(20):
        for draws in paired_uniforms(inputs, 3, 1.0, rng):
            affinity = draws[n : 3 * n, 0].reshape(n, 2)
            assert affinity[first, 0] >= affinity[first, 1]
