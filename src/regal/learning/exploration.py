"""Which choices are tried: random ones that agree where ops are alike."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from regal.policy.inputs import PolicyInputs

FEW, MANY = 1, 8  # features that a field depends on: from few to many
LEAST_LENGTH = 1e-3
_erf = np.vectorize(math.erf, otypes=[np.float64])


def correlated_uniforms(
    inputs: PolicyInputs, parts: int, share: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return (rows, parts) draws, each uniform, that are alike where features are alike.

    One minus the draws are draws, too: a pair tells a direction from its opposite, and what both
    have in common cancels.

    Independent choices for thousands of genes average out: no sample differs from another in a
    way that a search would notice. A random function of the features moves all genes of a kind
    together. Each gene's own distribution stays exactly that of the policy.

    Args:
        inputs: n ops in G groups on D devices; rows are as in `regal.policy.paper.gene_rows`.
        parts: columns, independent of each other.
        share: of the variance that alike rows have in common; 0: independent draws.
        rng: the source of randomness.
    """
    columns = [_normal_rows(inputs, share, rng) for _ in range(parts)]
    normals = np.stack(columns, axis=1)
    return np.asarray(0.5 * (1.0 + _erf(normals / math.sqrt(2.0))))


def _normal_rows(
    inputs: PolicyInputs, share: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    nodes = inputs.nodes.astype(np.float64)
    groups = np.zeros((len(inputs.group_sizes), nodes.shape[1]))
    np.add.at(groups, inputs.groups, nodes)
    groups /= inputs.group_sizes[:, None]
    fields = [_field(nodes, rng)]
    fields.append(np.stack([_field(groups, rng) for _ in inputs.devices], axis=1).reshape(-1))
    fields.append(_field(nodes, rng))
    common = np.concatenate(fields)
    if share >= 1.0:
        return common
    return math.sqrt(share) * common + math.sqrt(1.0 - share) * rng.standard_normal(len(common))


def _field(rows: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a random linear function of a few features; a standard normal in every row."""
    count = int(rng.integers(FEW, MANY + 1))
    columns = rng.choice(rows.shape[1], count, replace=False)
    chosen = rows[:, columns]
    length = np.linalg.norm(chosen, axis=1)
    # Where a row has none of these features, its draw is its own.
    own = rng.standard_normal(len(rows))
    field = chosen @ rng.standard_normal(count) / np.maximum(length, LEAST_LENGTH)
    return np.where(length > LEAST_LENGTH, field, own)
