"""Head weights that do not know the number of devices, and those for some devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from regal import _native

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from regal.plan.schedule_problem import ScheduleProblem

# Heads of a mean, whatever the number of devices; see `head_weights`.
CANONICAL_HEADS = ("priority", "affinity_slope", "affinity_arch", "colocation")


def canonical_size(n_columns: int = 0) -> int:
    """Return how many numbers a mean has that does not know the number of devices."""
    width = len(_native.device_feature_names()) + n_columns
    return len(CANONICAL_HEADS) * width + _native.GENE_WEIGHTS


def device_places(problem: ScheduleProblem) -> NDArray[np.float64]:
    """Return the (D,) place of each device from 0, the fastest, to 1."""
    totals = np.maximum(problem.durations, 0).sum(axis=0)
    places = np.empty(problem.n_devices)
    places[np.argsort(totals, kind="stable")] = np.arange(problem.n_devices)
    return places / max(problem.n_devices - 1, 1)


def head_weights(
    means: NDArray[np.float64], places: NDArray[np.float64], n_columns: int = 0
) -> NDArray[np.float64]:
    """Return the (k, weights) of `WeightPrior` for so many devices.

    The affinity to a device at place t is t * slope + 4 t (1 - t) * arch: with two devices the
    slope draws ops to the slower one, or the second.

    Args:
        means: (k, canonical_size(n_columns)) numbers, head by head.
        places: (D,) see `device_places`.
        n_columns: of each head beside the features.
    """
    width = len(_native.device_feature_names()) + n_columns
    priority, slope, arch, colocation, genes = np.split(means, np.arange(1, 5) * width, axis=1)
    affinities = [t * slope + 4.0 * t * (1.0 - t) * arch for t in places]
    unused = np.zeros((len(means), 2 * width))  # heads wait and transfer
    return np.concatenate((priority, *affinities, colocation, unused, genes), axis=1)


def canonical_means(
    weights: NDArray[np.float64], places: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the (k, canonical_size()) means that come closest to weights for some devices.

    The affinities are fitted by least squares; with two devices nothing is lost. See
    `head_weights`, of which this is the inverse.
    """
    width = len(_native.device_feature_names())
    count = len(places)
    priority, rest = weights[:, :width], weights[:, width:]
    affinities = rest[:, : count * width].reshape(len(weights), count, width)
    # Only differences between devices matter.
    affinities = affinities - affinities[:, int(places.argmin()), None, :]
    shapes = np.stack((places, 4.0 * places * (1.0 - places)), axis=1)  # (D, 2)
    fitted = np.einsum("rd,kdw->krw", np.linalg.pinv(shapes), affinities)
    colocation = rest[:, count * width : (count + 1) * width]
    genes = weights[:, -_native.GENE_WEIGHTS :]
    return np.concatenate((priority, fitted[:, 0], fitted[:, 1], colocation, genes), axis=1)
