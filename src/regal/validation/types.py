"""What is validated: plans that are predicted, then executed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.validation.agreement import Agreement

Plan = TypeVar("Plan", contravariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a real run of one plan took. None: this executor does not measure it."""

    time_ns: int | None = None
    peak_bytes: int | None = None  # on the device with most
    failure: str = ""  # why there is nothing


class Executor(Protocol[Plan]):
    """Executes plans of one kind of one model for real."""

    @property
    def name(self) -> str:
        """Return what executes, with its version."""
        ...

    def planned_bytes(self, plan: Plan) -> int:
        """Return the figure of the plan that `Measured.peak_bytes` measures."""
        ...

    def run(self, plan: Plan) -> Measured:
        """Return what the plan took; a runtime that refuses or crashes is a failure in words."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One plan: what was predicted, what was measured."""

    plan: str  # how it came about
    time_ns: int
    peak_bytes: int
    measured: Measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """How well predictions of a model's plans agree with real runs."""

    model: str
    framework: str
    system: str
    executor: str
    trials: tuple[Trial, ...]
    repeated: tuple[Measured, ...]  # of the first plan again and again: the noise floor
    time: Agreement | None  # None: not measured, or every trial failed
    memory: Agreement | None
    ops: Agreement | None  # op by op, where a profiler says what each took
    sources: Mapping[str, int]  # where the predicted op times come from
    notes: tuple[str, ...] = ()
