"""A schedule: which device runs each op, and in which order ops and transfers run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.devices.types import System
    from regal.plan.types import Allocation, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """One tensor that is sent from the device that has it to another, once."""

    tensor: int  # of the graph
    source: int
    target: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The decisions. Times follow from them: everything starts as early as they allow.

    `order` is a permutation of all ops, each after those it depends on; each device runs its
    ops in this order. `transfers` lists every transfer; each link sends its tensors in this
    order. A graph input lies on `homes[tensor]` from the start, free of charge; that device runs
    a reader of it, or is device 0 if nothing reads it.
    """

    placement: tuple[int, ...]  # op -> device
    order: tuple[int, ...]
    transfers: tuple[Transfer, ...]
    homes: Mapping[int, int]  # graph input tensor -> device
    in_place: tuple[tuple[int, int], ...] = ()  # (input tensor, output tensor) pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """Where the instance of a storage on one device lies. Times in ns, half-open.

    Steps count the distinct times at which an op or an instance begins on that device, from 0;
    `first_step` is the one at `start_ns`, `last_step` the last one before `end_ns`. Two
    instances live together exactly if they share a step. With one device, steps are positions
    in the order.
    """

    storage: int
    allocation: Allocation
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What the checker says of a schedule. Peaks leave parameters and state out."""

    time_ns: int
    peak_bytes: tuple[int, ...]  # per device
    resident_bytes: tuple[int, ...]  # per device: parameters, constants and state of its ops
    overflow_bytes: int  # sum over devices of what exceeds their memory
    op_start_ns: tuple[int, ...]
    op_end_ns: tuple[int, ...]
    transfer_start_ns: tuple[int, ...]  # like Schedule.transfers
    transfer_end_ns: tuple[int, ...]

    @property
    def peak(self) -> int:
        """Return the largest peak of a device."""
        return max(self.peak_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulePlan:
    """A checked schedule of one graph on several devices, with the memory plan of each.

    `copies` has one entry per counted storage and device that holds it; those joined by an
    in-place pair have one offset on its device. Sibling bodies of an op lie in the block
    `workspaces[op]` of its device, as in `Plan`; steps there are those of `Copy`.
    """

    schedule: Schedule
    figures: Figures
    copies: tuple[Copy, ...]
    arena_bytes: tuple[int, ...]  # per device
    time_bound_ns: int  # proven: no schedule is faster
    peak_bound: int  # proven: no schedule has a lower peak
    workspaces: Mapping[int, Allocation] = field(default_factory=dict)
    bodies: Mapping[int, tuple[Plan, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSchedule:
    """The schedules of all entries of a model on one system, and how they were found.

    One entry runs at a time, so the figures of the model are the largest of its entries.
    """

    graph_hash: str
    system: System
    objective: str
    method: str
    seed: int
    evaluations: int
    plans: tuple[SchedulePlan, ...]  # one per entry

    @property
    def time_ns(self) -> int:
        """Return the running time of the slowest entry."""
        return max(plan.figures.time_ns for plan in self.plans)

    @property
    def peak_bytes(self) -> int:
        """Return the largest peak of a device in any entry."""
        return max(plan.figures.peak for plan in self.plans)

    @property
    def arena_bytes(self) -> int:
        """Return the largest arena of a device in any entry."""
        return max(max(plan.arena_bytes) for plan in self.plans)

    @property
    def overflow_bytes(self) -> int:
        """Return the bytes above the memories, summed over devices, of the worst entry."""
        return max(plan.figures.overflow_bytes for plan in self.plans)

    @property
    def time_bound_ns(self) -> int:
        """Return a running time that no schedule of the model can beat: proven."""
        return max(plan.time_bound_ns for plan in self.plans)

    @property
    def peak_bound(self) -> int:
        """Return a peak that no schedule of the model can beat: proven."""
        return max(plan.peak_bound for plan in self.plans)
