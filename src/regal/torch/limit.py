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
BISECTIONS = 3


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

    Where no way stays below it, the one of the lowest peak is returned, and a log says so.

    Args:
        joint: of AOTAutograd.
        limit: bytes that activations, gradients included, may take at once.
        parts_of: splits a joint graph.
        figures_of: the planned peak and the predicted time of the two graphs.

    Cost: at most 2 * SHARES + BISECTIONS + 1 plans of both graphs.
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

    points: list[Point] = []
    for count in _counts(candidates.n_cheap, total):
        points.append(attempt(count))
        if points[-1].peak_bytes <= limit and count >= candidates.n_cheap:
            break  # nothing heavy is tried where it is not needed
    fitting = [point for point in points if point.peak_bytes <= limit]
    if fitting:
        best = fitting[0]
        below = max((p.recomputed for p in points if p.recomputed < best.recomputed), default=0)
        for _ in range(BISECTIONS):
            middle = attempt((below + best.recomputed) // 2)
            if middle.peak_bytes <= limit:
                best = middle
            else:
                below = middle.recomputed
    else:
        best = min(points, key=lambda point: (point.peak_bytes, point.recomputed))
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


def _counts(n_cheap: int, total: int) -> list[int]:
    """Return how many groups are tried: shares of the cheap ones, then of the heavy ones."""
    cheap = {n_cheap * share // SHARES for share in range(SHARES + 1)}
    heavy = {n_cheap + (total - n_cheap) * share // SHARES for share in range(SHARES + 1)}
    return sorted(cheap | heavy)
