"""Costs of one graph on one system, each with where it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

FORBIDDEN = -1  # the device cannot run the op


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphCost:
    """What each op of a graph takes on each device, in nanoseconds.

    `op_ns[i][d]` is at least 1, or FORBIDDEN. `sources[i]` says where the times of op i come
    from: "file", "profile", "roofline" or "bytes" (nothing is known but its tensors).
    """

    op_ns: tuple[tuple[int, ...], ...]
    sources: tuple[str, ...]

    @property
    def coverage(self) -> Mapping[str, int]:
        """Return how many ops have their times from each source."""
        return {source: self.sources.count(source) for source in sorted(set(self.sources))}
