"""What every search method takes and returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from regal.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from regal._native import Cancel, OrderProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much a search may do; what comes first ends it. At least one limit is set.

    One evaluation is one decoded and simulated plan. `seconds` are wall time. A run that
    `seconds` ended reports its evaluations, and a run with that number repeats it exactly.
    """

    evaluations: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.evaluations is None and self.seconds is None:
            raise UsageError("budget: no limit is set; give evaluations, seconds, or both")
        if self.evaluations is not None and self.evaluations < 1:
            raise UsageError(f"budget: evaluations is {self.evaluations}; give 1 or more")
        if self.seconds is not None and not self.seconds >= 0:
            raise UsageError(f"budget: seconds is {self.seconds}; give 0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The best order that a method found."""

    order: NDArray[np.int64]  # (n_ops,), legal
    peak_bytes: int
    evaluations: int  # plans simulated; 0 for methods that do not count them
    seconds: float  # wall time
    lower_bound: int  # proven: no order has a lower peak
    was_interrupted: bool = False  # Ctrl-C or a cancel object ended it early
    note: str = ""  # what a reader of the result must know, as "too large: hint returned"

    @property
    def is_optimal(self) -> bool:
        """Return whether no order has a lower peak: proven."""
        return self.peak_bytes <= self.lower_bound


class OrderMethod(Protocol):
    """A way to search for an order with a low peak."""

    def __call__(
        self,
        problem: OrderProblem,
        budget: Budget,
        *,
        seed: int,
        threads: int,
        stop_at: int,
        cancel: Cancel | None = None,
    ) -> Outcome:
        """Return the best order found, always a legal one.

        Args:
            problem: N ops, already checked.
            budget: when to stop.
            seed: the only source of randomness; same seed and evaluations, same order.
            threads: how many threads may be used; never changes the result.
            stop_at: a proven lower bound in bytes: the search ends when it is reached.
            cancel: ends the search from another thread; the best order so far is returned.
        """
        ...
