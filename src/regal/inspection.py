"""What the peak of a model is made of, and what could lower it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from regal._native import simulate
from regal.cost.work import graph_flops, graph_moved_bytes, uncounted_ops
from regal.graph.memory import counted_storages, parameter_bytes, state_bytes, steps_of
from regal.plan.problem import order_problem, planned_workspace
from regal.search.planner import peak_floor

if TYPE_CHECKING:
    from regal.graph.types import Graph, LoadedModel, Tensor
    from regal.plan.types import ModelPlan, Plan

SCHEMA = "regal.inspection/1"
MOST_STATES = 20_000  # of the exact search that raises the bound: some hundredths of a second
MOST_NAME_CHARACTERS = 63
WIDE_DTYPES = {"float32": 4, "float64": 8, "int64": 8, "int32": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTensor:
    """A buffer that is live at the peak."""

    name: str
    bytes: int
    dtype: str
    shape: tuple[int, ...]
    first_step: int
    last_step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """The memory of one graph in the order in which its runtime runs it."""

    graph: Graph
    plan: Plan
    peak_step: int
    bytes_at_step: tuple[int, ...]
    live_at_peak: tuple[LiveTensor, ...]  # largest first
    workspace_at_peak: int
    peak_bound: int
    # In the order of the file, which a runtime that orders by itself can be told to keep.
    file_order_peak_bytes: int
    advice: tuple[str, ...]
    # Of one run, in any order; loops whose trips nobody knows count once.
    flops: int
    moved_bytes: int
    uncounted_ops: int  # whose operations no rule counts


def inspect_graph(graph: Graph, plan: Plan) -> Inspection:
    """Return what is live at the peak of `plan`, the "before" of `graph`."""
    workspace = planned_workspace(graph, plan.bodies)
    problem = order_problem(graph, workspace, in_place=graph.in_place_by_runtime)
    simulation = simulate(problem.native, np.array(plan.order, dtype=np.int64))
    bound = peak_floor(graph, MOST_STATES)
    in_file_order = simulate(problem.native, np.arange(len(graph.ops), dtype=np.int64))
    step = int(simulation.peak_step)
    taken_over = _taken_over(graph, plan, step)
    live = _live_at(graph, plan, step, taken_over)
    return Inspection(
        graph=graph,
        plan=plan,
        peak_step=step,
        bytes_at_step=tuple(int(b) for b in simulation.bytes_at_step),
        live_at_peak=live,
        workspace_at_peak=workspace[plan.order[step]] if step >= 0 else 0,
        peak_bound=min(bound, plan.peak_bytes),
        file_order_peak_bytes=int(in_file_order.peak_bytes),
        advice=tuple(_advice(graph, plan, step, live, taken_over, bound)) if step >= 0 else (),
        flops=graph_flops(graph),
        moved_bytes=graph_moved_bytes(graph),
        uncounted_ops=uncounted_ops(graph),
    )


def _taken_over(graph: Graph, plan: Plan, step: int) -> set[int]:
    """Return the storages whose bytes the op of `step` writes in place: their heirs count."""
    outputs = graph.ops[plan.order[step]].outputs if step >= 0 else ()
    return {graph.tensors[a].storage for a, b in plan.in_place if b in outputs}


def _live_at(graph: Graph, plan: Plan, step: int, taken_over: set[int]) -> tuple[LiveTensor, ...]:
    sizes = counted_storages(graph)
    tensor_of: dict[int, Tensor] = {}
    for tensor in graph.tensors:
        tensor_of.setdefault(tensor.storage, tensor)
    live = [
        LiveTensor(
            name=tensor_of[storage].name,
            bytes=sizes[storage],
            dtype=tensor_of[storage].dtype,
            shape=tensor_of[storage].shape,
            first_step=first,
            last_step=last,
        )
        for storage, (first, last) in steps_of(graph, plan.order).items()
        if first <= step <= last and storage not in taken_over
    ]
    return tuple(sorted(live, key=lambda tensor: (-tensor.bytes, tensor.name)))


def _advice(
    graph: Graph,
    plan: Plan,
    step: int,
    live: tuple[LiveTensor, ...],
    taken_over: set[int],
    bound: int,
) -> list[str]:
    """Return what could lower the peak, most promising first, each with its numbers."""
    op = graph.ops[plan.order[step]]
    advice = []
    if bound < plan.peak_bytes:
        saved = plan.peak_bytes - bound
        advice.append(
            f"order and in place: up to {saved:,} B ({_percent(saved, plan.peak_bytes)})"
            " below this order is not ruled out: run regal optimize"
        )
    else:
        advice.append("order and in place: no order has a lower peak (proven by the bound)")
    if plan.arena_bytes > plan.peak_bytes and graph.framework != "onnx":
        lost = plan.arena_bytes - plan.peak_bytes
        advice.append(f"packing: the runtime's offsets waste {lost:,} B above the peak")
    written = {graph.tensors[t].storage for t in op.outputs if t >= 0}
    own = {graph.tensors[t].storage for t in (*op.inputs, *op.outputs) if t >= 0}
    sizes = counted_storages(graph)
    need = sum(sizes.get(s, 0) for s in own - taken_over)
    if live and need * 2 > plan.peak_bytes:
        out = sum(sizes.get(s, 0) for s in written)
        advice.append(
            f"splitting: op '{short(op.name)}' alone holds {need:,} B ({out:,} B of output) of the"
            f" {plan.peak_bytes:,} B; computing it in parts is what would go below the bound"
        )
    wide = sum(t.bytes - t.bytes // WIDE_DTYPES[t.dtype] for t in live if t.dtype in WIDE_DTYPES)
    if wide * 4 > plan.peak_bytes:
        advice.append(
            f"dtype: 8-bit activations would take {wide:,} B less at this step"
            f" ({_percent(wide, plan.peak_bytes)})"
        )
    return advice


def inspection_to_dict(
    path: str, model: LoadedModel, before: ModelPlan, parts: list[Inspection]
) -> dict[str, Any]:
    """Return the JSON object of an inspection: the main entry, others under "entries"."""
    first, *others = [_part_to_dict(part) for part in parts]
    document = {
        "schema": SCHEMA,
        "model": path,
        "framework": model.framework,
        "graph_hash": before.graph_hash,
        **first,
    }
    if others:
        document["entries"] = others
    return document


def _part_to_dict(part: Inspection) -> dict[str, Any]:
    graph, plan = part.graph, part.plan
    return {
        "name": graph.name,
        "ops": len(graph.ops),
        "tensors": len(graph.tensors),
        "inputs": [_tensor_to_dict(graph, t) for t in graph.inputs],
        "outputs": [_tensor_to_dict(graph, t) for t in graph.outputs],
        "peak_bytes": plan.peak_bytes,
        "arena_bytes": plan.arena_bytes,
        "parameter_bytes": parameter_bytes(graph),
        "state_bytes": state_bytes(graph),
        "flops": part.flops,
        "moved_bytes": part.moved_bytes,
        "uncounted_ops": part.uncounted_ops,
        "file_order_peak_bytes": part.file_order_peak_bytes,
        "lower_bound": {"peak_bytes": part.peak_bound},
        "peak_step": part.peak_step,
        "peak_op": graph.ops[plan.order[part.peak_step]].name if part.peak_step >= 0 else None,
        "workspace_at_peak": part.workspace_at_peak,
        "live_at_peak": [
            {
                "name": tensor.name,
                "bytes": tensor.bytes,
                "dtype": tensor.dtype,
                "shape": list(tensor.shape),
                "first_step": tensor.first_step,
                "last_step": tensor.last_step,
            }
            for tensor in part.live_at_peak
        ],
        "bytes_at_step": list(part.bytes_at_step),
        "advice": list(part.advice),
    }


def _tensor_to_dict(graph: Graph, index: int) -> dict[str, Any]:
    tensor = graph.tensors[index]
    return {
        "name": tensor.name,
        "shape": list(tensor.shape),
        "dtype": tensor.dtype,
        "bytes": tensor.bytes,
    }


def short(name: str) -> str:
    """Return `name`, or its ends where it is too long to read: converters join many names."""
    if len(name) <= MOST_NAME_CHARACTERS:
        return name
    half = (MOST_NAME_CHARACTERS - 3) // 2
    return f"{name[:half]}...{name[-half:]}"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / max(whole, 1):.1f} %"
