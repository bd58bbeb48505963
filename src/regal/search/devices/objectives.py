"""What a schedule is searched for: running time, peak memory, or both."""

from __future__ import annotations

from dataclasses import dataclass

from regal.errors import UsageError
from regal.search.devices.types import Objective

OBJECTIVES = ("time", "memory", "balanced")


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """How much time and memory count in the objective "balanced"."""

    time: float = 1.0
    memory: float = 1.0

    def __post_init__(self) -> None:
        if not (0 <= self.time < 1e9 and 0 <= self.memory < 1e9 and self.time + self.memory > 0):
            raise UsageError(
                f"weights are time={self.time}, memory={self.memory}; give numbers of 0 or more,"
                " one of them above 0"
            )


def require_objective(name: str) -> str:
    """Return `name` if it names an objective.

    Raises:
        UsageError: it does not; the message lists them.
    """
    if name not in OBJECTIVES:
        raise UsageError(f"unknown objective '{name}'; known: {', '.join(OBJECTIVES)}")
    return name


def objective_of(
    name: str, weights: Weights, *, before_time_ns: int, before_peak_bytes: int
) -> Objective:
    """Return the objective of this name.

    "balanced" is the weighted sum of time and peak, each divided by what it is before.

    Raises:
        UsageError: there is none of this name.
    """
    match require_objective(name):
        case "time":
            return Objective(name=name, per_ns=1.0, per_byte=0.0)
        case "memory":
            return Objective(name=name, per_ns=0.0, per_byte=1.0)
    return Objective(
        name=name,
        per_ns=weights.time / max(before_time_ns, 1),
        per_byte=weights.memory / max(before_peak_bytes, 1),
    )
