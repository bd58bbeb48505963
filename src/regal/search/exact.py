"""Exact search for the order of lowest peak on one device, with proofs.

All functions read `regal._native.OrderProblem`; ops are its indices. None depends on the
clock unless `seconds` is given: the same call then finds the same answer on every machine.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from regal import _native
from regal.search.legal import require_legal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

NO_ORDER = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactOutcome:
    """The best order that an exact search knows, and what it has proven."""

    order: tuple[int, ...]
    peak_bytes: int  # of `order`
    lower_bound: int  # no order has a lower peak
    states: int  # effort: about one per visited set of done ops

    @property
    def is_optimal(self) -> bool:
        """Return whether `order` is proven to be the best."""
        return self.peak_bytes == self.lower_bound


def solve_exact(
    problem: _native.OrderProblem,
    *,
    max_states: int = 200_000,
    limit: int | None = None,
    seconds: float | None = None,
    hint: Sequence[int] = (),
    cancel: _native.Cancel | None = None,
) -> ExactOutcome:
    """Return the order of lowest peak that `max_states` suffice to find, and its proof.

    Args:
        problem: N ops.
        max_states: effort at most: one per visited set of done ops, more where it has many
            moves (about a microsecond each). The result is the same on every machine.
        limit: states after which the search stops with what it knows, though it was planned
            for `max_states`: repeats a search that `seconds` ended after so many.
        seconds: wall time after which the search stops with what it knows.
        hint: a legal order of the N ops; the result is never worse, and is `hint` itself
            where nothing better was found.
        cancel: stops the search from another thread.

    Raises:
        PlanError: `hint` is not a legal order.

    Source: Ahn et al. 2020, arXiv:2003.02369 (dynamic programming over downsets with a
    budget, divided at single-op cuts). Added here: moves that are forced
    (native/order_within.h), both directions, minimum cuts as bounds (native/cut_bound.h) and
    as proof of valleys (native/valley.h), twins in sequence (native/twins.h).
    Cost: O(max_states) time; 1 GiB of memory at most.
    """
    if len(hint):
        require_legal(problem, hint)
    found = _run(
        lambda stop: _native.solve_exact(
            problem, _ints(hint), max_states, max_states if limit is None else limit, seconds, stop
        ),
        cancel,
    )
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

    Better of the two directions of time: training graphs are easy backwards.

    Cost: O(N * width * (ready ops * touches)).
    """
    floor = _native.peak_bound(problem)
    order = _run(lambda stop: _native.beam_order(problem, width, floor, seconds, stop), cancel)
    return tuple(order.tolist())


def improve_windows(
    problem: _native.OrderProblem,
    order: Sequence[int],
    *,
    width: int = 60,
    max_states: int = 200_000,
    limit: int | None = None,
    seconds: float | None = None,
    cancel: _native.Cancel | None = None,
) -> tuple[tuple[int, ...], int]:
    """Return `order` with stretches of `width` steps around its peak solved, and the states spent.

    The peak never rises. `max_states` and `limit` count all stretches together (see
    `solve_exact`); each may use a tenth of `max_states`.

    Raises:
        PlanError: `order` is not a legal order.

    Cost: O(N) per stretch, besides the search.
    """
    require_legal(problem, order)
    floor = _native.peak_bound(problem)
    most = max(1, max_states // 10)
    last = max_states if limit is None else limit
    better, states = _run(
        lambda stop: _native.improve_windows(
            problem, _ints(order), width, floor, most, max_states, last, seconds, stop
        ),
        cancel,
    )
    return tuple(better.tolist()), states


def lower_bound(problem: _native.OrderProblem) -> int:
    """Return a peak in bytes that no order of `problem` can beat.

    The largest need of a single op: what is live during its step in every order.
    """
    return _native.peak_bound(problem)


def _run(call: Callable[[_native.Cancel], T], cancel: _native.Cancel | None) -> T:
    """Return what `call` returns; Ctrl-C ends it early.

    With a `cancel` of the caller, Ctrl-C sets it and what was found so far comes back.
    """
    stop = cancel or _native.Cancel()
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(call, stop)
        try:
            return future.result()
        except KeyboardInterrupt:
            stop.cancel()
            if cancel is None:
                raise
            return future.result()


def _ints(values: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.asarray(values, np.int64) if len(values) else NO_ORDER
