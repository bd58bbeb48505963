"""Turn checked plans into stories."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from regal.errors import PlanError
from regal.graph.memory import counted_storages, parameter_bytes, state_bytes
from regal.graph.types import ABSENT
from regal.plan.problem import planned_workspace
from regal.plan.sub_buffers import embedded
from regal.report.story import (
    NO_STORAGE,
    Clock,
    Held,
    Place,
    Run,
    Sent,
    Side,
    Story,
    curve_of,
    require_peaks,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from regal.cost.types import GraphCost
    from regal.devices.types import System
    from regal.graph.types import Graph
    from regal.plan.schedule import SchedulePlan
    from regal.plan.types import Allocation, Plan


def story_of_schedules(
    graph: Graph,
    system: System,
    before: SchedulePlan,
    after: SchedulePlan,
    cost: GraphCost | None = None,
) -> Story:
    """Return the story of one graph on several devices.

    Args:
        graph: N ops; both plans are checked plans of it.
        system: the devices of both plans.
        before: what the runtime does by itself.
        after: the plan that was found.
        cost: says where the times of the ops come from.

    Raises:
        PlanError: the buffers of a plan do not reach its peaks.

    Cost: O((N + copies) log).
    """
    places = tuple(
        Place(name=device.name, kind=device.kind, memory_bytes=device.memory_bytes)
        for device in system.devices
    )
    return Story(
        graph=graph,
        clock=Clock.NS,
        places=places,
        sources=cost.sources if cost else (),
        peak_bound=max(before.peak_bound, after.peak_bound),
        capacity_counts_live=system.capacity_counts_live,
        before=_schedule_side(graph, places, before),
        after=_schedule_side(graph, places, after),
    )


def story_of_plans(
    graph: Graph,
    before: Plan,
    after: Plan,
    *,
    op_ns: Sequence[int] = (),
    sources: Sequence[str] = (),
    device: str = "cpu0",
    memory_bytes: int | None = None,
) -> Story:
    """Return the story of one graph on one device.

    Args:
        graph: N ops; both plans are checked plans of it.
        before: what the runtime does by itself.
        after: the plan that was found.
        op_ns: how long each op takes, if known; else the clock counts steps.
        sources: per op, where its time comes from.
        device: its name.
        memory_bytes: what the arena may take, if there is a limit.

    Raises:
        PlanError: the buffers of a plan do not reach its peak.

    Cost: O((N + buffers) log).
    """
    places = (Place(name=device, kind="cpu", memory_bytes=memory_bytes),)
    return Story(
        graph=graph,
        clock=Clock.NS if op_ns else Clock.STEP,
        places=places,
        sources=tuple(sources),
        peak_bound=after.peak_bound,
        capacity_counts_live=True,
        before=_plan_side(graph, places, before, op_ns),
        after=_plan_side(graph, places, after, op_ns),
    )


def _schedule_side(graph: Graph, places: Sequence[Place], plan: SchedulePlan) -> Side:
    figures, schedule = plan.figures, plan.schedule
    steps: dict[int, int] = {}
    runs: dict[int, Run] = {}
    for op in schedule.order:
        device = schedule.placement[op]
        steps[device] = steps.get(device, -1) + 1
        runs[op] = Run(
            device=device,
            step=steps[device],
            start=figures.op_start_ns[op],
            end=figures.op_end_ns[op],
        )
    sent = tuple(
        Sent(tensor=t.tensor, source=t.source, target=t.target, start=start, end=end)
        for t, start, end in zip(
            schedule.transfers, figures.transfer_start_ns, figures.transfer_end_ns, strict=True
        )
    )
    sizes, maker = counted_storages(graph), _makers(graph)
    held = {
        (copy.storage, copy.allocation.device): Held(
            storage=copy.storage,
            op=maker.get(copy.storage, -1),
            device=copy.allocation.device,
            bytes=sizes[copy.storage],
            start=copy.start_ns,
            end=copy.end_ns,
            offset=copy.allocation.offset,
            room=copy.allocation.bytes,
        )
        for copy in plan.copies
    }
    ordered = tuple(runs[op] for op in range(len(graph.ops)))
    side = _side(
        graph,
        [
            *_handed_over(graph, held, schedule.in_place, ordered),
            *_workspaces(
                planned_workspace(graph, plan.bodies), plan.workspaces, ordered, schedule.order
            ),
        ],
        ordered,
        arena_bytes=plan.arena_bytes,
        resident_bytes=figures.resident_bytes,
    )
    return require_peaks(graph, places, replace(side, sent=sent), figures.peak_bytes)


def _plan_side(graph: Graph, places: Sequence[Place], plan: Plan, op_ns: Sequence[int]) -> Side:
    graph = embedded(graph, plan.sub_buffers)
    times = [0, *accumulate(op_ns[op] if op_ns else 1 for op in plan.order)]
    runs = {
        op: Run(device=0, step=step, start=times[step], end=times[step + 1])
        for step, op in enumerate(plan.order)
    }
    sizes, maker = counted_storages(graph), _makers(graph)
    held = {
        (storage, 0): Held(
            storage=storage,
            op=maker.get(storage, -1),
            device=0,
            bytes=sizes[storage],
            start=times[placed.first_step],
            end=times[placed.last_step + 1],
            offset=placed.offset,
            room=placed.bytes,
        )
        for storage, placed in plan.offsets.items()
    }
    ordered = tuple(runs[op] for op in range(len(graph.ops)))
    side = _side(
        graph,
        [
            *_handed_over(graph, held, plan.in_place, ordered),
            *_workspaces(
                planned_workspace(graph, plan.bodies), plan.workspaces, ordered, plan.order
            ),
        ],
        ordered,
        arena_bytes=(plan.arena_bytes,),
        resident_bytes=(parameter_bytes(graph) + state_bytes(graph),),
    )
    return require_peaks(graph, places, side, (plan.peak_bytes,))


def _side(
    graph: Graph,
    held: Sequence[Held],
    runs: tuple[Run, ...],
    *,
    arena_bytes: tuple[int, ...],
    resident_bytes: tuple[int, ...],
) -> Side:
    by_device: list[list[Held]] = [[] for _ in arena_bytes]
    for part in held:
        if not 0 <= part.device < len(by_device):
            raise PlanError(
                f"plan of '{graph.name}' puts a buffer on device {part.device} of {len(by_device)}"
            )
        by_device[part.device].append(part)
    return Side(
        runs=runs,
        sent=(),
        held=tuple(sorted(held, key=lambda h: (h.device, h.start, h.offset, h.storage, h.op))),
        curves=tuple(curve_of(parts) for parts in by_device),
        arena_bytes=arena_bytes,
        resident_bytes=resident_bytes,
    )


def _makers(graph: Graph) -> dict[int, int]:
    """Return storage -> the first op of the file that writes it."""
    maker: dict[int, int] = {}
    for i, op in enumerate(graph.ops):
        for tensor in op.outputs:
            if tensor != ABSENT:
                maker.setdefault(graph.tensors[tensor].storage, i)
    given = {graph.tensors[tensor].storage for tensor in graph.inputs}
    return {storage: op for storage, op in maker.items() if storage not in given}


def _handed_over(
    graph: Graph,
    held: Mapping[tuple[int, int], Held],
    pairs: Iterable[tuple[int, int]],
    runs: Sequence[Run],
) -> list[Held]:
    """Return `held` with the bytes of every in-place chain counted once, over its whole hull.

    Of a chain, each part counts until the next one begins, and the last one to the end of all.
    """
    writer = {tensor: i for i, op in enumerate(graph.ops) for tensor in op.outputs}
    heir: dict[tuple[int, int], tuple[int, int]] = {}
    for read, written in pairs:
        device = runs[writer[written]].device
        source, target = graph.tensors[read].storage, graph.tensors[written].storage
        heir[source, device] = (target, device)
    result = dict(held)
    for first in sorted(set(heir) - set(heir.values())):
        keys = [first]
        while keys[-1] in heir:
            keys.append(heir[keys[-1]])
        chain = sorted((held[key] for key in keys), key=lambda part: (part.start, part.end))
        end = max(part.end for part in chain)
        for part, until in zip(chain, [*(part.start for part in chain[1:]), end], strict=True):
            result[part.storage, part.device] = replace(part, end=until)
    return [part for part in result.values() if part.start < part.end]


def _workspaces(
    workspace: Sequence[int],
    blocks: Mapping[int, Allocation],
    runs: Sequence[Run],
    order: Iterable[int],
) -> list[Held]:
    """Return the workspaces, each held while its op runs. Without a block it lies nowhere."""
    return [
        Held(
            storage=NO_STORAGE,
            op=op,
            device=runs[op].device,
            bytes=workspace[op],
            start=runs[op].start,
            end=runs[op].end,
            offset=blocks[op].offset if op in blocks else 0,
            room=blocks[op].bytes if op in blocks else 0,
        )
        for op in order
        if workspace[op] or op in blocks
    ]
