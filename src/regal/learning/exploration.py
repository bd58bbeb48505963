"""Which choices are tried: random ones that agree where ops are alike."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from regal.policy.inputs import CONTEXT, MORE_NODE_FEATURES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from regal.policy.inputs import PolicyInputs

COUNTS = (1, 1, 1, 2, 2, 3, 5, 8)  # of features that a field depends on; one is drawn
LEAST_LENGTH = 1e-3
EQUAL_DEVICES = CONTEXT.index("equal_devices")
REFERENCE_POSITION = MORE_NODE_FEATURES.index("reference_position") - len(MORE_NODE_FEATURES)


def paired_uniforms(
    inputs: PolicyInputs, parts: int, share: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return two opposite (rows, parts) draws, each uniform, alike where features are alike.

    Independent choices for thousands of genes average out: no sample differs from another in a
    way that a search would notice. A random function of the features moves all genes of a kind
    together. A pair tells a direction from its opposite; what both have in common cancels.

    Plans that differ by the names of equal devices are one plan. Of these the draws are always
    the one that puts the first op on the first device: else what is learned of one name would
    cancel what is learned of another.

    Args:
        inputs: n ops in G groups on D devices; rows are as in `regal.policy.paper.gene_rows`.
        parts: columns, independent of each other but for the names of devices; the first decides.
        share: of the variance that alike rows have in common; 0: independent draws.
        rng: the source of randomness.
    """
    columns = np.stack([_normal_rows(inputs, share, rng) for _ in range(parts)], axis=1)
    pair = [_renamed(inputs, rows) if share > 0 else rows for rows in (columns, -columns)]
    return _normal_share_below(pair[0]), _normal_share_below(pair[1])


def paired_fields(
    kinds: Sequence[NDArray[np.float32]], parts: int, share: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return two opposite (rows, parts) draws as `paired_uniforms` does, without devices.

    Args:
        kinds: the features of the rows of each kind, which have functions of their own.
        parts: columns, independent of each other.
        share: of the variance that alike rows have in common; 0: independent draws.
        rng: the source of randomness.
    """
    features = [rows.astype(np.float64) for rows in kinds]
    columns = np.stack(
        [
            _mixed(np.concatenate([_field(rows, rng) for rows in features]), share, rng)
            for _ in range(parts)
        ],
        axis=1,
    )
    return _normal_share_below(columns), _normal_share_below(-columns)


def _normal_rows(
    inputs: PolicyInputs, share: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    nodes = inputs.nodes.astype(np.float64)
    groups = np.zeros((len(inputs.group_sizes), nodes.shape[1]))
    np.add.at(groups, inputs.groups, nodes)
    groups /= inputs.group_sizes[:, None]
    fields = [_field(nodes, rng), _opposed(groups, len(inputs.devices), rng), _field(nodes, rng)]
    return _mixed(np.concatenate(fields), share, rng)


def _mixed(
    common: NDArray[np.float64], share: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return standard normals that have `share` of their variance in common."""
    if share >= 1.0:
        return common
    return math.sqrt(share) * common + math.sqrt(1.0 - share) * rng.standard_normal(len(common))


def _opposed(
    groups: NDArray[np.float64], devices: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return a draw per group and device; what draws an op to one device keeps it off the others.

    Only differences between devices count. Of one device the draws are those of a field.
    """
    if devices == 1:
        return _field(groups, rng)
    fields = np.stack([_field(groups, rng) for _ in range(devices)], axis=1)
    centered = fields - fields.mean(axis=1, keepdims=True)
    return np.asarray(centered * math.sqrt(devices / (devices - 1))).reshape(-1)


def _renamed(inputs: PolicyInputs, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rows with equal devices sorted by how much the first op is drawn to them."""
    if inputs.context[EQUAL_DEVICES] == 0:
        return rows
    n, devices = inputs.n_ops, len(inputs.devices)
    affinity = rows[n : len(rows) - n].reshape(-1, devices, rows.shape[1])
    first = inputs.groups[int(np.argmin(inputs.nodes[:, REFERENCE_POSITION]))]
    names = np.argsort(-affinity[first, :, 0], kind="stable")
    renamed = affinity[:, names].reshape(-1, rows.shape[1])
    return np.concatenate((rows[:n], renamed, rows[len(rows) - n :]))


def _field(rows: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a random linear function of a few features; a standard normal in every row."""
    count = int(rng.choice(COUNTS))
    columns = rng.choice(rows.shape[1], count, replace=False)
    chosen = rows[:, columns]
    length = np.linalg.norm(chosen, axis=1)
    # Where a row has none of these features, its draw is its own.
    own = rng.standard_normal(len(rows))
    field = chosen @ rng.standard_normal(count) / np.maximum(length, LEAST_LENGTH)
    return np.where(length > LEAST_LENGTH, field, own)


def _normal_share_below(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of a standard normal below each value, within 1e-7.

    Source: Abramowitz & Stegun 1964, 26.2.17.
    """
    size = np.abs(values)
    t = 1.0 / (1.0 + 0.2316419 * size)
    tail = t * (
        0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429)))
    )
    above = tail * np.exp(-0.5 * size**2) / math.sqrt(2.0 * math.pi)
    return np.where(values > 0, 1.0 - above, above)
