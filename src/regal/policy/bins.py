"""Beta distributions as bins of mean, spread and elite bias; what the paper's policy chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

MEAN_BINS = 16
SPREAD_BINS = 16
BIASES = (0.5, 0.6, 0.7, 0.8, 0.9)  # chances that a gene comes from the elite parent
BIAS_BINS = len(BIASES)
USUAL_BIAS = 0.7
LEAST_SPREAD, MOST_SPREAD = 0.005, 0.75
# Of the prior. All genes alike is as good as uniform keys: decoders compare keys. Means and
# spreads are drawn wide enough apart for a search to notice.
PRIOR_MEAN_WIDTH = 0.22
PRIOR_SPREAD = 0.155
PRIOR_SPREAD_WIDTH = 0.6  # of the logarithm
PRIOR_BIAS_WIDTH = 0.07


def bin_means() -> NDArray[np.float32]:
    """Return the (MEAN_BINS,) means: the middles of equal parts of [0, 1]."""
    return ((np.arange(MEAN_BINS) + 0.5) / MEAN_BINS).astype(np.float32)


def bin_spreads() -> NDArray[np.float32]:
    """Return the (SPREAD_BINS,) spreads: variance over the most that the mean allows.

    A spread r is a Beta with alpha + beta = 1 / r - 1. They grow geometrically.
    """
    return np.geomspace(LEAST_SPREAD, MOST_SPREAD, SPREAD_BINS).astype(np.float32)


def prior_logits() -> NDArray[np.float32]:
    """Return the logits of mean, spread and elite bias that a new policy starts from."""
    means = -0.5 * ((bin_means() - 0.5) / PRIOR_MEAN_WIDTH) ** 2
    spreads = -0.5 * (np.log(bin_spreads() / PRIOR_SPREAD) / PRIOR_SPREAD_WIDTH) ** 2
    biases = -0.5 * ((np.array(BIASES) - USUAL_BIAS) / PRIOR_BIAS_WIDTH) ** 2
    return np.concatenate((means, spreads, biases)).astype(np.float32)


def beta_parameters(
    mean: NDArray[np.float64], spread: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return alpha and beta of Betas with these means and spreads, both between 0 and 1."""
    total = 1.0 / spread - 1.0
    return mean * total, (1.0 - mean) * total


def expected(
    logits: NDArray[np.float32],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return mean, spread and elite bias, each (genes,): what choices are like on average.

    Spreads are averaged by their logarithms. The variance of the means is left out: while the
    policy learns it tries different means, and no search sees more than one of them.

    Args:
        logits: (genes, MEAN_BINS + SPREAD_BINS + BIAS_BINS).
    """
    of_mean, of_spread, of_bias = (
        softmax(part)
        for part in np.split(
            logits.astype(np.float64), [MEAN_BINS, MEAN_BINS + SPREAD_BINS], axis=1
        )
    )
    mean = of_mean @ bin_means().astype(np.float64)
    spread = np.exp(of_spread @ np.log(bin_spreads().astype(np.float64)))
    return mean, spread, of_bias @ np.array(BIASES)


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probabilities of each row."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))
