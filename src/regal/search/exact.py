"""Exact search for the order of lowest peak on one device, with proofs.

All functions read `regal._native.OrderProblem`; ops are its indices. None depends on the
clock unless `seconds` is given: the same call then finds the same answer on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regal import _native

if TYPE_CHECKING:
    from collections.abc import Sequence

NO_ORDER = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactOutcome:
    """The best order that an exact search knows, and what it has proven."""

    order: tuple[int, ...]
    peak_bytes: int  # of `order`
    lower_bound: int  # no order has a lower peak
    states: int  # sets of done ops that the search visited

    @property
    def is_optimal(self) -> bool:
        """Return whether `order` is proven to be the best."""
        return self.peak_bytes == self.lower_bound


def solve_exact(
    problem: _native.OrderProblem,
    *,
    max_states: int = 200_000,
    seconds: float | None = None,
    hint: Sequence[int] = (),
    cancel: _native.Cancel | None = None,
) -> ExactOutcome:
    """Return the order of lowest peak that `max_states` suffice to find, and its proof.

    Args:
        problem: N ops.
        max_states: sets of done ops to visit at most; the search is deterministic in it.
        seconds: wall time after which the search stops with what it knows.
        hint: a legal order of the N ops; the result is never worse.
        cancel: stops the search from another thread.

    Source: Ahn et al. 2020, arXiv:2003.02369 (dynamic programming over downsets with a
    budget), with moves that are forced (see native/order_within.h).
    Cost: O(max_states * (ready ops * touches)) time; 1 GiB of memory at most.
    """
    found = _native.solve_exact(problem, _ints(hint), max_states, seconds, cancel)
    return ExactOutcome(
        order=tuple(found.order.tolist()),
        peak_bytes=found.peak_bytes,
        lower_bound=found.lower_bound,
        states=found.states,
    )


def beam(
    problem: _native.OrderProblem,
    width: int,
    *,
    seconds: float | None = None,
    cancel: _native.Cancel | None = None,
) -> tuple[int, ...]:
    """Return the order that a beam of `width` downsets finds; empty if it was stopped.

    Cost: O(N * width * (ready ops * touches)).
    """
    floor = _native.peak_bound(problem)
    return tuple(_native.beam_order(problem, width, floor, seconds, cancel).tolist())


def improve_windows(
    problem: _native.OrderProblem,
    order: Sequence[int],
    *,
    width: int = 60,
    max_states: int = 200_000,
    seconds: float | None = None,
    cancel: _native.Cancel | None = None,
) -> tuple[int, ...]:
    """Return `order` after stretches of `width` steps around its peak were solved exactly.

    The peak never rises. `max_states` counts all stretches together; each may use a tenth.

    Cost: O(N) per stretch, besides the search.
    """
    floor = _native.peak_bound(problem)
    most = max(1, max_states // 10)
    better = _native.improve_windows(
        problem, _ints(order), width, floor, most, max_states, seconds, cancel
    )
    return tuple(better.tolist())


def lower_bound(problem: _native.OrderProblem) -> int:
    """Return a peak in bytes that no order of `problem` can beat.

    The largest need of a single op: what is live during its step in every order.
    """
    return _native.peak_bound(problem)


def _ints(values: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.asarray(values, np.int64) if len(values) else NO_ORDER
