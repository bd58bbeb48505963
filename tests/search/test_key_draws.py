"""Keys that are drawn from Beta distributions by tables of quantiles."""

import numpy as np
import pytest

from regal.search.devices.brkga import DeviceBrkgaOptions, DeviceProposal, run_device_brkga
from regal.search.devices.compact import compact_devices
from regal.search.devices.types import Objective
from regal.search.types import Budget
from tests.policy.problems import random_problem

MEMORY = Objective(name="memory", per_ns=0.0, per_byte=1.0)
DRAWS = 1500


def keys_of(alpha: float, beta: float) -> np.ndarray:
    """Return DRAWS chromosomes, each the first one of a search of its own."""
    compact = compact_devices(random_problem(3, 8))
    options = DeviceBrkgaOptions(with_neutral=False)
    genes = run_device_brkga(
        compact, MEMORY, Budget(evaluations=1), seed=0, options=options
    ).chromosomes.shape[1]
    proposal = DeviceProposal(alpha=np.full(genes, alpha), beta=np.full(genes, beta))
    rows = [
        run_device_brkga(
            compact, MEMORY, Budget(evaluations=1), seed=i, options=options, proposal=proposal
        ).chromosomes[0]
        for i in range(DRAWS)
    ]
    return np.stack(rows) * 2.0**-32


@pytest.mark.parametrize(
    ("alpha", "beta"),
    [
        (1, 1),
        (2, 5),
        (5, 2),
        (0.3, 0.3),
        (0.15, 0.9),
        (80, 120),
        (1000, 9),
        (0.5, 0.5),
        (0.02, 0.05),
    ],
)
def test_keys_have_mean_deviation_and_quantiles_of_their_beta(alpha: float, beta: float) -> None:
    keys = keys_of(alpha, beta)
    exact = np.random.default_rng(0).beta(alpha, beta, 400_000)
    noise = 4 * exact.std() / np.sqrt(keys.size)
    assert keys.mean() == pytest.approx(exact.mean(), abs=noise + 0.01 * exact.std())
    assert keys.std() == pytest.approx(exact.std(), rel=0.04)
    for share in (0.05, 0.25, 0.5, 0.75, 0.95):
        quantile = np.quantile(keys, share)
        below, above = (exact <= quantile - 2e-4).mean(), (exact <= quantile + 2e-4).mean()
        assert below - 0.02 <= share <= above + 0.02


def test_genes_of_one_chromosome_are_independent() -> None:
    keys = keys_of(2.0, 2.0)
    correlation = np.corrcoef(keys[:, :12].T)[np.triu_indices(12, 1)]
    assert np.abs(correlation).max() < 0.13
