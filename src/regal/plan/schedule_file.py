"""Plan files for several devices: `regal.plan/1` with a system (docs/formats.md)."""

from __future__ import annotations

import json
from reprlib import repr as repr_of
from typing import TYPE_CHECKING, Any

from regal.cost.roofline import SOURCES
from regal.cost.types import FORBIDDEN, GraphCost
from regal.devices.file import system_from_dict, system_to_dict
from regal.errors import PlanError, UsageError
from regal.plan.file import (
    SCHEMA,
    bodies_of,
    entries_of,
    natural,
    op_number,
    plan_to_dict,
    require_empty,
    storage_number,
    text,
    whole,
)
from regal.plan.schedule import Copy, Figures, ModelSchedule, Schedule, SchedulePlan, Transfer
from regal.plan.types import Allocation
from regal.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from regal.graph.types import Graph, LoadedModel

OBJECTIVES = ("time", "memory", "balanced", "")  # "": nothing was searched


def is_schedule_file(data: bytes) -> bool:
    """Return whether a plan file is for several devices: it then names its system."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and "system" in document


def schedule_to_json(
    model: LoadedModel, costs: Sequence[GraphCost], schedule: ModelSchedule
) -> str:
    """Return the plan file of a checked schedule; with its system and costs it stands alone.

    Ops and devices are named, tensors and storages numbered.
    """
    first, *others = [
        _plan_to_dict(graph, cost, plan, [device.name for device in schedule.system.devices])
        for graph, cost, plan in zip(model.entries, costs, schedule.plans, strict=True)
    ]
    document = {
        "schema": SCHEMA,
        "graph_hash": schedule.graph_hash,
        "objective": schedule.objective,
        "method": schedule.method,
        "seed": schedule.seed,
        "evaluations": schedule.evaluations,
        "devices": [device.name for device in schedule.system.devices],
        "system": system_to_dict(schedule.system),
        **first,
    }
    if others:
        document["entries"] = others
    return json.dumps(document, indent=1)


def schedule_from_json(
    data: bytes, model: LoadedModel, name: str = "plan"
) -> tuple[ModelSchedule, tuple[GraphCost, ...]]:
    """Return the schedule in a plan file and the costs it was made with; it is not judged here.

    Raises:
        PlanError: not JSON, not this schema, a plan of another model, or not a whole one.
    """
    document, entries = entries_of(data, model, name)
    try:
        system = system_from_dict(document["system"], f"'{name}': system")
        devices = [device.name for device in system.devices]
        if document["devices"] != devices:
            raise PlanError(f"'{name}' lists devices {repr_of(document['devices'])}, not {devices}")
        readers = [
            _Reader(fields, graph, devices)
            for fields, graph in zip(entries, model.entries, strict=True)
        ]
        schedule = ModelSchedule(
            graph_hash=document["graph_hash"],
            system=system,
            objective=_one_of(OBJECTIVES, document["objective"]),
            method=text(document["method"]),
            seed=natural(document["seed"]),
            evaluations=natural(document["evaluations"]),
            plans=tuple(reader.plan() for reader in readers),
        )
        return schedule, tuple(reader.cost() for reader in readers)
    except UsageError as error:
        raise PlanError(str(error)) from None
    except KeyError as error:
        raise PlanError(f"'{name}' is not a whole plan: {error} is missing") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise PlanError(f"'{name}' is not a whole plan: {error}") from None


def _plan_to_dict(
    graph: Graph, cost: GraphCost, plan: SchedulePlan, devices: list[str]
) -> dict[str, Any]:
    names = [op.name for op in graph.ops]
    schedule, figures = plan.schedule, plan.figures
    made: dict[int, Copy] = {}
    for copy in sorted(plan.copies, key=lambda c: (c.start_ns, c.allocation.device)):
        made.setdefault(copy.storage, copy)
    return {
        "placement": {names[i]: devices[schedule.placement[i]] for i in range(len(names))},
        "order": {
            device: [names[i] for i in schedule.order if schedule.placement[i] == d]
            for d, device in enumerate(devices)
        },
        "times_ns": {
            names[i]: [figures.op_start_ns[i], figures.op_end_ns[i]] for i in range(len(names))
        },
        "transfers": [
            {
                "tensor": transfer.tensor,
                "source": devices[transfer.source],
                "target": devices[transfer.target],
                "start_ns": start,
                "end_ns": end,
            }
            for transfer, start, end in zip(
                schedule.transfers,
                figures.transfer_start_ns,
                figures.transfer_end_ns,
                strict=True,
            )
        ],
        "homes": {str(t): devices[d] for t, d in sorted(schedule.homes.items())},
        "fusion_groups": [],
        "layouts": {},
        "in_place": [list(pair) for pair in schedule.in_place],
        "sub_buffers": [],
        "offsets": {str(s): _copy_to_dict(made[s], devices) for s in sorted(made)},
        "copies": [
            {"storage": copy.storage, **_copy_to_dict(copy, devices)}
            for copy in plan.copies
            if made[copy.storage] is not copy
        ],
        "workspaces": {
            names[i]: _allocation_to_dict(block, devices) for i, block in plan.workspaces.items()
        },
        "bodies": {
            names[i]: [
                plan_to_dict(body, body_plan)
                for body, body_plan in zip(graph.ops[i].subgraphs, bodies, strict=True)
            ]
            for i, bodies in sorted(plan.bodies.items())
        },
        "costs": {
            names[i]: {"ns": list(row), "source": source}
            for i, (row, source) in enumerate(zip(cost.op_ns, cost.sources, strict=True))
        },
        "time_s": figures.time_ns / NS_PER_S,
        "time_ns": figures.time_ns,
        "peak_bytes": figures.peak,
        "peak_bytes_per_device": dict(zip(devices, figures.peak_bytes, strict=True)),
        "resident_bytes_per_device": dict(zip(devices, figures.resident_bytes, strict=True)),
        "overflow_bytes": figures.overflow_bytes,
        "arena_bytes": max(plan.arena_bytes),
        "arena_bytes_per_device": dict(zip(devices, plan.arena_bytes, strict=True)),
        "lower_bound": {
            "time_s": plan.time_bound_ns / NS_PER_S,
            "time_ns": plan.time_bound_ns,
            "peak_bytes": plan.peak_bound,
        },
    }


def _copy_to_dict(copy: Copy, devices: list[str]) -> dict[str, Any]:
    return {
        **_allocation_to_dict(copy.allocation, devices),
        "start_ns": copy.start_ns,
        "end_ns": copy.end_ns,
    }


def _allocation_to_dict(allocation: Allocation, devices: list[str]) -> dict[str, Any]:
    return {
        "device": devices[allocation.device],
        "offset": allocation.offset,
        "bytes": allocation.bytes,
        "first_step": allocation.first_step,
        "last_step": allocation.last_step,
    }


class _Reader:
    """Reads the plan of one entry; what is missing or of a wrong type raises."""

    def __init__(self, fields: Mapping[str, Any], graph: Graph, devices: list[str]) -> None:
        self._fields = fields
        self._graph = graph
        self._devices = devices
        self._device_number = {name: d for d, name in enumerate(devices)}
        self._op_number = {op.name: i for i, op in enumerate(graph.ops)}

    def plan(self) -> SchedulePlan:
        """Return the plan."""
        fields, graph = self._fields, self._graph
        placement = self._per_op("placement")
        times = self._per_op("times_ns")
        starts, ends = zip(*(_pair(time) for time in times), strict=True) if times else ((), ())
        where = tuple(self._device(name) for name in placement)
        copies = [self._copy(storage_number(s), c) for s, c in fields["offsets"].items()]
        copies += [self._copy(whole(c["storage"]), c) for c in fields["copies"]]
        transfers = fields["transfers"]
        plan = SchedulePlan(
            schedule=Schedule(
                placement=where,
                order=self._order(where, starts),
                transfers=tuple(
                    Transfer(
                        tensor=whole(t["tensor"]),
                        source=self._device(t["source"]),
                        target=self._device(t["target"]),
                    )
                    for t in transfers
                ),
                homes={storage_number(t): self._device(d) for t, d in fields["homes"].items()},
                in_place=tuple(_pair(pair) for pair in fields["in_place"]),
            ),
            figures=Figures(
                time_ns=whole(fields["time_ns"]),
                peak_bytes=self._per_device("peak_bytes_per_device"),
                resident_bytes=self._per_device("resident_bytes_per_device"),
                overflow_bytes=whole(fields["overflow_bytes"]),
                op_start_ns=starts,
                op_end_ns=ends,
                transfer_start_ns=tuple(whole(t["start_ns"]) for t in transfers),
                transfer_end_ns=tuple(whole(t["end_ns"]) for t in transfers),
            ),
            copies=tuple(sorted(copies, key=lambda c: (c.allocation.device, c.storage))),
            arena_bytes=self._per_device("arena_bytes_per_device"),
            time_bound_ns=natural(fields["lower_bound"]["time_ns"]),
            peak_bound=natural(fields["lower_bound"]["peak_bytes"]),
            workspaces={
                op_number(name, self._op_number): self._allocation(block)
                for name, block in fields["workspaces"].items()
            },
            bodies={
                op_number(name, self._op_number): bodies_of(
                    bodies, graph.ops[op_number(name, self._op_number)]
                )
                for name, bodies in fields["bodies"].items()
            },
        )
        require_empty(fields, "fusion_groups", "layouts", "sub_buffers")
        self._require_consistent(plan)
        return plan

    def cost(self) -> GraphCost:
        """Return the costs."""
        rows, sources = [], []
        for name, cost in zip(self._op_number, self._per_op("costs"), strict=True):
            row = tuple(whole(ns) for ns in cost["ns"])
            if len(row) != len(self._devices) or not all(ns >= 1 or ns == FORBIDDEN for ns in row):
                raise PlanError(
                    f"plan gives op '{name}' the times {repr_of(list(row))}; it needs"
                    f" {len(self._devices)} of at least 1 ns, or {FORBIDDEN} where it cannot run"
                )
            rows.append(row)
            sources.append(_one_of(SOURCES, cost["source"]))
        return GraphCost(op_ns=tuple(rows), sources=tuple(sources))

    def _order(self, placement: tuple[int, ...], starts: tuple[int, ...]) -> tuple[int, ...]:
        """Return all ops by start, then device: what the order of each device must agree with."""
        listed = self._fields["order"]
        known = [self._device(name) for name in listed]
        order = sorted(range(len(placement)), key=lambda i: (starts[i], placement[i]))
        for device, name in enumerate(self._devices):
            by_start = [self._graph.ops[i].name for i in order if placement[i] == device]
            if (listed[name] if device in known else []) != by_start:
                raise PlanError(
                    f"plan of '{self._graph.name}' orders the ops of '{name}' otherwise than by"
                    " the times at which they start there"
                )
        return tuple(order)

    def _per_op(self, key: str) -> list[Any]:
        """Return what is given for each op, in the sequence of the graph."""
        values = self._fields[key]
        for name in values:
            op_number(name, self._op_number)
        missing = next((name for name in self._op_number if name not in values), None)
        if missing is not None:
            raise PlanError(f"plan has no {key} for op '{missing}'")
        return [values[name] for name in self._op_number]

    def _per_device(self, key: str) -> tuple[int, ...]:
        values = self._fields[key]
        for name in values:
            self._device(name)
        return tuple(whole(values[name]) for name in self._devices)

    def _device(self, name: str) -> int:
        if name not in self._device_number:
            raise PlanError(f"plan names device {repr_of(name)}, which its system does not have")
        return self._device_number[name]

    def _copy(self, storage: int, fields: Mapping[str, Any]) -> Copy:
        return Copy(
            storage=storage,
            allocation=self._allocation(fields),
            start_ns=whole(fields["start_ns"]),
            end_ns=whole(fields["end_ns"]),
        )

    def _allocation(self, fields: Mapping[str, Any]) -> Allocation:
        return Allocation(
            offset=whole(fields["offset"]),
            bytes=whole(fields["bytes"]),
            first_step=whole(fields["first_step"]),
            last_step=whole(fields["last_step"]),
            device=self._device(fields["device"]),
        )

    def _require_consistent(self, plan: SchedulePlan) -> None:
        """Check the numbers that are there for people alone."""
        fields = self._fields
        for what, stated, true in (
            ("time_s", fields["time_s"], plan.figures.time_ns / NS_PER_S),
            ("peak_bytes", whole(fields["peak_bytes"]), plan.figures.peak),
            ("arena_bytes", whole(fields["arena_bytes"]), max(plan.arena_bytes)),
            ("bound of time_s", fields["lower_bound"]["time_s"], plan.time_bound_ns / NS_PER_S),
        ):
            if isinstance(stated, bool) or stated != true:
                raise PlanError(f"plan states {what} = {repr_of(stated)}, it is {true}")


def _one_of(known: Sequence[str], value: object) -> str:
    if value not in known:
        raise PlanError(
            f"plan holds {repr_of(value)}, expected one of {', '.join(filter(None, known))}"
        )
    return text(value)


def _pair(values: Any) -> tuple[int, int]:
    a, b = values
    return whole(a), whole(b)
