"""From a simulated schedule to a whole plan: every copy of a storage gets an offset."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from regal.plan.problem import pair_rows
from regal.plan.schedule import Copy, SchedulePlan
from regal.plan.schedule_rows import schedule_of
from regal.plan.types import Allocation
from regal.search.offsets import allocate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from regal._native import DeviceFigures, DeviceSchedule
    from regal.graph.types import Graph
    from regal.plan.problem import InPlaceRow
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.plan.types import Plan
    from regal.search.packing import Place

    Ints = NDArray[np.int64]

NOT_YET = 2**63 - 1


def packed_schedule(
    graph: Graph,
    problem: ScheduleProblem,
    found: DeviceSchedule,
    figures: DeviceFigures,
    bodies: Mapping[int, tuple[Plan, ...]],
    *,
    time_bound_ns: int,
    peak_bound: int,
    place: Place | None = None,
) -> SchedulePlan:
    """Return the plan of a simulated schedule; it is not judged here.

    Each device is packed by itself. In-place pairs never raise a peak, but joined buffers can be
    harder to pack; where an arena stays above its bound, the pairs of that device that its peak
    does not need are given up. With one device the arena is that of the one-device planner.

    Args:
        graph: N ops.
        problem: built from `graph` with the peaks of `bodies` as workspace.
        found: a complete schedule.
        figures: its simulation.
        bodies: plans of the subgraphs of each op.
        time_bound_ns: proven: no schedule is faster.
        peak_bound: proven: no schedule has a lower peak.
        place: how offsets are given; None: `allocate`, and pairs are given up as above.
    """
    schedule, plain = schedule_of(problem, found, figures)
    pairs = pair_rows(figures.in_place)
    lives = _lives(problem, found, figures)
    blocks = _block_sizes(graph, bodies)
    copies: list[Copy] = []
    workspaces: dict[int, Allocation] = {}
    arenas: list[int] = []
    kept: set[InPlaceRow] = set()
    for device in range(problem.n_devices):
        view = _Device.of(graph, problem, found, figures, lives, blocks, device)
        mine = [row for row in pairs if found.placement[row[0]] == device]
        packed = view.packed(mine, place)
        if packed.arena_bytes > packed.arena_bound and mine and place is None:
            loose = view.packed(view.needed(mine, plain.peak_bytes[device]), None)
            packed = min(packed, loose, key=lambda p: p.arena_bytes)
        kept |= set(packed.pairs)
        copies += packed.copies
        workspaces |= packed.workspaces
        arenas.append(packed.arena_bytes)
    schedule = replace(
        schedule, in_place=tuple(problem.tensors_of_pair[row] for row in pairs if row in kept)
    )
    return SchedulePlan(
        schedule=schedule,
        figures=plain,
        copies=tuple(copies),
        arena_bytes=tuple(arenas),
        time_bound_ns=min(time_bound_ns, plain.time_ns),
        peak_bound=min(peak_bound, plain.peak),
        workspaces={i: workspaces[i] for i in sorted(workspaces)},
        bodies=bodies,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Packed:
    """The memory of one device."""

    copies: list[Copy]
    workspaces: dict[int, Allocation]
    pairs: list[InPlaceRow]
    arena_bytes: int
    arena_bound: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Device:
    """What lies on one device, and when; steps are those of `Copy`."""

    device: int
    problem: ScheduleProblem
    alignment: int
    rows: list[int]  # storage rows, in the sequence in which the ops of the graph use them
    start_ns: Ints  # per storage row
    end_ns: Ints
    steps: list[tuple[int, int]]  # per storage row: first, last step; of no use for rows elsewhere
    op_steps: dict[int, tuple[int, int]]  # op of this device -> first, last step
    blocks: dict[int, int]  # op of this device -> bytes of scratch and bodies
    n_steps: int

    @classmethod
    def of(
        cls,
        graph: Graph,
        problem: ScheduleProblem,
        found: DeviceSchedule,
        figures: DeviceFigures,
        lives: tuple[Ints, Ints],
        blocks: Mapping[int, int],
        device: int,
    ) -> _Device:
        """Return the view of `device`."""
        start, end = (np.ascontiguousarray(column[:, device]) for column in lives)
        alive = start < end
        ops = np.flatnonzero(found.placement == device)
        times = np.unique(np.concatenate([figures.op_start[ops], start[alive]]))

        def steps_of(starts: Ints, ends: Ints) -> list[tuple[int, int]]:
            first, last = np.searchsorted(times, starts), np.searchsorted(times, ends) - 1
            return list(zip(first.tolist(), last.tolist(), strict=True))

        op_steps = steps_of(figures.op_start[ops], figures.op_end[ops])
        return cls(
            device=device,
            problem=problem,
            alignment=graph.alignment,
            rows=_sequence(graph, problem, ops, alive),
            start_ns=start,
            end_ns=end,
            steps=steps_of(start, end),
            op_steps=dict(zip(ops.tolist(), op_steps, strict=True)),
            blocks={int(op): blocks[int(op)] for op in ops if int(op) in blocks},
            n_steps=len(times),
        )

    def packed(self, pairs: list[InPlaceRow], place: Place | None) -> _Packed:
        """Return offsets for everything; storages joined by `pairs` share theirs."""
        source_of = {out: into for _, into, out in pairs}
        chains: dict[int, list[int]] = {}
        for row in self.rows:
            root = row
            while root in source_of:
                root = source_of[root]
            chains.setdefault(root, []).append(row)
        sizes = self.problem.storage_bytes
        steps = self.steps
        buffers = [
            (
                min(steps[row][0] for row in chain),
                max(steps[row][1] for row in chain),
                max(int(sizes[row]) for row in chain),
            )
            for chain in chains.values()
        ]
        buffers += [(*self.op_steps[op], size) for op, size in self.blocks.items()]
        table = np.array(buffers, dtype=np.int64).reshape(-1, 3)
        first, last, size = (np.ascontiguousarray(column) for column in table.T)
        placed = (place or allocate)(first, last, size, alignment=self.alignment)
        at = [int(offset) for offset in placed.offsets]
        copies = [
            self._copy(row, offset, steps[row])
            for chain, offset in zip(chains.values(), at[: len(chains)], strict=True)
            for row in chain
        ]
        return _Packed(
            copies=sorted(copies, key=lambda copy: copy.storage),
            workspaces={
                op: self._allocation(offset, size, self.op_steps[op])
                for (op, size), offset in zip(self.blocks.items(), at[len(chains) :], strict=True)
            },
            pairs=pairs,
            arena_bytes=placed.arena_bytes,
            arena_bound=placed.lower_bound,
        )

    def needed(self, pairs: list[InPlaceRow], peak: int) -> list[InPlaceRow]:
        """Return the in-place pairs without which the peak of the device would rise."""
        live = self._live(pairs)
        needed = []
        for op, into, out in pairs:
            first, last = self.op_steps[op]
            size = int(self.problem.storage_bytes[into])
            if int(live[first : last + 1].max()) + size > peak:
                needed.append((op, into, out))
            else:
                live[first : last + 1] += size  # another pair of this op may still be needed
        return needed

    def _live(self, pairs: list[InPlaceRow]) -> Ints:
        """Return the live bytes at each step."""
        sizes, workspace = self.problem.storage_bytes, self.problem.workspace
        change = np.zeros(self.n_steps + 1, dtype=np.int64)
        for row in self.rows:
            first, last = self.steps[row]
            change[first] += sizes[row]
            change[last + 1] -= sizes[row]
        for op, (first, last) in self.op_steps.items():
            change[first] += workspace[op]
            change[last + 1] -= workspace[op]
        for op, into, _ in pairs:
            first, last = self.op_steps[op]
            change[first] -= sizes[into]
            change[last + 1] += sizes[into]
        return np.cumsum(change)[:-1]

    def _copy(self, row: int, offset: int, steps: tuple[int, int]) -> Copy:
        return Copy(
            storage=self.problem.storages[row],
            allocation=self._allocation(offset, int(self.problem.storage_bytes[row]), steps),
            start_ns=int(self.start_ns[row]),
            end_ns=int(self.end_ns[row]),
        )

    def _allocation(self, offset: int, size: int, steps: tuple[int, int]) -> Allocation:
        return Allocation(
            offset=offset,
            bytes=size,
            first_step=steps[0],
            last_step=steps[1],
            device=self.device,
        )


def _lives(
    problem: ScheduleProblem, found: DeviceSchedule, figures: DeviceFigures
) -> tuple[Ints, Ints]:
    """Return (S, D) tables of when each instance starts and ends in ns; empty: end <= start."""
    shape = len(problem.storages), problem.n_devices
    start, end = np.full(shape, NOT_YET, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    storage, placement = problem.tensor_storages, found.placement
    made_on = np.where(
        problem.producers < 0, found.home, np.append(placement, 0)[problem.producers]
    )
    counted = storage >= 0

    made = np.flatnonzero(counted & (problem.producers >= 0))
    at = storage[made], made_on[made]
    np.minimum.at(start, at, figures.op_start[problem.producers[made]])
    np.maximum.at(end, at, figures.op_end[problem.producers[made]])
    given = np.flatnonzero(counted & (problem.producers < 0))
    start[storage[given], made_on[given]] = 0

    reads = np.concatenate([problem.data_edges[:, 1:], problem.input_reads])
    reads = reads[counted[reads[:, 1]]]
    readers, tensors = reads.T
    np.maximum.at(end, (storage[tensors], placement[readers]), figures.op_end[readers])
    sends = found.sends.reshape(-1, 3)
    moved = counted[sends[:, 0]]
    tensors, source, target = sends[moved].T
    np.minimum.at(start, (storage[tensors], target), figures.send_start[moved])
    for device in (source, target):
        np.maximum.at(end, (storage[tensors], device), figures.send_end[moved])
    kept = problem.outputs[counted[problem.outputs]]
    np.maximum.at(end, (storage[kept], made_on[kept]), np.int64(figures.time))
    return start, end


def _sequence(
    graph: Graph, problem: ScheduleProblem, ops: Ints, alive: NDArray[np.bool_]
) -> list[int]:
    """Return the storage rows alive on a device by their first use in the graph, then the rest.

    The sequence in which the one-device planner hands buffers to the allocator, which decides
    between equal ones.
    """
    row_of = {storage: row for row, storage in enumerate(problem.storages)}
    used = [
        row_of.get(graph.tensors[t].storage, -1)
        for op in ops
        for t in (*graph.ops[op].inputs, *graph.ops[op].outputs)
        if t >= 0
    ]
    sequence = dict.fromkeys([*used, *range(len(problem.storages))])
    return [row for row in sequence if row >= 0 and alive[row]]


def _block_sizes(graph: Graph, bodies: Mapping[int, tuple[Plan, ...]]) -> dict[int, int]:
    """Return op -> bytes of its scratch and its largest body."""
    sizes = {
        i: op.workspace_bytes + max((body.arena_bytes for body in bodies.get(i, ())), default=0)
        for i, op in enumerate(graph.ops)
    }
    return {i: size for i, size in sizes.items() if size > 0}
