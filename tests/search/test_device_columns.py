"""Columns beside the features of ops, as a policy gives them to the evolution strategy."""

import dataclasses

import numpy as np
import pytest
from numpy.typing import NDArray

from regal import _native
from regal._native import CompactDevices, DeviceDecoder, DeviceProblem, DeviceScore
from regal.errors import UsageError
from regal.search.devices.es import Adapted, WeightPrior, run_device_es, weight_count
from regal.search.devices.types import Objective
from regal.search.types import Budget
from tests.search.device_schedules import layered

FEATURES = len(_native.device_feature_names())
BOTH = Objective(name="balanced", per_ns=1.0, per_byte=0.5)
MEMORY = Objective(name="memory", per_ns=0.0, per_byte=1.0)
DECODERS = ((DeviceDecoder.EFT, BOTH), (DeviceDecoder.INHERIT, MEMORY))


def grouped(seed: int, ops: int) -> DeviceProblem:
    """Return a random problem in which some ops share a group."""
    tiny = layered(seed, ops)
    groups = tuple(place // 2 if place < ops // 2 else -1 for place in range(ops))
    return dataclasses.replace(tiny, groups=groups).native()


def scores(
    compact: CompactDevices,
    decoder: DeviceDecoder,
    objective: Objective,
    weights: NDArray[np.float64],
    columns: NDArray[np.float32] | None,
) -> list[tuple[int, float, int, int]]:
    found = _native.device_weight_scores(
        compact, decoder, objective.per_ns, objective.per_byte, weights, columns=columns
    )
    return [_numbers(score) for score in found]


def _numbers(score: DeviceScore) -> tuple[int, float, int, int]:
    return (score.overflow, score.value, score.time, score.peak)


def wider(weights: NDArray[np.float64], columns: int) -> NDArray[np.float64]:
    """Return rows of weights with room for columns, whose weights are 0."""
    heads = weights[:, : -_native.GENE_WEIGHTS].reshape(len(weights), -1, FEATURES)
    padded = np.pad(heads, ((0, 0), (0, 0), (0, columns)))
    rest = weights[:, -_native.GENE_WEIGHTS :]
    return np.concatenate((padded.reshape(len(weights), -1), rest), axis=1)


@pytest.mark.parametrize(("decoder", "objective"), DECODERS)
def test_a_column_that_repeats_a_feature_has_the_same_effect(
    decoder: DeviceDecoder, objective: Objective
) -> None:
    rng = np.random.default_rng(3)
    for seed in range(4):
        compact = CompactDevices(grouped(seed, 30))
        feature = 1 + int(rng.integers(FEATURES - 1))
        column = _native.device_features(compact)[:, feature]
        columns = np.ascontiguousarray(np.stack((rng.normal(size=30), column)), dtype=np.float32)
        drawn = rng.normal(size=(12, weight_count(2)))
        heads = drawn[:, : -_native.GENE_WEIGHTS].reshape(12, -1, FEATURES)
        heads[:, :, feature] = 0.0
        by_column = wider(drawn, 2)
        of_column = rng.normal(size=heads.shape[:2]) * 2.0
        heads[:, :, feature] = of_column
        view = by_column[:, : -_native.GENE_WEIGHTS].reshape(12, -1, FEATURES + 2)
        view[:, :, FEATURES + 1] = of_column
        wanted = scores(compact, decoder, objective, drawn, None)
        # Sums of floats in another sequence: a key may differ in its last bits.
        same = [
            a == b
            for a, b in zip(
                wanted, scores(compact, decoder, objective, by_column, columns), strict=True
            )
        ]
        assert sum(same) >= 11
        assert len(set(wanted)) > 1


@pytest.mark.parametrize(("decoder", "objective"), DECODERS)
def test_columns_without_weights_change_nothing(
    decoder: DeviceDecoder, objective: Objective
) -> None:
    rng = np.random.default_rng(4)
    compact = CompactDevices(layered(5, 40).native())
    weights = rng.normal(size=(6, weight_count(2)))
    columns = rng.normal(size=(3, 40)).astype(np.float32)
    found = scores(compact, decoder, objective, wider(weights, 3), columns)
    assert found == scores(compact, decoder, objective, weights, None)
    none = np.zeros((0, 40), dtype=np.float32)
    assert found == scores(compact, decoder, objective, weights, none)


def adapted(prior: WeightPrior, evaluations: int, threads: int = 1) -> Adapted:
    compact = CompactDevices(layered(6, 40).native())
    budget = Budget(evaluations=evaluations)
    return run_device_es(compact, BOTH, budget, seed=3, threads=threads, prior=prior, kept=4)


def prior_with(columns: NDArray[np.float32], seed: int = 0) -> WeightPrior:
    rng = np.random.default_rng(seed)
    weights = weight_count(2, len(columns))
    return WeightPrior(
        mean=rng.normal(size=weights), deviation=np.ones(weights), columns=columns, step=0.5
    )


def test_the_search_adapts_the_weights_of_columns_whatever_the_threads() -> None:
    columns = np.random.default_rng(1).normal(size=(2, 40)).astype(np.float32)
    prior = prior_with(columns)
    one, two = adapted(prior, 90), adapted(prior, 90, threads=2)
    assert one.chromosomes.tolist() == two.chromosomes.tolist()
    assert one.prior.mean.tolist() == two.prior.mean.tolist()
    assert one.evaluations == 90
    kept = one.prior.columns
    assert kept is not None
    assert kept.tolist() == columns.tolist()
    heads = one.prior.mean[: -_native.GENE_WEIGHTS].reshape(-1, FEATURES + 2)
    before = prior.mean[: -_native.GENE_WEIGHTS].reshape(-1, FEATURES + 2)
    assert (heads[:, FEATURES:] != before[:, FEATURES:]).all()
    assert adapted(one.prior, 30).prior.mean.shape == one.prior.mean.shape


def test_the_first_evaluation_is_the_mean() -> None:
    columns = np.random.default_rng(2).normal(size=(2, 40)).astype(np.float32)
    prior = prior_with(columns)
    compact = CompactDevices(layered(6, 40).native())
    (wanted,) = scores(compact, DeviceDecoder.EFT, BOTH, prior.mean[None], columns)
    figures = _native.simulate_devices(compact.problem, adapted(prior, 1).schedule)
    assert figures is not None
    assert (figures.time, figures.most) == wanted[2:]


def test_columns_that_do_not_fit_are_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(UsageError, match=r"columns have shape \(2, 39\); give \(columns, 40\)"):
        adapted(prior_with(rng.normal(size=(2, 39)).astype(np.float32)), 10)
    broken = rng.normal(size=(2, 40)).astype(np.float32)
    broken[1, 7] = np.nan
    with pytest.raises(UsageError, match="columns have values outside their range"):
        adapted(prior_with(broken), 10)
    fitting = prior_with(rng.normal(size=(2, 40)).astype(np.float32))
    narrow = dataclasses.replace(fitting, mean=np.zeros(weight_count(2)))
    with pytest.raises(UsageError, match="mean has shape"):
        adapted(narrow, 10)
