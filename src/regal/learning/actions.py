"""Choices of bins: drawn, scored, and turned into proposals; the likelihood of good keys."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from regal.policy.bins import (
    BIASES,
    MEAN_BINS,
    SPREAD_BINS,
    bin_means,
    bin_spreads,
    expected,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from regal.learning.network import Proposed

KEY_MARGIN = 1.0 / 32.0  # keys at the very ends say no more than this


def rows_of(proposed: Proposed) -> Tensor:
    """Return the (rows, LOGITS) of all heads, in the sequence of `regal.policy.paper.gene_rows`."""
    return torch.cat(
        (
            proposed.priority,
            proposed.affinity.reshape(-1, proposed.affinity.shape[-1]),
            proposed.transfer,
        )
    )


def log_probs_of(logits: Tensor, bins: Tensor) -> Tensor:
    """Return the (K, rows) log-probabilities of the bins (K, rows, 3)."""
    total = torch.zeros(bins.shape[:2])
    for part, chosen in zip(_log_softmaxes(logits), bins.unbind(dim=2), strict=True):
        total = total + part.gather(1, chosen.T).T
    return total


def entropy_of(logits: Tensor) -> Tensor:
    """Return the mean entropy of a row's bins, in nats."""
    parts = [-(part.exp() * part).sum(dim=1) for part in _log_softmaxes(logits)]
    return torch.stack(parts).sum(dim=0).mean()


def bins_at(logits: Tensor, uniforms: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return the (rows, 3) bins that draws between 0 and 1 fall into."""
    columns = []
    for part, draws in zip(_log_softmaxes(logits), uniforms.T, strict=True):
        shares = part.exp().double().numpy().cumsum(axis=1)
        is_above = draws[:, None] * shares[:, -1:] >= shares[:, :-1]
        columns.append(is_above.sum(axis=1))
    return np.stack(columns, axis=1).astype(np.uint8)


def actions_of(bins: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the (..., 3) means, spreads and elite biases of bins (..., 3)."""
    biases = np.array(BIASES, dtype=np.float32)
    values = (bin_means()[bins[..., 0]], bin_spreads()[bins[..., 1]], biases[bins[..., 2]])
    return np.stack(values, axis=-1)


def expected_of(logits: Tensor) -> NDArray[np.float32]:
    """Return the (rows, 3) action of averages: what the exported policy does."""
    return np.stack(expected(logits.detach().numpy()), axis=1).astype(np.float32)


def key_log_likelihood(logits: Tensor, keys: NDArray[np.float32]) -> Tensor:
    """Return the mean log-likelihood of keys under the mixture of Betas that the bins span.

    Uniform keys have 0.

    Args:
        logits: (rows, LOGITS).
        keys: (rows,) good keys; NaN does not count.

    Cost: O(rows * MEAN_BINS * SPREAD_BINS).
    """
    counted = np.flatnonzero(~np.isnan(keys))
    known = np.clip(keys[counted], KEY_MARGIN, 1.0 - KEY_MARGIN)
    log_key = torch.as_tensor(np.log(known)).unsqueeze(1)
    log_rest = torch.as_tensor(np.log1p(-known)).unsqueeze(1)
    alpha, beta, constant = _grid()
    of_bins = (alpha - 1.0) * log_key + (beta - 1.0) * log_rest + constant
    of_mean, of_spread, _ = _log_softmaxes(logits[torch.as_tensor(counted)])
    weights = (of_mean.unsqueeze(2) + of_spread.unsqueeze(1)).reshape(len(known), -1)
    return torch.logsumexp(of_bins + weights, dim=1).mean()


@lru_cache(maxsize=1)
def _grid() -> tuple[Tensor, Tensor, Tensor]:
    """Return alpha, beta and the log of the constant of each Beta, (1, means * spreads)."""
    total = 1.0 / torch.as_tensor(bin_spreads(), dtype=torch.float64) - 1.0
    means = torch.as_tensor(bin_means(), dtype=torch.float64).unsqueeze(1)
    alpha, beta = means * total, (1.0 - means) * total
    constant = torch.lgamma(alpha + beta) - torch.lgamma(alpha) - torch.lgamma(beta)
    return tuple(t.reshape(1, -1).float() for t in (alpha, beta, constant))


def _log_softmaxes(logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    parts = logits.tensor_split((MEAN_BINS, MEAN_BINS + SPREAD_BINS), dim=1)
    mean, spread, bias = (torch.log_softmax(part, dim=1) for part in parts)
    return mean, spread, bias
