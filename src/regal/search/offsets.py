"""Assign byte offsets to buffers with known lifetimes: static memory allocation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from regal._native import (
    OffsetGreedyRule,
    OffsetInputFault,
    OffsetProblem,
    OffsetStatus,
    build_offset_problem,
    place_greedily,
    solve_offsets,
)
from regal.errors import UsageError
from regal.units import round_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from regal._native import Cancel, OffsetInputVerdict, OffsetResult

    Ints = Sequence[int] | NDArray[np.int64]

FREE = -1  # no fixed offset, no hint


class AllocationStatus(StrEnum):
    """How an allocation ended."""

    OPTIMAL = "optimal"  # proven: no placement ends lower
    FITS = "fits"  # a capacity was given, and everything lies below it
    INFEASIBLE = "infeasible"  # proven: nothing fits into the capacity
    LIMIT = "limit"  # the limits came first; without a capacity the offsets are legal


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationOutcome:
    """Offsets, and what is known about better ones.

    `offsets` has one entry per buffer. With a capacity that was not met it is empty, and
    `arena_bytes` is the smallest arena that was found.
    """

    status: AllocationStatus
    offsets: NDArray[np.int64]  # (n,) bytes, or (0,)
    is_placed: bool  # whether `offsets` holds a placement, below the capacity if there is one
    arena_bytes: int
    lower_bound: int  # proven: no placement ends lower
    clashing: tuple[int, ...]  # two fixed buffers that overlap, or nothing
    fullest_step: int  # a step with the most live bytes
    fullest_bytes: int  # the live bytes there, each buffer rounded up to the alignment
    nodes: int  # the part of `max_nodes` that was used


def allocate(
    first_step: Ints,
    last_step: Ints,
    sizes: Ints,
    *,
    alignment: int | Ints = 1,
    capacity: int | None = None,
    fixed: Ints | None = None,
    hints: Ints | None = None,
    gaps: Sequence[tuple[int, int, int]] = (),
    reserved: Sequence[tuple[int, int]] = (),
    seed: int = 0,
    max_nodes: int | None = None,
    seconds: float | None = None,
    cancel: Cancel | None = None,
) -> AllocationOutcome:
    """Return offsets such that buffers that are live together share no byte.

    Without a capacity the arena is minimized; with one, any placement below it is an answer.
    Buffers of 0 bytes get offset 0 (or their fixed offset). Same input, seed and `max_nodes`:
    same offsets, unless `seconds` or `cancel` end the search earlier.

    Args:
        first_step: (n,) first step at which each buffer is live.
        last_step: (n,) last one, included.
        sizes: (n,) bytes.
        alignment: of every offset. One number for all: then sizes count as whole multiples
            of it, in the arena too. (n,) numbers: then only offsets are rounded.
        capacity: bytes below which everything must end.
        fixed: (n,) required offsets, -1 where free.
        hints: (n,) wished offsets, -1 for none; they order the first try, nothing more.
        gaps: (buffer, first step, last step) in which a buffer is inactive; it keeps its
            offset, and others may use its bytes in between.
        reserved: (low, high) byte ranges that no buffer may touch at any step.
        seed: of all random choices.
        max_nodes: of the search; None: enough for about 50 ms.
        seconds: of wall time; None: no limit.
        cancel: ends the search from another thread.

    Raises:
        UsageError: the arguments contradict each other; names the buffer.

    Cost: O(n^2) for the greedy start, then what `max_nodes` allows.
    """
    size = _array(sizes)
    rows = _Rows(
        first=_array(first_step),
        last=_array(last_step),
        size=size,
        alignment=_array(alignment) if not isinstance(alignment, int) else _full(size, alignment),
        fixed=_full(size, FREE) if fixed is None else _array(fixed),
        hint=_full(size, FREE) if hints is None else _array(hints),
    )
    rows.require_equal_lengths()
    if isinstance(alignment, int):
        if alignment < 1:
            raise UsageError(f"allocate: alignment is {alignment}; give 1 or more")
        rows.size = round_up(size, alignment)
    problem, kept = _problem(rows, gaps, reserved)
    if max_nodes is None:
        max_nodes = default_nodes(size.size)
    result = solve_offsets(
        problem,
        FREE if capacity is None else max(capacity, 0),
        max_nodes,
        0.0 if seconds is None else max(seconds, 1e-9),
        seed,
        cancel,
    )
    clashing: tuple[int, ...] = ()
    if problem.first_clashing >= 0:
        pair = (problem.first_clashing, problem.second_clashing)
        clashing = tuple(int(kept[i]) for i in pair if i < kept.size)
    return outcome_of(result, _spread(result.offsets, kept, rows), capacity, clashing)


def outcome_of(
    result: OffsetResult,
    offsets: NDArray[np.int64],
    capacity: int | None,
    clashing: tuple[int, ...] = (),
) -> AllocationOutcome:
    """Return the outcome for a native result; offsets above the capacity are left out."""
    status = {
        OffsetStatus.OPTIMAL: AllocationStatus.OPTIMAL
        if capacity is None
        else AllocationStatus.FITS,
        OffsetStatus.INFEASIBLE: AllocationStatus.INFEASIBLE,
        OffsetStatus.LIMIT: AllocationStatus.LIMIT,
    }[result.status]
    is_placed = status in (AllocationStatus.OPTIMAL, AllocationStatus.FITS) or (
        status is AllocationStatus.LIMIT and capacity is None
    )
    return AllocationOutcome(
        status=status,
        offsets=offsets if is_placed else np.zeros(0, dtype=np.int64),
        is_placed=is_placed,
        arena_bytes=result.arena_bytes,
        lower_bound=result.lower_bound,
        clashing=clashing,
        fullest_step=result.fullest_step,
        fullest_bytes=result.fullest_bytes,
        nodes=result.nodes,
    )


def greedy_by_size(
    first_step: Ints, last_step: Ints, sizes: Ints, *, alignment: int = 1
) -> AllocationOutcome:
    """Return what TFLM's GreedyMemoryPlanner does: the baseline to beat.

    Largest first, ties towards the later buffer, each into the lowest gap that is large enough.

    Source: tflite-micro, greedy_memory_planner.cc. Cost: O(n^2).
    """
    size = _array(sizes)
    rows = _Rows(
        first=_array(first_step),
        last=_array(last_step),
        size=round_up(size, alignment),
        alignment=_full(size, alignment),
        fixed=_full(size, FREE),
        hint=_full(size, FREE),
    )
    rows.require_equal_lengths()
    problem, kept = _problem(rows, (), ())
    result = place_greedily(problem, OffsetGreedyRule.SIZE_LATER_FIRST)
    return outcome_of(result, _spread(result.offsets, kept, rows), None)


def native_problem(
    first_step: Ints, last_step: Ints, sizes: Ints, *, alignment: int, fixed: Ints
) -> OffsetProblem:
    """Return the kernel's form of buffers that all have bytes."""
    size = _array(sizes)
    rows = _Rows(
        first=_array(first_step),
        last=_array(last_step),
        size=size,
        alignment=_full(size, alignment),
        fixed=_array(fixed),
        hint=_full(size, FREE),
    )
    rows.require_equal_lengths()
    return _problem(rows, (), ())[0]


def default_nodes(n_buffers: int) -> int:
    """Return the node limit that takes about 50 ms on one core."""
    # A node costs about 4 ns per buffer (measured: 2 us at 500, 30 us at 5,000).
    return min(max(10_000_000 // max(n_buffers, 1), 6_000), 60_000)


@dataclass(slots=True)
class _Rows:
    """The buffers as arrays of one length."""

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    size: NDArray[np.int64]
    alignment: NDArray[np.int64]
    fixed: NDArray[np.int64]
    hint: NDArray[np.int64]

    def require_equal_lengths(self) -> None:
        columns = (self.first, self.last, self.size, self.alignment, self.fixed, self.hint)
        lengths = [column.size for column in columns]
        if len(set(lengths)) > 1:
            raise UsageError(
                f"allocate: first_step, last_step, sizes, alignment, fixed and hints have"
                f" {lengths} entries; give one per buffer"
            )


def _array(values: Ints) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise UsageError(
            f"allocate: expected a list of whole numbers, found {array.dtype} of shape"
            f" {array.shape}"
        )
    return np.ascontiguousarray(array, dtype=np.int64)


def _full(like: NDArray[np.int64], value: int) -> NDArray[np.int64]:
    return np.full(like.size, value, dtype=np.int64)


def _problem(
    rows: _Rows, gaps: Sequence[tuple[int, int, int]], reserved: Sequence[tuple[int, int]]
) -> tuple[OffsetProblem, NDArray[np.int64]]:
    """Return the native problem, and the positions of the buffers that take bytes at all."""
    kept = np.flatnonzero(rows.size != 0)
    position = np.full(rows.size.size, -1, dtype=np.int64)
    position[kept] = np.arange(kept.size)
    gap_rows = [
        (int(position[b]), first, last)
        for b, first, last in gaps
        if not 0 <= b < position.size or position[b] >= 0
    ]
    problem = OffsetProblem()
    verdict = build_offset_problem(
        problem,
        np.ascontiguousarray(rows.first[kept]),
        np.ascontiguousarray(rows.last[kept]),
        np.ascontiguousarray(rows.size[kept]),
        np.ascontiguousarray(rows.alignment[kept]),
        np.ascontiguousarray(rows.fixed[kept]),
        np.ascontiguousarray(rows.hint[kept]),
        np.array(gap_rows, dtype=np.int64).reshape(-1, 3),
        np.array(reserved, dtype=np.int64).reshape(-1, 2),
    )
    if verdict.fault is not OffsetInputFault.NONE:
        raise UsageError(_message(verdict, rows, kept))
    return problem, kept


def _message(verdict: OffsetInputVerdict, rows: _Rows, kept: NDArray[np.int64]) -> str:
    fault = verdict.fault
    if not 0 <= verdict.guilty < kept.size:
        if fault is OffsetInputFault.BAD_OFFSET:
            return "allocate: a reserved range is empty or starts before byte 0"
        if fault is OffsetInputFault.BAD_GAP:
            return "allocate: a gap names a buffer that does not exist"
        return "allocate: the sizes, offsets and alignments add up to more than 2^61 bytes"
    b = int(kept[verdict.guilty])
    steps = f"steps {rows.first[b]}-{rows.last[b]}"
    texts = {
        OffsetInputFault.EMPTY: f"has {rows.size[b]} bytes; give 0 or more",
        OffsetInputFault.INVERTED: f"has {steps}: it ends before it starts",
        OffsetInputFault.BAD_ALIGNMENT: f"has alignment {rows.alignment[b]}; give 1 or more",
        OffsetInputFault.BAD_OFFSET: f"has the hint {rows.hint[b]}; give {FREE} for none"
        if rows.hint[b] < FREE
        else f"has the fixed offset {rows.fixed[b]}, which is negative"
        f" or no multiple of its alignment {rows.alignment[b]}",
        OffsetInputFault.BAD_GAP: f"has {steps} and a gap that is inverted or leaves nothing",
        OffsetInputFault.TOO_LARGE: f"has {rows.size[b]} bytes in {steps}, aligned to"
        f" {rows.alignment[b]}: all sums must stay below 2^61",
    }
    return f"allocate: buffer {b} {texts[fault]}"


def _spread(offsets: NDArray[np.int64], kept: NDArray[np.int64], rows: _Rows) -> NDArray[np.int64]:
    """Return the offsets of all buffers; those without bytes lie anywhere."""
    spread = np.maximum(rows.fixed, 0)
    if kept.size > offsets.size:  # nothing was placed
        return np.zeros(0, dtype=np.int64)
    spread[kept] = offsets[: kept.size]
    return spread
