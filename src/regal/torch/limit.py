"""Stay below a memory limit: compute again as little as it takes, and show the frontier."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regal.torch.remat import candidates_of, with_recomputation

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch.fx import GraphModule

    Parts = tuple[GraphModule, GraphModule]

log = logging.getLogger("regal.torch")

SHARES = 4  # points of the frontier between nothing and everything
PARTS = 4  # of the step between two points, tried where it crosses the limit


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Point:
    """One way of splitting a training step, and what it was planned to take."""

    recomputed: int  # storages that the backward pass computes again
    peak_bytes: int  # of the forward and the backward graph, the larger one
    time_ns: int  # of both, predicted


def within_limit(
    joint: GraphModule,
    limit: int,
    parts_of: Callable[[GraphModule], Parts],
    figures_of: Callable[[GraphModule, GraphModule], tuple[int, int]],
) -> tuple[Parts, tuple[Point, ...]]:
    """Return the forward and backward graph that compute least again below `limit` bytes.

    Where no way stays below it, the one of the lowest peak is returned, and a log says so. The
    ways that may be taken are the same for all limits, and the first that fits is taken: more
    memory never computes more again.

    Args:
        joint: of AOTAutograd.
        limit: bytes that activations, gradients included, may take at once.
        parts_of: splits a joint graph.
        figures_of: the planned peak and the predicted time of the two graphs.

    Cost: at most 2 * SHARES + PARTS plans of both graphs.
    """
    candidates = candidates_of(joint)
    total = len(candidates.groups)
    tried: dict[int, tuple[Point, Parts]] = {}

    def attempt(count: int) -> Point:
        if count not in tried:
            names, heavy = candidates.first(count)
            parts = parts_of(with_recomputation(joint, names, heavy=heavy) if names else joint)
            peak, time_ns = figures_of(*parts)
            tried[count] = Point(recomputed=count, peak_bytes=peak, time_ns=time_ns), parts
        return tried[count][0]

    best = first_below(limit, candidates.n_cheap, total, attempt)
    if best.peak_bytes > limit:
        log.warning("no split stays below %d bytes: %d is the lowest", limit, best.peak_bytes)
    frontier = tuple(sorted(point for point, _ in tried.values()))
    for point in frontier:
        log.info(
            "frontier: %d of %d recomputed, peak %d bytes, time %.3f ms%s",
            point.recomputed,
            total,
            point.peak_bytes,
            point.time_ns / 1e6,
            " (taken)" if point == best else "",
        )
    return tried[best.recomputed][1], frontier


def first_below(limit: int, n_cheap: int, total: int, attempt: Callable[[int], Point]) -> Point:
    """Return the point that recomputes least below `limit`; where none does, the lowest one.

    Whatever peaks are, a higher limit never recomputes more: which points are tried between two
    others does not depend on the limit, and the first one that fits is taken.
    """
    points: list[Point] = []
    for count in _counts(n_cheap, total):
        points.append(attempt(count))
        if count >= n_cheap and any(point.peak_bytes <= limit for point in points):
            break  # nothing heavy is tried where it is not needed
    fitting = [at for at, point in enumerate(points) if point.peak_bytes <= limit]
    if not fitting:
        return min(points, key=lambda point: (point.peak_bytes, point.recomputed))
    best = points[fitting[0]]
    below = points[fitting[0] - 1].recomputed if fitting[0] else best.recomputed
    for part in range(1, PARTS):
        between = attempt(below + (best.recomputed - below) * part // PARTS)
        if between.peak_bytes <= limit:
            return between
    return best


def _counts(n_cheap: int, total: int) -> list[int]:
    """Return how many groups are tried: shares of the cheap ones, then of the heavy ones."""
    cheap = {n_cheap * share // SHARES for share in range(SHARES + 1)}
    heavy = {n_cheap + (total - n_cheap) * share // SHARES for share in range(SHARES + 1)}
    return sorted(cheap | heavy)
