"""Graph files as models: the applied plan is the same file with its ops in the new order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from regal.backends.types import AppliedModel, Verification
from regal.graph.file import model_to_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from regal.graph.types import Graph, LoadedModel
    from regal.plan.types import ModelPlan, Plan


def default_order(model: LoadedModel) -> tuple[int, ...] | None:
    """Return None: a graph file runs in its own order."""
    return None


def apply(model: LoadedModel, plan: ModelPlan) -> AppliedModel:
    """Return the graph file with the ops of every graph and body in planned order."""
    entries = tuple(
        reordered(graph, entry) for graph, entry in zip(model.entries, plan.plans, strict=True)
    )
    return AppliedModel(files={"": model_to_json(replace(model, entries=entries)).encode()})


refine = apply


def with_free_dimensions(model: LoadedModel) -> LoadedModel | None:
    """Return None: sizes in a graph file are given."""
    return None


def encoded(data: bytes, out: Path) -> bytes:
    """Return `data`: there is one form."""
    return data


def verify(
    original: Path,
    optimized: Path,
    *,
    seed: int,
    invocations: int = 20,
    timeout_s: float = 60,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    dims: Mapping[str, int] | None = None,
) -> Verification:
    """Return a skipped verification: nothing can run a graph file."""
    return Verification(checks=(), skipped="a graph file has no runtime; the plan was checked")


def reordered(graph: Graph, plan: Plan) -> Graph:
    """Return `graph` with its ops, and those of its bodies, in planned order."""
    new_index = {op: step for step, op in enumerate(plan.order)}
    ops = []
    for i in plan.order:
        op = graph.ops[i]
        bodies = tuple(
            reordered(body, body_plan)
            for body, body_plan in zip(op.subgraphs, plan.bodies.get(i, ()), strict=True)
        )
        earlier = tuple(sorted(new_index[c] for c in op.control_inputs))
        ops.append(replace(op, subgraphs=bodies, control_inputs=earlier))
    return replace(graph, ops=tuple(ops))
