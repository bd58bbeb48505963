"""What the kernel's driver (native/fuzz.cc) found: sizes near the limits of 64 bits."""

from __future__ import annotations

import numpy as np

from regal import _native
from tests.search.problems import build

HUGE = 1 << 60


def test_the_area_of_an_order_does_not_overflow() -> None:
    """Between equal peaks the smaller area wins, also where the bytes of all steps pass 2^63."""
    n = 16
    # Op 0 makes a huge storage, op 15 reads it; the others are free to run before or after.
    touches = [[0], *([] for _ in range(n - 2)), [0]]
    problem = build(edges=[(0, n - 1)], touches=touches, bytes_of=[HUGE])
    order, peak, _, _ = _native.local_search(
        problem=problem.native,
        start=np.arange(n, dtype=np.int64),
        is_annealing=False,
        seed=0,
        evaluations=3000,
        seconds=float("inf"),
        stop_at=0,
        cancel=_native.Cancel(),
    )
    assert peak == HUGE
    steps = [int(op) for op in order]
    assert steps.index(n - 1) - steps.index(0) == 1


def test_a_hint_below_none_is_refused() -> None:
    """Its negation has no place in 64 bits."""

    def ints(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array(values, dtype=np.int64)

    problem = _native.OffsetProblem()
    verdict = _native.build_offset_problem(
        problem,
        first_step=ints(0, 0),
        last_step=ints(1, 1),
        bytes=ints(4, 4),
        alignment=ints(1, 1),
        fixed=ints(-1, -1),
        hint=ints(0, -(1 << 63)),
        gaps=np.zeros((0, 3), dtype=np.int64),
        reserved=np.zeros((0, 2), dtype=np.int64),
    )
    assert (verdict.fault, verdict.guilty) == (_native.OffsetInputFault.BAD_OFFSET, 1)
