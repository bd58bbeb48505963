"""Judge a schedule on several devices; the native checker shares no code with any search."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from regal._native import ScheduleFault, check_schedule
from regal.errors import PlanError
from regal.plan.check import require_valid_plan
from regal.plan.problem import pair_rows, planned_workspace
from regal.plan.schedule_memory_check import require_valid_memory
from regal.plan.schedule_problem import schedule_problem
from regal.plan.schedule_rows import figures_of, in_place_rows, native_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from regal._native import DeviceSchedule, ScheduleVerdict
    from regal.cost.types import GraphCost
    from regal.devices.types import System
    from regal.graph.types import Graph, LoadedModel
    from regal.plan.schedule import Figures, ModelSchedule, SchedulePlan
    from regal.plan.schedule_problem import ScheduleProblem


def require_valid_model_schedule(
    model: LoadedModel, costs: Sequence[GraphCost], schedule: ModelSchedule
) -> ModelSchedule:
    """Return `schedule` if every entry's plan obeys its graph and states its true figures.

    Args:
        model: a checked model.
        costs: of each entry on the devices of `schedule.system`.
        schedule: what is judged.

    Raises:
        PlanError: names the first rule that is broken, with the ops, tensors or devices involved.
    """
    if not len(schedule.plans) == len(costs) == len(model.entries):
        raise PlanError(
            f"schedule has {len(schedule.plans)} entries and {len(costs)} costs, the model has"
            f" {len(model.entries)} entries"
        )
    for graph, cost, plan in zip(model.entries, costs, schedule.plans, strict=True):
        check_schedule_plan(graph, schedule.system, cost, plan)
    return schedule


def check_schedule_plan(
    graph: Graph, system: System, cost: GraphCost, plan: SchedulePlan
) -> Figures:
    """Return the figures of a plan, recomputed, if it breaks no rule and states them truly.

    Raises:
        PlanError: names the first rule that is broken, with the ops, tensors or devices involved.

    Cost: O((N + uses + transfers) log); for the offsets, pairs of buffers that live together.
    """
    _require_valid_bodies(graph, plan)
    problem = schedule_problem(graph, system, cost, planned_workspace(graph, plan.bodies))
    native = native_of(graph, problem, plan.schedule)
    rows = in_place_rows(graph, problem, plan.schedule)
    verdict, found = check_schedule(problem.native, native, rows)
    if verdict.fault is not ScheduleFault.NONE:
        raise PlanError(_Words(graph, system, problem, native, rows).say(verdict))
    figures = figures_of(found)
    _require_equal_figures(graph, plan.figures, figures)
    for what, bound, value in (
        ("time", plan.time_bound_ns, figures.time_ns),
        ("peak", plan.peak_bound, figures.peak),
    ):
        if bound > value:
            raise PlanError(
                f"plan of '{graph.name}' claims the {what} bound {bound}, above its own {value}"
            )
    require_valid_memory(graph, system, plan, figures)
    return figures


def _require_valid_bodies(graph: Graph, plan: SchedulePlan) -> None:
    for i, op in enumerate(graph.ops):
        bodies = plan.bodies.get(i, ())
        if len(bodies) != len(op.subgraphs):
            raise PlanError(
                f"op '{op.name}' has {len(op.subgraphs)} bodies, the plan has {len(bodies)}"
            )
        for body, body_plan in zip(op.subgraphs, bodies, strict=True):
            require_valid_plan(body, body_plan)
    extra = sorted(set(plan.bodies) - set(range(len(graph.ops))))
    if extra:
        raise PlanError(f"plan of '{graph.name}' has bodies of op {extra[0]}, which does not exist")


def _require_equal_figures(graph: Graph, stated: Figures, true: Figures) -> None:
    for figure in fields(true):
        a, b = getattr(stated, figure.name), getattr(true, figure.name)
        if a == b:
            continue
        name = figure.name
        if isinstance(b, tuple) and len(a) != len(b):
            raise PlanError(f"plan of '{graph.name}' states {len(a)} {name}, it has {len(b)}")
        if isinstance(b, tuple):
            i = next(i for i in range(len(b)) if a[i] != b[i])
            name, a, b = f"{name}[{i}]", a[i], b[i]
        raise PlanError(f"plan of '{graph.name}' states {name} = {a}, it is {b}")


class _Words:
    """Turns the kernel's verdict into a line with names."""

    def __init__(
        self,
        graph: Graph,
        system: System,
        problem: ScheduleProblem,
        native: DeviceSchedule,
        rows: NDArray[np.int64],
    ) -> None:
        self._graph = graph
        self._system = system
        self._problem = problem
        self._native = native
        self._rows = rows

    def say(self, verdict: ScheduleVerdict) -> str:
        """Return one line: which object, what is wrong."""
        a, b = verdict.first, verdict.second
        match verdict.fault:
            case ScheduleFault.BAD_PLACEMENT if a < 0:
                return (
                    f"placement of '{self._graph.name}' has {self._native.placement.size} entries"
                    f" for {len(self._graph.ops)} ops"
                )
            case ScheduleFault.BAD_PLACEMENT:
                return f"op {self._op(a)} is placed on {self._device(b)}, which cannot run it"
            case ScheduleFault.NOT_COLOCATED:
                here, there = self._native.placement[a], self._native.placement[b]
                return (
                    f"op {self._op(a)} on {self._device(here)} must share a device with op"
                    f" {self._op(b)} on {self._device(there)}"
                )
            case ScheduleFault.NOT_A_PERMUTATION:
                return (
                    f"order of '{self._graph.name}' has {self._native.order.size} steps for"
                    f" {len(self._graph.ops)} ops and misses or repeats one: see op {self._op(a)}"
                )
            case ScheduleFault.READER_TOO_EARLY:
                return f"op {self._op(a)} is ordered before op {self._op(b)}, which it depends on"
            case ScheduleFault.BAD_HOME:
                return (
                    f"graph input {self._tensor(a)} has the home {self._device(b)}; its home is a"
                    " device that runs a reader, or the first device if nothing reads it"
                )
            case ScheduleFault.CIRCLE:
                return (
                    f"op {self._op(a)} waits for itself: the orders of devices and transfers form"
                    " a circle"
                )
        return self._say_rest(verdict)

    def _say_rest(self, verdict: ScheduleVerdict) -> str:
        a, b = verdict.first, verdict.second
        match verdict.fault:
            case ScheduleFault.SEND_MISSING:
                return (
                    f"tensor {self._tensor(a)} is not sent to"
                    f" {self._device(self._native.placement[b])}, where op {self._op(b)} reads it"
                )
            case ScheduleFault.SEND_TWICE:
                return f"{self._send(a)} is listed twice"
            case ScheduleFault.SEND_USELESS:
                return (
                    f"{self._send(a)} is of no use: the tensor is not made there, or nothing on the"
                    " target reads it"
                )
        source, target = self._problem.tensors_of_pair[pair_rows(self._rows[a])[0]]
        names = [self._graph.tensors[t].name for t in (target, source)]
        pair = f"'{names[0]}' over '{names[1]}'"
        if verdict.fault is ScheduleFault.IN_PLACE_NOT_LAST:
            who = f"op {self._op(b)}" if b >= 0 else "a transfer, or the graph itself,"
            return f"{pair} in place: {who} needs one of them at a wrong time"
        return f"{pair} in place: {verdict.fault.name.lower()}"

    def _op(self, i: int) -> str:
        return f"'{self._graph.ops[i].name}'" if 0 <= i < len(self._graph.ops) else str(i)

    def _device(self, i: int) -> str:
        devices = self._system.devices
        return f"'{devices[i].name}'" if 0 <= i < len(devices) else f"device {i}"

    def _tensor(self, row: int) -> str:
        tensors = self._problem.tensors
        return (
            f"'{self._graph.tensors[tensors[row]].name}'" if 0 <= row < len(tensors) else str(row)
        )

    def _send(self, k: int) -> str:
        tensor, source, target = self._native.sends[3 * k : 3 * k + 3].tolist()
        return (
            f"transfer of {self._tensor(tensor)} from {self._device(source)} to"
            f" {self._device(target)}"
        )
