"""Judge the memory plan of a schedule: every instance of a storage on a device has its bytes."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regal._native import OffsetFault, check_offsets
from regal.errors import PlanError
from regal.graph.memory import counted_storages
from regal.graph.types import ABSENT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal._native import OffsetVerdict
    from regal.devices.types import System
    from regal.graph.types import Graph
    from regal.plan.schedule import Copy, Figures, SchedulePlan
    from regal.plan.types import Allocation

    Instance = tuple[int, int]  # storage, device
    Life = tuple[int, int]  # ns, half-open


@dataclass(slots=True, kw_only=True)
class _Buffer:
    """One block of bytes on a device: a chain of in-place storages, or the workspace of an op."""

    name: str
    start_ns: int
    end_ns: int
    bytes: int
    offset: int


class _Names:
    """Says what a buffer is called."""

    def __init__(self, graph: Graph, system: System) -> None:
        self._owner: dict[int, str] = {}
        for tensor in graph.tensors:
            self._owner.setdefault(tensor.storage, tensor.name)
        self.devices = [device.name for device in system.devices]

    def of(self, storage: int, device: int) -> str:
        owner = self._owner.get(storage, str(storage))
        known = 0 <= device < len(self.devices)
        return f"buffer '{owner}' on '{self.devices[device] if known else device}'"


def require_valid_memory(
    graph: Graph, system: System, plan: SchedulePlan, figures: Figures
) -> None:
    """Check that each instance lies inside its device's arena for its whole life, alone.

    Instances joined by an in-place pair share bytes. Lives are found here by walking ops and
    transfers, not by what the packer used: a wrong life there must not pass here.

    Raises:
        PlanError: names the buffers, their bytes and steps.
    """
    names = _Names(graph, system)
    lives = _lives(graph, plan, figures)
    steps = _steps(plan, figures, lives, len(system.devices))
    copies = _copies(graph, names, plan, lives, steps)
    buffers = _chains(graph, names, plan, copies)
    for device, blocks in _workspaces(graph, names, plan, figures, steps).items():
        buffers[device] += blocks
    if len(plan.arena_bytes) != len(system.devices):
        raise PlanError(
            f"plan of '{graph.name}' states {len(plan.arena_bytes)} arenas for"
            f" {len(system.devices)} devices"
        )
    for device, arena in enumerate(plan.arena_bytes):
        _require_apart(buffers[device], arena, graph.alignment, names.devices[device])


def _lives(graph: Graph, plan: SchedulePlan, figures: Figures) -> dict[Instance, Life]:
    """Return when each instance that takes bytes lives, as a half-open interval in ns."""
    counted = counted_storages(graph)
    storage = [tensor.storage for tensor in graph.tensors]
    placement = plan.schedule.placement
    begin: dict[Instance, int] = {}
    end: dict[Instance, int] = {}
    made_on = dict(plan.schedule.homes)
    for i, op in enumerate(graph.ops):
        for tensor in (*op.inputs, *op.outputs):
            if tensor != ABSENT:
                key = storage[tensor], placement[i]
                end[key] = max(end.get(key, 0), figures.op_end_ns[i])
        for tensor in op.outputs:
            if tensor != ABSENT:
                key = storage[tensor], placement[i]
                begin[key] = min(begin.get(key, figures.op_start_ns[i]), figures.op_start_ns[i])
                made_on[tensor] = placement[i]
    for transfer, start, stop in zip(
        plan.schedule.transfers, figures.transfer_start_ns, figures.transfer_end_ns, strict=True
    ):
        there = storage[transfer.tensor], transfer.target
        here = storage[transfer.tensor], transfer.source
        begin[there] = min(begin.get(there, start), start)
        end[there] = max(end.get(there, stop), stop)
        end[here] = max(end.get(here, stop), stop)
    for tensor, device in plan.schedule.homes.items():
        begin[storage[tensor], device] = 0
    for tensor in graph.outputs:
        if tensor in made_on:
            end[storage[tensor], made_on[tensor]] = figures.time_ns
    return {
        key: (start, end[key])
        for key, start in begin.items()
        if key[0] in counted and start < end.get(key, 0)
    }


def _steps(
    plan: SchedulePlan, figures: Figures, lives: Mapping[Instance, Life], n_devices: int
) -> list[list[int]]:
    """Return, per device, the ascending times in ns at which an op or an instance begins there."""
    times: list[set[int]] = [set() for _ in range(n_devices)]
    for device, start in zip(plan.schedule.placement, figures.op_start_ns, strict=True):
        times[device].add(start)
    for (_, device), (start, _) in lives.items():
        times[device].add(start)
    return [sorted(found) for found in times]


def _copies(
    graph: Graph,
    names: _Names,
    plan: SchedulePlan,
    lives: Mapping[Instance, Life],
    steps: list[list[int]],
) -> dict[Instance, Copy]:
    """Return the planned copies by storage and device, once their lives and sizes are right."""
    sizes = counted_storages(graph)
    found: dict[Instance, Copy] = {}
    for copy in plan.copies:
        key = copy.storage, copy.allocation.device
        name = names.of(*key)
        if key in found:
            raise PlanError(f"{name} is planned twice")
        if key not in lives:
            raise PlanError(f"{name} is planned, but never in use there")
        found[key] = copy
        if (copy.start_ns, copy.end_ns) != lives[key]:
            raise PlanError(
                f"{name} is planned for [{copy.start_ns}, {copy.end_ns}) ns; it lives"
                f" [{lives[key][0]}, {lives[key][1]}) ns"
            )
        if copy.allocation.bytes < sizes[copy.storage]:
            raise PlanError(
                f"{name} is planned with {copy.allocation.bytes} bytes; it has"
                f" {sizes[copy.storage]}"
            )
        _require_steps(name, copy.allocation, lives[key], steps[key[1]])
    missing = next((key for key in sorted(lives) if key not in found), None)
    if missing is not None:
        raise PlanError(f"{names.of(*missing)} has no offset")
    return found


def _require_steps(name: str, allocation: Allocation, life: Life, steps: list[int]) -> None:
    first, last = bisect_left(steps, life[0]), bisect_left(steps, life[1]) - 1
    if (allocation.first_step, allocation.last_step) != (first, last):
        raise PlanError(
            f"{name} is planned in steps {allocation.first_step}-{allocation.last_step}; it lives"
            f" in steps {first}-{last}"
        )


def _chains(
    graph: Graph, names: _Names, plan: SchedulePlan, copies: Mapping[Instance, Copy]
) -> list[list[_Buffer]]:
    """Return the buffers of each device; instances joined by in-place pairs are one."""
    writer = {tensor: i for i, op in enumerate(graph.ops) for tensor in op.outputs}
    next_of: dict[Instance, Instance] = {}
    for source, target in plan.schedule.in_place:
        device = plan.schedule.placement[writer[target]]
        ends = [graph.tensors[t].storage for t in (source, target)]
        next_of[ends[0], device] = (ends[1], device)
    later = set(next_of.values())
    buffers: list[list[_Buffer]] = [[] for _ in names.devices]
    for key in copies:
        if key in later:
            continue
        chain = [key]
        while chain[-1] in next_of:
            chain.append(next_of[chain[-1]])
        parts = [copies[part] for part in chain]
        name = names.of(*key)
        other = next((c for c in parts if c.allocation.offset != parts[0].allocation.offset), None)
        if other is not None:
            raise PlanError(
                f"{name} shares bytes in place with {names.of(other.storage, key[1])},"
                f" but they have offsets {parts[0].allocation.offset} and {other.allocation.offset}"
            )
        buffers[key[1]].append(
            _Buffer(
                name=name,
                start_ns=min(part.start_ns for part in parts),
                end_ns=max(part.end_ns for part in parts),
                bytes=max(part.allocation.bytes for part in parts),
                offset=parts[0].allocation.offset,
            )
        )
    return buffers


def _workspaces(
    graph: Graph, names: _Names, plan: SchedulePlan, figures: Figures, steps: list[list[int]]
) -> dict[int, list[_Buffer]]:
    """Return, per device, the blocks of scratch and bodies, once they are large enough."""
    blocks: dict[int, list[_Buffer]] = {device: [] for device in range(len(names.devices))}
    for i, op in enumerate(graph.ops):
        need = op.workspace_bytes + max((b.arena_bytes for b in plan.bodies.get(i, ())), default=0)
        block = plan.workspaces.get(i)
        if need > (block.bytes if block else 0):
            raise PlanError(
                f"op '{op.name}' needs a block of {need} bytes for its bodies and scratch,"
                f" the plan gives {block.bytes if block else 0}"
            )
        if block is None:
            continue
        device = plan.schedule.placement[i]
        name = f"workspace of op '{op.name}' on '{names.devices[device]}'"
        if block.device != device:
            raise PlanError(f"{name} is planned on device {block.device}")
        life = figures.op_start_ns[i], figures.op_end_ns[i]
        _require_steps(name, block, life, steps[device])
        blocks[device].append(
            _Buffer(
                name=name, start_ns=life[0], end_ns=life[1], bytes=block.bytes, offset=block.offset
            )
        )
    extra = sorted(set(plan.workspaces) - set(range(len(graph.ops))))
    if extra:
        raise PlanError(
            f"plan of '{graph.name}' has a block of op {extra[0]}, which does not exist"
        )
    return blocks


def _require_apart(buffers: list[_Buffer], arena: int, alignment: int, device: str) -> None:
    rows = [(b.start_ns, b.end_ns - 1, b.bytes, b.offset) for b in buffers]
    verdict = check_offsets(np.array(rows, dtype=np.int64).reshape(-1, 4), arena, alignment)
    if verdict.fault is not OffsetFault.NONE:
        raise PlanError(_offset_message(buffers, arena, alignment, device, verdict))


def _offset_message(
    buffers: list[_Buffer], arena: int, alignment: int, device: str, verdict: OffsetVerdict
) -> str:
    def place(buffer: _Buffer) -> str:
        return f"{buffer.name} at bytes [{buffer.offset}, {buffer.offset + buffer.bytes})"

    a = buffers[verdict.first]
    match verdict.fault:
        case OffsetFault.OVERLAP:
            b = buffers[verdict.second]
            start, end = max(a.start_ns, b.start_ns), min(a.end_ns, b.end_ns)
            return f"{place(a)} overlaps {place(b)} during [{start}, {end}) ns"
        case OffsetFault.NEGATIVE:
            return f"{place(a)} starts before the arena"
        case OffsetFault.MISALIGNED:
            return f"{place(a)} is not aligned to {alignment} bytes"
        case OffsetFault.PAST_END:
            return f"{place(a)} ends after the arena of {arena} bytes of '{device}'"
    return f"{place(a)}: {verdict.fault.name.lower()}"
