"""Judge a plan with the native checker, which shares no code with any planner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from regal._native import OffsetFault, OrderFault, check_offsets, check_order
from regal.errors import PlanError
from regal.graph.memory import counted_storages
from regal.graph.types import ABSENT
from regal.plan.chains import chains_of, hull_of
from regal.plan.pool_check import require_valid_pools
from regal.plan.problem import NumberedProblem, order_problem, pair_rows, planned_workspace
from regal.plan.sub_buffers import embedded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from regal._native import OffsetVerdict, OrderVerdict
    from regal.graph.types import Graph, LoadedModel
    from regal.plan.types import ModelPlan, Plan


def require_valid_model_plan(model: LoadedModel, plan: ModelPlan) -> ModelPlan:
    """Return `plan` if every entry's plan obeys its graph and states its true peak and arena.

    Raises:
        PlanError: names the first rule that is broken, with the ops or tensors involved.
    """
    if len(plan.plans) != len(model.entries):
        raise PlanError(f"plan has {len(plan.plans)} entries, the model has {len(model.entries)}")
    for graph, entry in zip(model.entries, plan.plans, strict=True):
        require_valid_plan(graph, entry)
    return plan


def require_valid_plan(graph: Graph, plan: Plan) -> Plan:
    """Return `plan` if order, in-place choices, offsets, peak and arena are all right.

    Sub-buffers join storages first; all else is judged on the joined graph. Bodies are judged
    before their op; its block must hold each of them. Pools, where a plan has them, come last.

    Raises:
        PlanError: names the first rule that is broken, with the ops or tensors involved.

    Cost: O(N + uses) for the order; for the offsets, pairs of buffers that share a step.
    """
    graph = embedded(graph, plan.sub_buffers)
    workspace = _body_workspace(graph, plan)
    problem = order_problem(graph, workspace)
    rows = _in_place_rows(graph, problem, plan)
    verdict = check_order(
        problem.native, np.array(plan.order, dtype=np.int64), np.array(rows).reshape(-1, 3)
    )
    if verdict.fault is not OrderFault.NONE:
        raise PlanError(_order_message(graph, plan, rows, problem, verdict))
    if verdict.peak_bytes != plan.peak_bytes:
        raise PlanError(
            f"plan of '{graph.name}' claims a peak of {plan.peak_bytes} bytes;"
            f" it is {verdict.peak_bytes}"
        )
    if plan.peak_bound > plan.peak_bytes:
        raise PlanError(
            f"plan of '{graph.name}' claims the bound {plan.peak_bound}, above its own peak"
            f" of {plan.peak_bytes} bytes"
        )
    _require_valid_offsets(graph, plan)
    if plan.pools is not None:
        require_valid_pools(graph, plan, plan.pools)
    return plan


def _body_workspace(graph: Graph, plan: Plan) -> list[int]:
    for i, op in enumerate(graph.ops):
        bodies = plan.bodies.get(i, ())
        if len(bodies) != len(op.subgraphs):
            raise PlanError(
                f"op '{op.name}' has {len(op.subgraphs)} bodies, the plan has {len(bodies)}"
            )
        for body, body_plan in zip(op.subgraphs, bodies, strict=True):
            require_valid_plan(body, body_plan)
        block = plan.workspaces.get(i)
        need = op.workspace_bytes + max((body.arena_bytes for body in bodies), default=0)
        if need > (block.bytes if block else 0):
            raise PlanError(
                f"op '{op.name}' needs a block of {need} bytes for its bodies and scratch,"
                f" the plan gives {block.bytes if block else 0}"
            )
    return planned_workspace(graph, plan.bodies)


def _in_place_rows(graph: Graph, problem: NumberedProblem, plan: Plan) -> NDArray[np.int64]:
    row_of = {tensors: row for row, tensors in problem.tensors_of_pair.items()}
    names = [tensor.name for tensor in graph.tensors]
    rows = []
    for pair in plan.in_place:
        if pair not in row_of:
            known = all(0 <= t < len(names) for t in pair)
            text = f"'{names[pair[1]]}' over '{names[pair[0]]}'" if known else str(pair)
            raise PlanError(f"plan of '{graph.name}' writes {text} in place; no op allows that")
        rows.append(row_of[pair])
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def _order_message(
    graph: Graph,
    plan: Plan,
    rows: NDArray[np.int64],
    problem: NumberedProblem,
    verdict: OrderVerdict,
) -> str:
    def op_name(i: int) -> str:
        return f"'{graph.ops[i].name}'" if 0 <= i < len(graph.ops) else str(i)

    match verdict.fault:
        case OrderFault.NOT_A_PERMUTATION:
            return (
                f"order of '{graph.name}' has {len(plan.order)} steps for {len(graph.ops)} ops"
                f" and misses or repeats one: see op {op_name(verdict.first)}"
            )
        case OrderFault.READER_TOO_EARLY:
            return (
                f"op {op_name(verdict.first)} runs before op {op_name(verdict.second)},"
                f" which it depends on"
            )
    source, target = problem.tensors_of_pair[pair_rows(rows[verdict.first])[0]]
    pair = f"'{graph.tensors[target].name}' over '{graph.tensors[source].name}'"
    if verdict.fault is OrderFault.IN_PLACE_NOT_LAST:
        return f"{pair} in place is too early: op {op_name(verdict.second)} still reads it later"
    return f"{pair} in place: {verdict.fault.name.lower()}"


def _require_valid_offsets(graph: Graph, plan: Plan) -> None:
    names, rows = _buffer_rows(graph, plan)
    verdict = check_offsets(
        np.array(rows, dtype=np.int64).reshape(-1, 4), plan.arena_bytes, graph.alignment
    )
    if verdict.fault is not OffsetFault.NONE:
        raise PlanError(_offset_message(names, rows, plan.arena_bytes, graph.alignment, verdict))
    if plan.arena_bound > plan.arena_bytes:
        raise PlanError(
            f"plan of '{graph.name}' claims the bound {plan.arena_bound}, above its own arena"
            f" of {plan.arena_bytes} bytes"
        )


def _lifetimes(graph: Graph, order: tuple[int, ...]) -> dict[int, tuple[int, int]]:
    """Return storage -> (first, last step, both inclusive), found by walking the order.

    Not shared with the packer: a wrong lifetime there must not pass here.
    """
    born = {graph.tensors[t].storage: 0 for t in graph.inputs}
    died: dict[int, int] = {}
    for step, i in enumerate(order):
        op = graph.ops[i]
        for tensor in (*op.inputs, *op.outputs):
            if tensor != ABSENT:
                storage = graph.tensors[tensor].storage
                born.setdefault(storage, step)
                died[storage] = step
    for tensor in graph.outputs if order else ():
        if graph.tensors[tensor].storage in born:
            died[graph.tensors[tensor].storage] = len(order) - 1
    counted = counted_storages(graph)
    return {s: (born[s], last) for s, last in died.items() if s in counted}


def _buffer_rows(graph: Graph, plan: Plan) -> tuple[list[str], list[tuple[int, int, int, int]]]:
    """Return names and (first, last step, bytes, offset) rows; an in-place chain is one row."""
    steps = _lifetimes(graph, plan.order)
    sizes = counted_storages(graph)
    name_of: dict[int, str] = {}
    for tensor in graph.tensors:
        name_of.setdefault(tensor.storage, tensor.name)
    for storage, (first, last) in steps.items():
        placed = plan.offsets.get(storage)
        if placed is None:
            raise PlanError(f"buffer '{name_of[storage]}' has no offset")
        if placed.bytes < sizes[storage] or (placed.first_step, placed.last_step) != (
            first,
            last,
        ):
            raise PlanError(
                f"buffer '{name_of[storage]}' is planned with {placed.bytes} bytes in steps"
                f" {placed.first_step}-{placed.last_step}; it has {sizes[storage]} bytes in"
                f" steps {first}-{last}"
            )
    extra = sorted(set(plan.offsets) - set(steps))
    if extra:
        raise PlanError(f"plan places storage {extra[0]}, which is not in use")
    names, rows = [], []
    for chain in chains_of(graph, plan):
        parts = [plan.offsets[storage] for storage in chain]
        if len({part.offset for part in parts}) > 1:
            raise PlanError(
                f"buffers '{name_of[chain[0]]}' and '{name_of[chain[-1]]}' share bytes in place"
                f" but have offsets {parts[0].offset} and {parts[-1].offset}"
            )
        names.append(name_of[chain[0]])
        rows.append((*hull_of(parts), parts[0].offset))
    step_of = {op: step for step, op in enumerate(plan.order)}
    for i, block in plan.workspaces.items():
        if (block.first_step, block.last_step) != (step_of[i], step_of[i]):
            raise PlanError(
                f"workspace of op '{graph.ops[i].name}' is planned in steps"
                f" {block.first_step}-{block.last_step}; the op runs in step {step_of[i]}"
            )
        names.append(f"workspace of {graph.ops[i].name}")
        rows.append((*hull_of([block]), block.offset))
    return names, rows


def _offset_message(
    names: list[str],
    rows: list[tuple[int, int, int, int]],
    arena_bytes: int,
    alignment: int,
    verdict: OffsetVerdict,
) -> str:
    def place(i: int) -> str:
        _, _, size, offset = rows[i]
        return f"'{names[i]}' at bytes [{offset}, {offset + size})"

    a, b = verdict.first, verdict.second
    match verdict.fault:
        case OffsetFault.OVERLAP:
            first, last = max(rows[a][0], rows[b][0]), min(rows[a][1], rows[b][1])
            return f"buffer {place(a)} overlaps {place(b)} during steps {first}-{last}"
        case OffsetFault.EMPTY:
            return f"buffer '{names[a]}' has {rows[a][2]} bytes; a buffer has at least 1"
        case OffsetFault.INVERTED:
            return f"buffer '{names[a]}' ends in step {rows[a][1]}, before its begin {rows[a][0]}"
        case OffsetFault.NEGATIVE:
            return f"buffer {place(a)} starts before the arena"
        case OffsetFault.MISALIGNED:
            return f"buffer {place(a)} is not aligned to {alignment} bytes"
    return f"buffer {place(a)} ends after the arena of {arena_bytes} bytes"
