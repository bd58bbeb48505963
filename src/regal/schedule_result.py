"""What `optimize` returns for several devices, in the same JSON form `regal.result/1`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from regal.devices.file import system_to_dict
from regal.graph.memory import parameter_bytes, state_bytes
from regal.result import SCHEMA, verification_to_dict
from regal.units import NS_PER_S

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

    Figures of a model with several entries are the largest of its entries.
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
    def time_ns(self) -> int:
        """Return the predicted running time of the plan."""
        return self.plan.time_ns

    @property
    def peak_bytes(self) -> int:
        """Return the largest peak of a device in the plan."""
        return self.plan.peak_bytes

    @property
    def arena_bytes(self) -> int:
        """Return the largest arena of a device in the plan."""
        return self.plan.arena_bytes

    @property
    def time_bound_ns(self) -> int:
        """Return a running time that no schedule can beat: proven."""
        return self.plan.time_bound_ns

    @property
    def peak_bound(self) -> int:
        """Return a peak that no schedule can beat: proven."""
        return self.plan.peak_bound

    @property
    def is_time_optimal(self) -> bool:
        """Return whether no schedule is faster: proven."""
        return self.time_ns <= self.time_bound_ns

    @property
    def is_peak_optimal(self) -> bool:
        """Return whether no schedule has a lower peak: proven."""
        return self.peak_bytes <= self.peak_bound

    @property
    def is_arena_optimal(self) -> bool:
        """Return whether no offsets need less, the schedule as it is: proven."""
        return self.arena_bytes <= self.peak_bytes

    @property
    def fits(self) -> bool:
        """Return whether no device needs more memory than it has."""
        return self.plan.overflow_bytes == 0

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


def schedule_result_to_dict(result: ScheduleResult) -> dict[str, Any]:
    """Return the JSON object of a result on several devices."""
    plan, graphs = result.plan, result.model.entries
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
            "peak_bytes": result.peak_bound,
            "arena_bytes": result.peak_bound,
            "time_s": result.time_bound_ns / NS_PER_S,
        },
        "optimal": {
            "order": result.is_peak_optimal,
            "arena": result.is_arena_optimal,
            "time": result.is_time_optimal,
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
        "peak_bytes": plan.peak_bytes,
        "arena_bytes": plan.arena_bytes,
        "peak_bytes_per_device": [max(f.peak_bytes[d] for f in entries) for d in devices],
        "arena_bytes_per_device": [max(p.arena_bytes[d] for p in plan.plans) for d in devices],
        "resident_bytes_per_device": [max(f.resident_bytes[d] for f in entries) for d in devices],
        "overflow_bytes": plan.overflow_bytes,
        "time_s": plan.time_ns / NS_PER_S,
        "transfers": sum(len(entry.schedule.transfers) for entry in plan.plans),
    }
