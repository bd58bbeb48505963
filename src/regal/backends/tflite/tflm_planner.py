"""What TFLM's own planner does with a file: which buffers it places, when they live, where.

It tells what TFLM will use when TFLM is not installed, and completes a plan where the
runtime would (tensors that are left to it, scratch buffers), for the C header.

Source: micro_allocation_info.cc and memory_planner/greedy_memory_planner.cc of
tensorflow/tflite-micro at 90b983c2b3f1; tests compare with the installed runtime.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from regal.frontends.tflite.arena import ALIGNMENT, arena_bytes
from regal.frontends.tflite.offline import UNPLANNED
from regal.frontends.tflite.scratch import scratch_sizes
from regal.frontends.tflite.state import resource_states
from regal.units import round_up

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from regal.frontends.tflite import TfliteSource
    from regal.frontends.tflite.model import FileOperator, FileSubgraph

_NEVER: Final = -1
# The others that run subgraphs are not walked by TFLM's planner.
_WALKED: Final = ("IF", "WHILE", "CALL_ONCE")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaBuffer:
    """One buffer of TFLM's head. `first` and `last` count TFLM's allocation scopes."""

    name: str
    bytes: int  # a multiple of 16
    first: int
    last: int
    offset: int  # planned offline, or UNPLANNED


def arena_buffers(
    source: TfliteSource,
    orders: Mapping[int, Sequence[int]],
    offsets: Sequence[int] | None,
) -> list[ArenaBuffer]:
    """Return all buffers of the head in TFLM's sequence: tensors, then scratch.

    Args:
        source: the model.
        orders: subgraph -> order of its operators; the file's where absent.
        offsets: one per tensor of all subgraphs, -1 = left to TFLM; None: no offline plan.
    """
    lives = _Lives(source, orders)
    buffers: list[ArenaBuffer] = []
    flat = 0
    for index, subgraph in enumerate(source.file.subgraphs):
        handles = resource_states(source.file, index)
        for t, tensor in enumerate(subgraph.tensors):
            offset = UNPLANNED if offsets is None else offsets[flat]
            flat += 1
            size = arena_bytes(tensor, source.shapes.of[index][t])
            is_kept = tensor.is_variable and offset == UNPLANNED
            if tensor.data_bytes or t in handles or is_kept or not size:
                continue
            first, last = lives.of.get((index, t), (_NEVER, _NEVER))
            buffers.append(
                ArenaBuffer(
                    name=tensor.name,
                    bytes=round_up(size, ALIGNMENT),
                    first=first,
                    last=last,
                    offset=offset,
                )
            )
    for index, subgraph in enumerate(source.file.subgraphs):
        for position in lives.order_of(index):
            op = subgraph.operators[position]
            first, last = lives.of_op.get((index, position), (_NEVER, _NEVER))
            for number, size in enumerate(_scratch_of(source, index, op)):
                buffers.append(
                    ArenaBuffer(
                        name=f"scratch {number} of {op.label} {position}",
                        bytes=round_up(size, ALIGNMENT),
                        first=first,
                        last=last,
                        offset=UNPLANNED,
                    )
                )
    return buffers


def place_like_tflm(buffers: Sequence[ArenaBuffer]) -> list[ArenaBuffer]:
    """Return the buffers with the offsets that TFLM's greedy planner gives them.

    Buffers with an offset keep it, unchecked. The others follow from large to small, equal
    sizes in reverse sequence, each into the first gap among the buffers that live with it.

    Cost: O(buffers^2).
    """
    online = [i for i, buffer in enumerate(buffers) if buffer.offset == UNPLANNED]
    online.reverse()
    online.sort(key=lambda i: -buffers[i].bytes)
    placed = {i: buffer.offset for i, buffer in enumerate(buffers) if buffer.offset != UNPLANNED}
    for i in online:
        wanted = buffers[i]
        end = 0
        neighbors = sorted(
            (offset, offset + buffers[j].bytes)
            for j, offset in placed.items()
            if buffers[j].first <= wanted.last and wanted.first <= buffers[j].last
        )
        for start, stop in neighbors:
            if start - end >= wanted.bytes:
                break
            end = max(end, stop)
        placed[i] = end
    return [replace(buffer, offset=placed[i]) for i, buffer in enumerate(buffers)]


def head_bytes(
    source: TfliteSource,
    orders: Mapping[int, Sequence[int]],
    offsets: Sequence[int] | None,
) -> int:
    """Return the size of the head that TFLM will report; see `arena_buffers`."""
    placed = place_like_tflm(arena_buffers(source, orders, offsets))
    return max((buffer.offset + buffer.bytes for buffer in placed), default=0)


def _scratch_of(source: TfliteSource, index: int, op: FileOperator) -> list[int]:
    tensors = source.graphs[index].tensors
    inputs = [None if t < 0 else tensors[t] for t in op.inputs]
    return scratch_sizes(op.kind, inputs, [tensors[t] for t in op.outputs if t >= 0])


class _Lives:
    """Walks the subgraphs as TFLM does, a scope per operator and per entered body."""

    def __init__(self, source: TfliteSource, orders: Mapping[int, Sequence[int]]) -> None:
        self.of: dict[tuple[int, int], tuple[int, int]] = {}
        self.of_op: dict[tuple[int, int], tuple[int, int]] = {}
        self._source = source
        self._orders = orders
        self._scope = 0
        self._walk(0)

    def order_of(self, index: int) -> Sequence[int]:
        """Return the order of the operators of a subgraph."""
        n = len(self._source.file.subgraphs[index].operators)
        return self._orders.get(index, range(n))

    def _walk(self, index: int) -> None:
        subgraph: FileSubgraph = self._source.file.subgraphs[index]
        for t in subgraph.inputs:
            self._touch(self.of, (index, t))
        for position in self.order_of(index):
            self._scope += 1
            op = subgraph.operators[position]
            for t in op.outputs:
                self._touch(self.of, (index, t))
            self._touch(self.of_op, (index, position))
            for body in op.bodies if op.kind in _WALKED else ():
                self._scope += 1
                self._walk(body)
            for t in (*op.inputs, *op.outputs):
                if t >= 0:
                    self._touch(self.of, (index, t), only_last=t in op.inputs)
            self._touch(self.of_op, (index, position))
        for t in subgraph.outputs:
            self._touch(self.of, (index, t))

    def _touch(
        self,
        lives: dict[tuple[int, int], tuple[int, int]],
        key: tuple[int, int],
        *,
        only_last: bool = False,
    ) -> None:
        """Extend a life to the current scope; reading alone does not begin one."""
        fresh = _NEVER if only_last else self._scope
        first = lives.get(key, (fresh, 0))[0]
        if first == _NEVER and not only_last:
            first = self._scope
        lives[key] = (first, self._scope)
