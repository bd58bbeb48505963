"""What every search for a schedule on several devices takes and returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from regal._native import Cancel, DeviceFigures, DeviceSchedule
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.types import Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """What is minimized: `per_ns` * running time + `per_byte` * largest peak of a device.

    Overflow of a device's memory comes before it; equal values are broken by time, then peak.
    "time" is (1, 0), "memory" is (0, 1), "balanced" divides the weights by the "before".
    """

    name: str
    per_ns: float
    per_byte: float

    def value(self, time_ns: int, peak_bytes: int) -> float:
        """Return the value that is minimized."""
        return self.per_ns * time_ns + self.per_byte * peak_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """From here on a search had a schedule of this value, one that fits the memories."""

    evaluations: int
    seconds: float  # wall time
    value: float  # of the objective


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceOutcome:
    """The best schedule that a method found."""

    schedule: DeviceSchedule  # complete and legal
    figures: DeviceFigures  # of `simulate_devices`; the checker judges it later
    evaluations: int  # schedules simulated; 0 for methods that do not count them
    seconds: float  # wall time
    time_bound_ns: int = 0  # proven: no schedule is faster
    peak_bound: int = 0  # proven: no schedule has a lower peak
    was_interrupted: bool = False
    note: str = ""
    curve: tuple[CurvePoint, ...] = ()  # better and better; (): the method keeps none


class DeviceMethod(Protocol):
    """A way to search for a good schedule."""

    def __call__(
        self,
        problem: ScheduleProblem,
        objective: Objective,
        budget: Budget,
        *,
        seed: int,
        threads: int,
        cancel: Cancel | None = None,
    ) -> DeviceOutcome:
        """Return the best schedule found, always a legal one.

        Args:
            problem: N ops on D devices, already checked.
            objective: what is minimized.
            budget: when to stop.
            seed: the only source of randomness; same seed and evaluations, same schedule.
            threads: how many threads may be used; never changes the result.
            cancel: ends the search from another thread; the best schedule so far is returned.
        """
        ...
