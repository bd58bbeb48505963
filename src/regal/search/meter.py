"""One budget for all searches of a model: its entries, its bodies, its sub-buffer variants."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from regal.search.types import Budget

if TYPE_CHECKING:
    from regal.search.devices.types import DeviceOutcome
    from regal.search.types import Outcome


@dataclass(slots=True)
class Meter:
    """What the searches of one model may still spend, and what they have spent.

    A run that the clock ended is repeated by its number of evaluations: every search but the
    last has a cap that depends on the graph alone, and once the meter is used up further
    searches spend nothing. The first one always runs, if only for its cheapest orders: a plan
    of no evaluations could not be repeated.
    """

    evaluations: int | None = None
    seconds: float | None = None
    started: float = field(default_factory=time.perf_counter)
    spent: int = 0

    @property
    def is_limited(self) -> bool:
        """Return whether the caller set a limit."""
        return self.evaluations is not None or self.seconds is not None

    def budget(self, cap: int | None) -> Budget | None:
        """Return what one search may spend, at most `cap` evaluations; None: nothing is left."""
        limits = [] if cap is None else [cap]
        if self.evaluations is not None:
            limits.append(self.evaluations - self.spent)
        seconds = None
        if self.seconds is not None:
            seconds = max(0.0, self.seconds - (time.perf_counter() - self.started))
        is_used_up = min(limits, default=1) < 1 or seconds == 0
        if is_used_up and self.spent > 0:
            return None
        return Budget(evaluations=min(limits, default=None), seconds=seconds)

    def charge(self, outcome: Outcome | DeviceOutcome) -> None:
        """Count what a search spent; one that Ctrl-C ended is the last."""
        self.spent += outcome.evaluations
        if outcome.was_interrupted:
            self.evaluations = self.spent
