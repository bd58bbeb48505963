"""What `optimize` returns, and its JSON form `regal.result/1` (docs/formats.md)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from regal.cost.pool_times import pooled_time_ns
from regal.cost.types import FORBIDDEN
from regal.devices.file import pool_to_dict, system_to_dict
from regal.graph.memory import parameter_bytes, state_bytes
from regal.plan.residents import residents_of
from regal.plan.sub_buffers import embedded
from regal.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from regal.backends.types import RuntimeCheck, Verification
    from regal.cost.types import GraphCost
    from regal.devices.types import System
    from regal.graph.types import Graph, LoadedModel
    from regal.plan.types import ModelPlan, Plan

SCHEMA = "regal.result/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A checked plan beside the "before", and what the runtime said.

    Peaks and arenas of a model with several entries are the largest of its entries.
    """

    path: Path
    model: LoadedModel
    system: System  # of one device
    costs: tuple[GraphCost, ...]  # one per entry
    objective: str
    before: ModelPlan  # what the runtime does with the file as it is
    plan: ModelPlan
    seconds: float  # search only: no loading, no verification
    verification: Verification | None = None
    verify_skipped: str = ""
    out: Path | None = None
    capacity: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def time_ns(self) -> int | None:
        """Return the predicted running time of the plan; None: it cannot run."""
        return self.time_of(self.plan)

    @property
    def time_bound_ns(self) -> int | None:
        """Return a predicted time that no plan beats: with all in the fastest pool."""
        return self.time_of(None)

    def time_of(self, plan: ModelPlan | None) -> int | None:
        """Return the predicted running time; None: the device cannot run an op.

        Without pools every plan takes the same time. With them an op is as fast as the memories
        in which `plan` puts its buffers; no plan stands for the fastest pool alone.
        """
        times = [[row[0] for row in cost.op_ns] for cost in self.costs]
        if any(FORBIDDEN in entry for entry in times):
            return None
        device = self.system.devices[0]
        if not device.pools:
            return max(sum(entry) for entry in times)
        plans = (None,) * len(times) if plan is None else plan.plans
        return max(
            pooled_time_ns(*_where(graph, entry), device, cost)
            for graph, entry, cost in zip(self.model.entries, plans, self.costs, strict=True)
        )

    def spill_ns_of(self, plan: ModelPlan) -> int | None:
        """Return what `plan` takes longer than with all its buffers in the fastest pool."""
        time_ns, bound_ns = self.time_of(plan), self.time_bound_ns
        return None if time_ns is None or bound_ns is None else time_ns - bound_ns

    @property
    def peak_bytes(self) -> int:
        """Return the peak of the plan."""
        return self.plan.peak_bytes

    @property
    def arena_bytes(self) -> int:
        """Return the arena of the plan."""
        return self.plan.arena_bytes

    @property
    def peak_bound(self) -> int:
        """Return a proven lower bound on the peak of any plan."""
        return self.plan.peak_bound

    @property
    def is_order_optimal(self) -> bool:
        """Return whether no order and in-place choice has a lower peak: proven."""
        return self.peak_bytes == self.peak_bound

    @property
    def is_arena_optimal(self) -> bool:
        """Return whether no offsets for this order end lower: proven."""
        return self.arena_bytes == self.plan.arena_bound

    @property
    def overflow_bytes(self) -> int:
        """Return what exceeds the device's memory: peak, parameters and state of an entry."""
        return self.overflow_of(self.plan)

    def overflow_of(self, plan: ModelPlan) -> int:
        """Return what `plan` takes above the device's memory, in the worst entry."""
        memory = self.system.devices[0].memory_bytes
        if memory is None:
            return 0
        return max(
            0,
            plan.pool_overflow_bytes,
            *(
                (entry.peak_bytes if self.system.capacity_counts_live else 0)
                + sum(resident.bytes for resident in residents_of(graph))
                - memory
                for graph, entry in zip(self.model.entries, plan.plans, strict=True)
            ),
        )

    @property
    def fits_capacity(self) -> bool:
        """Return whether the arena stays within the capacity that was asked for."""
        return self.capacity is None or self.arena_bytes <= self.capacity

    @property
    def fits(self) -> bool:
        """Return whether the plan stays within the capacity, and in the device's memory."""
        return self.fits_capacity and self.overflow_bytes == 0

    @property
    def is_equal(self) -> bool:
        """Return whether no runtime saw other outputs; where none could judge, none did."""
        if self.verification is None or not self.verification.checks:
            return True
        return self.verification.outputs_equal

    @property
    def is_good(self) -> bool:
        """Return whether the result may be used: it fits, and no runtime saw other outputs."""
        return self.fits and self.is_equal


def result_to_dict(result: Result) -> dict[str, Any]:
    """Return the JSON object of a result."""
    graphs = result.model.entries
    bound_ns = result.time_bound_ns
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "model": str(result.path),
        "framework": result.model.framework,
        "ops": len(result.model.graph.ops),
        "objective": result.objective,
        "method": result.plan.method,
        "seed": result.plan.seed,
        "evaluations": result.plan.evaluations,
        "seconds": round(result.seconds, 6),
        "devices": system_to_dict(result.system)["devices"],
        "before": _figures(result, result.before),
        "after": _figures(result, result.plan),
        "lower_bound": {
            "peak_bytes": result.peak_bound,
            "arena_bytes": result.plan.arena_bound,
            "time_s": _seconds(bound_ns),
        },
        "optimal": {
            "order": result.is_order_optimal,
            "arena": result.is_arena_optimal,
            "time": None if bound_ns is None else result.time_ns == bound_ns,
        },
        "cost_sources": dict(result.costs[0].coverage),
        "parameter_bytes": max(parameter_bytes(graph) for graph in graphs),
        "state_bytes": max(state_bytes(graph) for graph in graphs),
        "output": str(result.out) if result.out else None,
        "verified": verification_to_dict(result.verification),
        "notes": list(result.notes),
    }
    if result.capacity is not None or result.system.devices[0].memory_bytes is not None:
        document["fits"] = result.fits
    if result.capacity is not None:
        document["capacity"] = {
            "bytes": result.capacity,
            "fits": result.fits_capacity,
            "overflow_bytes": max(0, result.arena_bytes - result.capacity),
        }
    if document["verified"] is None:
        document["verify_skipped"] = result.verify_skipped
    return document


def _figures(result: Result, plan: ModelPlan) -> dict[str, Any]:
    time_ns = result.time_of(plan)
    figures = {
        "peak_bytes": plan.peak_bytes,
        "arena_bytes": plan.arena_bytes,
        "peak_bytes_per_device": [plan.peak_bytes],
        "overflow_bytes": result.overflow_of(plan),
        "time_s": _seconds(time_ns),
    }
    pools = result.system.devices[0].pools
    if pools:
        figures["pools"] = [
            {**pool_to_dict(pool), "used_bytes": used}
            for pool, used in zip(pools, plan.pool_bytes, strict=True)
        ]
        figures["spilled_bytes"] = sum(plan.pool_bytes[1:])
        figures["spill_s"] = _seconds(result.spill_ns_of(plan))
    return figures


def _seconds(ns: int | None) -> float | None:
    return None if ns is None else ns / NS_PER_S


def _where(graph: Graph, plan: Plan | None) -> tuple[Graph, Mapping[int, int], Mapping[int, int]]:
    """Return the graph with joined storages, and the pools of its storages and workspaces."""
    if plan is None or plan.pools is None:
        return graph, {}, {}
    graph = embedded(graph, plan.sub_buffers)
    pools = plan.pools
    rows = zip(residents_of(graph), pools.residents, strict=True)
    where = {storage: slot.pool for storage, slot in pools.storages.items()}
    where |= {row.storage: slot.pool for row, slot in rows}
    return graph, where, {op: slot.pool for op, slot in pools.workspaces.items()}


def verification_to_dict(verification: Verification | None) -> dict[str, Any] | None:
    """Return the JSON object of a verification; None when no runtime judged."""
    if verification is None or not verification.checks:
        return None
    checks = [
        {
            "runtime": check.runtime,
            "outputs_equal": check.outputs_equal,
            "before": dict(check.before),
            "after": dict(check.after),
            "invocations": check.invocations,
            "detail": check.detail,
            **_honored(check),
        }
        for check in verification.checks
    ]
    document = {
        **checks[0],
        "outputs_equal": verification.outputs_equal,
        "runtimes": checks,
    }
    if verification.skipped:
        document["skipped"] = verification.skipped
    return document


def _honored(check: RuntimeCheck) -> dict[str, Any]:
    """Return what is known of a run on several devices; nothing of a run on one."""
    if check.run_after is None and check.placement_honored is None:
        return {}
    runs = {"run_before": check.run_before, "run_after": check.run_after}
    return {
        "placement_honored": check.placement_honored,
        "order_honored": check.order_honored,
        "tolerance": check.tolerance,
        **{key: None if run is None else asdict(run) for key, run in runs.items()},
    }
