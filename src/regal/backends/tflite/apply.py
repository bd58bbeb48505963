"""Write a plan into a .tflite file: operator order, and memory plan for TFLM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.backends.tflite.offsets import (
    arena_offsets,
    operator_orders,
    placed_subgraphs,
)
from regal.backends.tflite.rewrite import (
    require_same_model,
    with_offline_plan,
    with_operator_orders,
)
from regal.backends.types import AppliedModel
from regal.errors import BackendError
from regal.frontends.tflite import source_of
from regal.frontends.tflite.offline import UNPLANNED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    source = source_of(model)
    placed = placed_subgraphs(model, plan)
    orders = operator_orders(placed)
    if source.shapes.resized:
        note = "operators reordered; no memory plan for TFLM, which cannot resize inputs"
        return AppliedModel(files={"": reordered_bytes(source, orders)}, notes=(note,))
    try:
        data = planned_bytes(source, orders, arena_offsets(source, placed))
    except BackendError as error:
        note = f"operators reordered, without a memory plan for TFLM: {error}"
        return AppliedModel(files={"": reordered_bytes(source, orders)}, notes=(note,))
    note = "operators reordered; memory plan written as OfflineMemoryAllocation"
    return AppliedModel(files={"": data}, notes=(note,))


def reordered_bytes(source: TfliteSource, orders: Mapping[int, Sequence[int]]) -> bytes:
    """Return the file with its operators in new orders, by subgraph.

    A memory plan that the file carries was made for the old order: it is withdrawn.
    """
    data = with_operator_orders(source.file, orders)
    old = source.offline_plan()
    if old is not None:
        data = with_offline_plan(source.file, data, [UNPLANNED] * len(old))
    return require_same_model(source.file, data, orders)


def planned_bytes(
    source: TfliteSource, orders: Mapping[int, Sequence[int]], offsets: Sequence[int]
) -> bytes:
    """Return the file with new orders and a memory plan: one offset per tensor, or -1."""
    data = with_operator_orders(source.file, orders)
    return require_same_model(source.file, with_offline_plan(source.file, data, offsets), orders)
