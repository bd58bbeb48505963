"""Write a plan into a .tflite file: operator order, and memory plan for TFLM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.backends.tflite.offsets import arena_offsets, operator_orders, placed_subgraphs
from regal.backends.tflite.rewrite import with_offline_plan, with_operator_orders
from regal.backends.types import AppliedModel
from regal.errors import BackendError

if TYPE_CHECKING:
    from regal.frontends.tflite import TfliteSource
    from regal.graph.types import LoadedModel
    from regal.plan.types import ModelPlan


def apply(model: LoadedModel, plan: ModelPlan) -> AppliedModel:
    """Return the model with the operators in the plan's order and the plan's offsets for TFLM.

    Everything else stays byte for byte. Whether the runtime agrees is for `refine` to find
    out: this writes the plan as it is.

    Raises:
        BackendError: the model holds something that cannot be rewritten.
    """
    source: TfliteSource = model.source  # type: ignore[assignment]
    reordered = reordered_bytes(model, plan)
    if source.shapes.resized:
        note = "operators reordered; no memory plan for TFLM, which cannot resize inputs"
        return AppliedModel(files={"": reordered}, notes=(note,))
    try:
        planned = planned_bytes(model, plan)
    except BackendError as error:
        return AppliedModel(files={"": reordered}, notes=(f"operators reordered; {error}",))
    note = "operators reordered; memory plan written as OfflineMemoryAllocation"
    return AppliedModel(files={"": planned}, notes=(note,))


def reordered_bytes(model: LoadedModel, plan: ModelPlan) -> bytes:
    """Return the file with its operators in the plan's order."""
    source: TfliteSource = model.source  # type: ignore[assignment]
    orders = operator_orders(placed_subgraphs(model, plan))
    return with_operator_orders(source.file, orders)


def planned_bytes(model: LoadedModel, plan: ModelPlan, *, with_bodies: bool = True) -> bytes:
    """Return the reordered file with the plan's offsets; without those of bodies if told so."""
    source: TfliteSource = model.source  # type: ignore[assignment]
    offsets = arena_offsets(source, placed_subgraphs(model, plan), with_bodies=with_bodies)
    return with_offline_plan(source.file, reordered_bytes(model, plan), offsets)
