"""The memory plan that a file may already carry (OfflineMemoryAllocation metadata).

For ops whose kernels are known, the plan may be replaced. A custom op compiled for an
accelerator may depend on where its tensors lie relative to each other (Vela's `ethos-u`
addresses its inputs inside its scratch tensor). In files with custom ops, tensors that share
bytes at the same time are therefore kept together, as one storage.

Format: int32 version, number of subgraphs, n; then n offsets from the start of the arena,
for the tensors of all subgraphs, -1 = planned at run time (micro_allocation_info.cc).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Final

from regal.errors import ModelError
from regal.frontends.tflite.model import OFFLINE_PLAN
from regal.graph.types import ABSENT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.frontends.tflite.model import TfliteFile

UNPLANNED: Final = -1
_MOST_COMPARED: Final = 2000


@dataclass(frozen=True, slots=True)
class Aliases:
    """Tensor -> (storage, offset in it), and the order that their ops must keep."""

    storage: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    control_inputs: tuple[tuple[int, ...], ...] = ()


def offline_offsets(file: TfliteFile) -> list[tuple[int, ...]] | None:
    """Return the offsets per subgraph, or None when the file carries no plan.

    TFLM obeys the last entry of that name.

    Raises:
        ModelError: the plan is cut short or made for another number of tensors.
    """
    entries = [entry for entry in file.metadata if entry.name == OFFLINE_PLAN]
    if not entries:
        return None
    data = file.buffer_data(entries[-1].buffer)
    total = sum(len(s.tensors) for s in file.subgraphs)
    n = struct.unpack_from("<I", data, 8)[0] if len(data) >= 12 else -1
    if n != total or len(data) < 12 + 4 * n:
        raise ModelError(
            f"metadata '{OFFLINE_PLAN}' has {len(data)} bytes for {n} tensors;"
            f" the model has {total} tensors"
        )
    offsets = struct.unpack_from(f"<{n}i", data, 12)
    split, start = [], 0
    for subgraph in file.subgraphs:
        split.append(offsets[start : start + len(subgraph.tensors)])
        start += len(subgraph.tensors)
    return split


def kept_aliases(file: TfliteFile, index: int) -> Aliases:
    """Return which tensors of subgraph `index` must stay together; none without custom ops."""
    offsets = offline_offsets(file) if file.custom_codes() else None
    if offsets is None:
        return Aliases()
    lives = _planned_lives(file, index, offsets[index])
    groups = _overlapping_groups(lives)
    storage: dict[int, tuple[int, int]] = {}
    before: list[set[int]] = [set() for _ in file.subgraphs[index].operators]
    for group in groups:
        base = min(lives[t].offset for t in group)
        for t in group:
            storage[t] = (min(group), lives[t].offset - base)
        users = sorted({op for t in group for op in lives[t].users})
        for earlier, later in pairwise(users):
            before[later].add(earlier)
    return Aliases(storage, tuple(tuple(sorted(ops)) for ops in before))


@dataclass(slots=True)
class _Life:
    offset: int
    end: int
    first: int
    last: int
    users: list[int]


def _planned_lives(file: TfliteFile, index: int, offsets: tuple[int, ...]) -> dict[int, _Life]:
    subgraph = file.subgraphs[index]
    users_of: dict[int, list[int]] = {}
    for i, op in enumerate(subgraph.operators):
        for t in {*op.inputs, *op.outputs} - {ABSENT}:
            users_of.setdefault(t, []).append(i)
    given, kept = set(subgraph.inputs), set(subgraph.outputs)
    lives: dict[int, _Life] = {}
    last_step = len(subgraph.operators) - 1
    for t, (tensor, offset) in enumerate(zip(subgraph.tensors, offsets, strict=True)):
        users = users_of.get(t)
        if offset == UNPLANNED or tensor.data_bytes or not users:
            continue
        size = prod(tensor.shape) * max(tensor.type.bits // 8, 1)
        first = 0 if t in given else users[0]
        last = last_step if t in kept else users[-1]
        lives[t] = _Life(offset, offset + size, first, last, users)
    return lives


def _overlapping_groups(lives: dict[int, _Life]) -> list[list[int]]:
    """Return groups of two or more tensors that share bytes at the same time."""
    root = {t: t for t in lives}

    def find(t: int) -> int:
        while root[t] != t:
            root[t] = root[root[t]]
            t = root[t]
        return t

    by_offset = sorted(lives, key=lambda t: lives[t].offset)
    if len(by_offset) > _MOST_COMPARED:  # too many for pairs: join what shares bytes at any time
        reach = by_offset[0]
        for t in by_offset[1:]:
            if lives[t].offset < lives[reach].end:
                root[t] = find(reach)
            reach = max(reach, t, key=lambda i: lives[i].end)
        by_offset = []
    for position, a in enumerate(by_offset):
        for b in by_offset[position + 1 :]:
            if lives[b].offset >= lives[a].end:
                break
            if lives[b].first <= lives[a].last and lives[a].first <= lives[b].last:
                root[find(b)] = find(a)
    groups: dict[int, list[int]] = {}
    for t in lives:
        groups.setdefault(find(t), []).append(t)
    return [group for group in groups.values() if len(group) > 1]
