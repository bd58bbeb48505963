"""From the plans of graphs to one offset per tensor of all subgraphs, as TFLM wants it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from regal.frontends.tflite import source_of
from regal.frontends.tflite.convert import bodies_with_ops
from regal.frontends.tflite.offline import UNPLANNED
from regal.graph.types import COUNTED_ROLES, Role
from regal.plan.sub_buffers import embedded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.frontends.tflite import TfliteSource
    from regal.frontends.tflite.model import TfliteFile
    from regal.graph.types import Graph, LoadedModel
    from regal.plan.types import ModelPlan, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One subgraph under a plan. `base` is where its memory begins in the arena."""

    subgraph: int
    graph: Graph
    plan: Plan
    base: int


def placed_subgraphs(model: LoadedModel, plan: ModelPlan) -> list[Placed]:
    """Return every use of a subgraph: entries, then the bodies that they run, depth first.

    The bodies of an op lie in that op's workspace. A body that several ops run comes up
    several times.
    """
    source = source_of(model)
    found: list[Placed] = []

    def visit(subgraph: int, graph: Graph, graph_plan: Plan, base: int) -> None:
        found.append(Placed(subgraph=subgraph, graph=graph, plan=graph_plan, base=base))
        operators = source.file.subgraphs[subgraph].operators
        for i, body_plans in sorted(graph_plan.bodies.items()):
            block = graph_plan.workspaces.get(i)
            start = base + (block.offset if block else 0)
            indices = bodies_with_ops(source.file, operators[i])
            for index, body, body_plan in zip(
                indices, graph.ops[i].subgraphs, body_plans, strict=True
            ):
                visit(index, body, body_plan, start)

    for subgraph, graph, graph_plan in zip(source.entries, model.entries, plan.plans, strict=True):
        visit(subgraph, graph, graph_plan, 0)
    return found


def operator_orders(placed: Sequence[Placed]) -> dict[int, tuple[int, ...]]:
    """Return subgraph -> order. A body that several ops run keeps the order of its first use.

    Any order that is legal for one use is legal for all: it is the same graph.
    """
    orders: dict[int, tuple[int, ...]] = {}
    for use in placed:
        orders.setdefault(use.subgraph, use.plan.order)
    return orders


def arena_offsets(
    source: TfliteSource, placed: Sequence[Placed], *, with_bodies: bool = True
) -> list[int]:
    """Return one offset per tensor of all subgraphs, -1 where TFLM shall decide.

    TFLM keeps the tensors of a body that several ops run from its first to its last use;
    a plan for one use says nothing about that, so they are left to TFLM.

    Tensors that no op touches get offset 0: TFLM gives all of them memory at once, before
    the first op, and an honored plan is the only way to let them share it.
    """
    uses: dict[int, list[Placed]] = {}
    for use in placed:
        uses.setdefault(use.subgraph, []).append(use)
    file = source.file
    offsets: list[int] = []
    for index, subgraph in enumerate(file.subgraphs):
        own = uses.get(index, [])
        if not own:  # no entry and no body with ops
            is_body = any(index in op.bodies for s in file.subgraphs for op in s.operators)
            offsets += [UNPLANNED if is_body else 0] * len(subgraph.tensors)
        elif len(own) > 1 or not (with_bodies or index in source.entries):
            offsets += [UNPLANNED] * len(subgraph.tensors)
        else:
            offsets += _subgraph_offsets(own[0])
    return _without_tflm_variable_trap(file, offsets)


def _subgraph_offsets(use: Placed) -> list[int]:
    touched = {t for op in use.graph.ops for t in (*op.inputs, *op.outputs)}
    touched.update(use.graph.inputs, use.graph.outputs)
    offsets = []
    tensors = embedded(use.graph, use.plan.sub_buffers).tensors
    for t, tensor in enumerate(tensors):
        place = use.plan.offsets.get(tensor.storage)
        if tensor.role in COUNTED_ROLES and place is not None and tensor.bytes:
            offsets.append(use.base + place.offset + tensor.storage_offset)
        elif t not in touched and tensor.role is Role.CONSTANT and not tensor.bytes:
            offsets.append(0)
        else:
            offsets.append(UNPLANNED)
    return offsets


def _without_tflm_variable_trap(file: TfliteFile, offsets: list[int]) -> list[int]:
    """Return `offsets` such that TFLM gives every variable tensor its memory.

    MicroAllocator::AllocateVariables looks up variable i of every subgraph at position i of
    the list, where the first subgraph's tensor i is. Unless that says -1, the variable of a
    later subgraph would get no memory at all.
    """
    for subgraph in file.subgraphs[1:]:
        for i, tensor in enumerate(subgraph.tensors):
            if tensor.is_variable:
                offsets[i] = UNPLANNED
    return offsets
