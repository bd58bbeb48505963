"""Place buffers that at times use only a part of their bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regal._native import solve_windows
from regal.errors import UsageError
from regal.search.offsets import FREE, AllocationOutcome, default_nodes, outcome_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal._native import Cancel

_LARGEST_SUM = 2**61


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """During its steps the buffer uses only the bytes [low, high) of itself."""

    first_step: int
    last_step: int  # included
    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowedBuffer:
    """A buffer whose use changes over time; between its pieces it is inactive."""

    bytes: int
    pieces: tuple[Piece, ...]
    alignment: int = 1
    fixed: int = FREE


def place_windowed(
    buffers: Sequence[WindowedBuffer],
    *,
    capacity: int | None = None,
    max_nodes: int | None = None,
    seconds: float | None = None,
    cancel: Cancel | None = None,
) -> AllocationOutcome:
    """Return offsets such that no byte is used by two buffers at one step.

    Windows let buffers interlock, so this search has weaker bounds than `allocate`: it proves
    optima for tens of buffers, and places more greedily.

    Args:
        buffers: n of them.
        capacity: bytes below which everything must end; None: minimize.
        max_nodes: of the search; None: enough for about 50 ms.
        seconds: of wall time.
        cancel: ends the search from another thread.

    Raises:
        UsageError: a piece leaves its buffer, ends before it starts, or sums pass 2^61.

    Cost: pairs of pieces per node.
    """
    total = 0
    for i, buffer in enumerate(buffers):
        total += abs(buffer.bytes) + abs(buffer.alignment) + max(buffer.fixed, 0)
        steps = [abs(step) for p in buffer.pieces for step in (p.first_step, p.last_step)]
        if buffer.alignment < 1 or max(buffer.fixed, 0) % max(buffer.alignment, 1) != 0:
            raise UsageError(
                f"buffer {i}: offset {buffer.fixed} is no multiple of alignment {buffer.alignment}"
            )
        if total > _LARGEST_SUM or max(steps, default=0) > _LARGEST_SUM:
            raise UsageError(f"buffer {i}: the sizes, offsets or steps pass 2^61")
        for p in buffer.pieces:
            if p.first_step > p.last_step or not 0 <= p.low < p.high <= buffer.bytes:
                raise UsageError(
                    f"buffer {i}: piece of bytes [{p.low}, {p.high}) in steps {p.first_step}-"
                    f"{p.last_step} is empty or outside the buffer's {buffer.bytes} bytes"
                )
    pieces = [
        (i, p.first_step, p.last_step, p.low, p.high)
        for i, buffer in enumerate(buffers)
        for p in buffer.pieces
    ]
    result = solve_windows(
        np.array([(b.bytes, b.alignment, b.fixed) for b in buffers], dtype=np.int64).reshape(-1, 3),
        np.array(pieces, dtype=np.int64).reshape(-1, 5),
        FREE if capacity is None else max(capacity, 0),
        default_nodes(len(buffers)) if max_nodes is None else max_nodes,
        0.0 if seconds is None else max(seconds, 1e-9),
        cancel,
    )
    return outcome_of(result, result.offsets, capacity)
