"""The story of a graph's plans: what runs and what is held when, before and after, on one clock.

Pages and traces are drawn from this and from nothing else. Times are whole numbers of the clock:
nanoseconds, or steps where nobody knows how long an op takes. Intervals are half-open.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from regal.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from regal.graph.types import Graph

NO_STORAGE = -1  # of a `Held` that is the workspace of an op


class Clock(StrEnum):
    """What one unit of time is."""

    NS = "ns"
    STEP = "step"  # ops take one unit each, in their order


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A device as a reader knows it. `memory_bytes` None: no limit."""

    name: str
    kind: str
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One op as it ran; `step` is its position among the ops of its device."""

    device: int
    step: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One tensor on its way from the device that has it to one that reads it."""

    tensor: int
    source: int
    target: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Memory that is taken on a device: a storage, or the workspace of `op`.

    `bytes` count in the peak. `room` bytes from `offset` on are its place in the arena. What is
    overwritten in place ends when its heir begins.
    """

    storage: int
    op: int  # whose workspace it is; of a storage, the op that makes it, or -1: a graph input
    device: int
    bytes: int
    start: int
    end: int
    offset: int
    room: int


@dataclass(frozen=True, slots=True)
class Curve:
    """Live bytes of one device: `levels[i]` from `times[i]` until the next one."""

    times: tuple[int, ...]
    levels: tuple[int, ...]

    @property
    def peak(self) -> int:
        """Return the highest level."""
        return max(self.levels)

    @property
    def peak_time(self) -> int:
        """Return when the highest level is reached first."""
        return self.times[self.levels.index(self.peak)]

    def at(self, time: int) -> int:
        """Return the level at a time from 0 on."""
        return self.levels[bisect_right(self.times, time) - 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One plan as it runs; per-device tuples follow `Story.places`."""

    runs: tuple[Run, ...]  # per op of the graph
    sent: tuple[Sent, ...]
    held: tuple[Held, ...]
    curves: tuple[Curve, ...]
    arena_bytes: tuple[int, ...]
    resident_bytes: tuple[int, ...]  # parameters and state of the ops of each device

    @property
    def end(self) -> int:
        """Return when the last op ends."""
        return max((run.end for run in self.runs), default=0)

    @property
    def peak_bytes(self) -> tuple[int, ...]:
        """Return the peak of each device."""
        return tuple(curve.peak for curve in self.curves)

    def held_at(self, device: int, time: int) -> list[Held]:
        """Return what is held on a device at a time, largest first."""
        live = [h for h in self.held if h.device == device and h.start <= time < h.end]
        return sorted(live, key=lambda h: (-h.bytes, h.storage, h.op))


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A graph, the devices, and its plan before and after."""

    graph: Graph
    clock: Clock
    places: tuple[Place, ...]
    sources: tuple[str, ...]  # per op: where its times come from; () = nobody knows
    peak_bound: int  # proven: no plan has a lower peak on its fullest device
    capacity_counts_live: bool  # else only `resident_bytes` must fit in a device
    before: Side
    after: Side

    @property
    def sides(self) -> tuple[tuple[str, Side], tuple[str, Side]]:
        """Return both plans with their names."""
        return ("before", self.before), ("after", self.after)

    @property
    def end(self) -> int:
        """Return when the slower of the plans ends."""
        return max(self.before.end, self.after.end)


def curve_of(held: Iterable[Held]) -> Curve:
    """Return the live bytes over time of what one device holds; it starts at time 0.

    Cost: O(held log held).
    """
    changes = {0: 0}
    for part in held:
        changes[part.start] = changes.get(part.start, 0) + part.bytes
        changes[part.end] = changes.get(part.end, 0) - part.bytes
    times: list[int] = []
    levels: list[int] = []
    level = 0
    for time in sorted(changes):
        level += changes[time]
        if not levels or levels[-1] != level:
            times.append(time)
            levels.append(level)
    return Curve(tuple(times), tuple(levels))


def require_peaks(graph: Graph, places: Sequence[Place], side: Side, peaks: Sequence[int]) -> Side:
    """Return `side` if its curves reach the peaks that the checker has found.

    Raises:
        PlanError: they do not; a picture of it would be wrong.
    """
    for place, found, peak in zip(places, side.peak_bytes, peaks, strict=True):
        if found != peak:
            raise PlanError(
                f"plan of '{graph.name}' has a peak of {peak} bytes on '{place.name}';"
                f" the lifetimes of its buffers reach {found}"
            )
    return side
