"""Cut the ops of every device into stages: each runs in one go once all its inputs are there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from regal.backends.onnx.order import is_folded
from regal.graph.memory import dependencies
from regal.graph.order import first_order
from regal.graph.types import ABSENT

if TYPE_CHECKING:
    from regal.graph.types import Graph
    from regal.plan.schedule import SchedulePlan


@dataclass(frozen=True, slots=True)
class Stage:
    """Consecutive ops of one device. `number` counts the stages of that device from 0."""

    device: int
    number: int
    ops: tuple[int, ...]


def stages_of(graph: Graph, plan: SchedulePlan) -> tuple[Stage, ...]:
    """Return the stages in an order in which they can run one after the other.

    A stage ends where the plan's times say that going on would make a device wait: before an
    op whose input arrives after the stage began, and before an op that ends later than
    another device wants to read what the stage made. It ends in any case before an op that
    waits for an op that waits for the stage: stages never wait for each other in a circle.
    Constant nodes are in no stage: they are weights of whoever reads them.

    Cost: O(ops * stages / 64 + stages**2) at worst.
    """
    draft = _Draft(graph, plan)
    for op in plan.schedule.order:
        if not is_folded(graph, op):
            draft.add(op)
    return draft.sorted()


class _Draft:
    """Stages while they are cut; `_before[s]` has a bit for each stage that s waits for."""

    def __init__(self, graph: Graph, plan: SchedulePlan) -> None:
        self._plan = plan
        self._placement = plan.schedule.placement
        self._earlier: list[list[int]] = [[] for _ in graph.ops]
        for earlier, later in dependencies(graph):
            if not is_folded(graph, earlier):
                self._earlier[later].append(earlier)
        self._arrival = _arrivals(graph, plan)
        self._wanted = _first_remote_starts(graph, plan)
        self._ops: list[list[int]] = []
        self._before: list[int] = []
        self._deadline: list[int | None] = []  # when another device wants what the stage made
        self._stage: dict[int, int] = {}  # op -> stage
        self._current: dict[int, int] = {}  # device -> its last stage

    def add(self, op: int) -> None:
        device = self._placement[op]
        sources = {self._stage[earlier] for earlier in self._earlier[op]}
        stage = self._current.get(device)
        if stage is None or self._must_end(stage, op, sources):
            stage = self._open(device)
        self._stage[op] = stage
        self._ops[stage].append(op)
        for source in sorted(sources - {stage}):
            self._wait(stage, source)
        wanted = self._wanted.get(op)
        deadline = self._deadline[stage]
        if wanted is not None:
            self._deadline[stage] = wanted if deadline is None else min(deadline, wanted)

    def _must_end(self, stage: int, op: int, sources: set[int]) -> bool:
        if any(self._before[source] >> stage & 1 for source in sources if source != stage):
            return True
        figures = self._plan.figures
        begin = figures.op_start_ns[self._ops[stage][0]]
        deadline = self._deadline[stage]
        is_late = deadline is not None and figures.op_end_ns[op] > deadline
        return is_late or self._arrival.get(op, 0) > begin

    def _open(self, device: int) -> int:
        stage = len(self._ops)
        self._ops.append([])
        self._before.append(0)
        self._deadline.append(None)
        if device in self._current:
            self._wait(stage, self._current[device])
        self._current[device] = stage
        return stage

    def _wait(self, stage: int, source: int) -> None:
        """Let `stage`, and all that wait for it, wait for `source`."""
        added = self._before[source] | 1 << source
        if self._before[stage] | added == self._before[stage]:
            return
        self._before[stage] |= added
        for other, before in enumerate(self._before):
            if before >> stage & 1:
                self._before[other] |= added

    def sorted(self) -> tuple[Stage, ...]:
        waits = [[s for s in range(len(self._ops)) if before >> s & 1] for before in self._before]
        count: dict[int, int] = {}
        stages = []
        for stage in first_order(waits):
            device = self._placement[self._ops[stage][0]]
            number = count.get(device, 0)
            count[device] = number + 1
            stages.append(Stage(device, number, tuple(self._ops[stage])))
        return tuple(stages)


def _arrivals(graph: Graph, plan: SchedulePlan) -> dict[int, int]:
    """Return op -> when the last of its inputs arrives from other devices, in the plan's ns.

    Inputs of the graph are the caller's, who hands them to all devices at once.
    """
    schedule, figures = plan.schedule, plan.figures
    end = {
        (transfer.tensor, transfer.target): finish
        for transfer, finish in zip(schedule.transfers, figures.transfer_end_ns, strict=True)
        if transfer.tensor not in graph.inputs
    }
    arrivals: dict[int, int] = {}
    for i, op in enumerate(graph.ops):
        device = schedule.placement[i]
        times = [end[t, device] for t in op.inputs if t != ABSENT and (t, device) in end]
        if times:
            arrivals[i] = max(times)
    return arrivals


def _first_remote_starts(graph: Graph, plan: SchedulePlan) -> dict[int, int]:
    """Return op -> when the first op of another device that reads a result of it starts."""
    schedule, figures = plan.schedule, plan.figures
    starts: dict[int, int] = {}
    for earlier, later in dependencies(graph):
        if is_folded(graph, earlier):
            continue
        if schedule.placement[earlier] != schedule.placement[later]:
            start = figures.op_start_ns[later]
            starts[earlier] = min(starts.get(earlier, start), start)
    return starts
