"""What `optimize` returns for several devices, in the same JSON form `regal.result/1`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from regal.devices.file import system_to_dict
from regal.graph.memory import parameter_bytes, state_bytes
from regal.result import NS_PER_S, SCHEMA, verification_to_dict

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from regal.backends.types import Verification
    from regal.cost.types import GraphCost
    from regal.graph.types import LoadedModel
    from regal.plan.schedule import ModelSchedule


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleResult:
    """A checked schedule beside the "before", and what the runtime said.

    One entry of a model runs at a time, so figures of a model are the largest of its entries.
    """

    path: Path
    model: LoadedModel
    costs: tuple[GraphCost, ...]  # one per entry
    before: ModelSchedule  # everything on the first device, in the runtime's own order
    plan: ModelSchedule
    weights: Mapping[str, float]
    seconds: float  # search only: no loading, no verification
    verification: Verification | None = None
    verify_skipped: str = ""
    out: Path | None = None
    notes: tuple[str, ...] = field(default_factory=tuple)
    is_order_whole: bool = True  # False: the file cannot hold the whole order (a note says where)

    @property
    def fits(self) -> bool:
        """Return whether no device needs more memory than it has."""
        return overflow_bytes(self.plan) == 0

    @property
    def is_equal(self) -> bool:
        """Return whether no runtime saw other outputs; where none could judge, none did."""
        if self.verification is None or not self.verification.checks:
            return True
        return self.verification.outputs_equal

    @property
    def is_good(self) -> bool:
        """Return whether the result may be used: it fits, and no runtime saw another model.

        That is one with other outputs, or one that left the placement, or an order that was
        written whole.
        """
        honored = self.verification is None or self.verification.is_honored(
            whole_order=self.is_order_whole
        )
        return self.fits and self.is_equal and honored


def time_ns(plan: ModelSchedule) -> int:
    """Return the running time of the slowest entry."""
    return max(entry.figures.time_ns for entry in plan.plans)


def peak_bytes(plan: ModelSchedule) -> int:
    """Return the largest peak of a device in any entry."""
    return max(entry.figures.peak for entry in plan.plans)


def arena_bytes(plan: ModelSchedule) -> int:
    """Return the largest arena of a device in any entry."""
    return max(max(entry.arena_bytes) for entry in plan.plans)


def overflow_bytes(plan: ModelSchedule) -> int:
    """Return the bytes above the memories, summed over devices, of the worst entry."""
    return max(entry.figures.overflow_bytes for entry in plan.plans)


def time_bound_ns(plan: ModelSchedule) -> int:
    """Return a running time that no schedule of the model can beat: proven."""
    return max(entry.time_bound_ns for entry in plan.plans)


def peak_bound(plan: ModelSchedule) -> int:
    """Return a peak that no schedule of the model can beat: proven."""
    return max(entry.peak_bound for entry in plan.plans)


def schedule_result_to_dict(result: ScheduleResult) -> dict[str, Any]:
    """Return the JSON object of a result on several devices."""
    plan, graphs = result.plan, result.model.entries
    peaks = [entry.figures.peak for entry in plan.plans]
    bounds = [entry.peak_bound for entry in plan.plans]
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "model": str(result.path),
        "framework": result.model.framework,
        "ops": len(result.model.graph.ops),
        "objective": plan.objective,
        "weights": dict(result.weights),
        "method": plan.method,
        "seed": plan.seed,
        "evaluations": plan.evaluations,
        "seconds": round(result.seconds, 6),
        "system": plan.system.name,
        "devices": system_to_dict(plan.system)["devices"],
        "before": figures_to_dict(result.before),
        "after": figures_to_dict(plan),
        "lower_bound": {
            "peak_bytes": peak_bound(plan),
            "arena_bytes": peak_bound(plan),
            "time_s": time_bound_ns(plan) / NS_PER_S,
        },
        "optimal": {
            "order": max(peaks) <= max(bounds),
            "arena": arena_bytes(plan) <= peak_bytes(plan),
            "time": time_ns(plan) <= time_bound_ns(plan),
        },
        "fits": result.fits,
        "parameter_bytes": max(parameter_bytes(graph) for graph in graphs),
        "state_bytes": max(state_bytes(graph) for graph in graphs),
        "cost_sources": dict(result.costs[0].coverage),
        "output": str(result.out) if result.out else None,
        "verified": verification_to_dict(result.verification),
        "notes": list(result.notes),
        "order_written": result.is_order_whole,
    }
    if document["verified"] is None:
        document["verify_skipped"] = result.verify_skipped
    return document


def figures_to_dict(plan: ModelSchedule) -> dict[str, Any]:
    """Return the figures of a schedule; lists have one number per device."""
    devices = range(len(plan.system.devices))
    entries = [entry.figures for entry in plan.plans]
    return {
        "peak_bytes": peak_bytes(plan),
        "arena_bytes": arena_bytes(plan),
        "peak_bytes_per_device": [max(f.peak_bytes[d] for f in entries) for d in devices],
        "arena_bytes_per_device": [max(p.arena_bytes[d] for p in plan.plans) for d in devices],
        "resident_bytes_per_device": [max(f.resident_bytes[d] for f in entries) for d in devices],
        "overflow_bytes": overflow_bytes(plan),
        "time_s": time_ns(plan) / NS_PER_S,
        "transfers": sum(len(entry.schedule.transfers) for entry in plan.plans),
    }
