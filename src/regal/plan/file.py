"""Plan files: the JSON form of a plan, `regal.plan/1` (docs/formats.md)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from regal.errors import PlanError
from regal.graph.file import model_hash
from regal.plan.types import Allocation, ModelPlan, Plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.graph.types import Graph, LoadedModel

SCHEMA = "regal.plan/1"
DEVICE = "cpu0"


def plan_to_json(model: LoadedModel, plan: ModelPlan) -> str:
    """Return the plan file of a checked plan; ops are named, tensors and storages numbered."""
    first, *others = [
        _plan_to_dict(graph, entry)
        for graph, entry in zip(model.entries, plan.plans, strict=True)
    ]
    document = {
        "schema": SCHEMA,
        "graph_hash": plan.graph_hash,
        "method": plan.method,
        "seed": plan.seed,
        "evaluations": plan.evaluations,
        "devices": [DEVICE],
        **first,
    }
    if others:
        document["entries"] = others
    return json.dumps(document, indent=1)


def plan_from_json(data: bytes, model: LoadedModel, name: str = "plan") -> ModelPlan:
    """Return the plan in a plan file, matched to `model` by its hash; it is not judged here.

    Raises:
        PlanError: not JSON, not this schema, or a plan of another model.
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise PlanError(
            f"'{name}' is not a JSON file: {str(error).splitlines()[0]}"
        ) from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        found = document.get("schema") if isinstance(document, dict) else None
        raise PlanError(f"'{name}' has schema {found!r}; a plan file has '{SCHEMA}'")
    expected = model_hash(model)
    if document.get("graph_hash") != expected:
        raise PlanError(
            f"'{name}' is a plan of another graph: its hash is"
            f" {str(document.get('graph_hash'))[:12]}, the model's is {expected[:12]}"
        )
    entries = [document, *document.get("entries", [])]
    if len(entries) != len(model.entries):
        raise PlanError(
            f"'{name}' has {len(entries)} entries, the model {len(model.entries)}"
        )
    try:
        plans = tuple(
            _plan(entry, graph) for entry, graph in zip(entries, model.entries, strict=True)
        )
        return ModelPlan(
            graph_hash=expected,
            method=str(document["method"]),
            seed=int(document["seed"]),
            evaluations=int(document["evaluations"]),
            plans=plans,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise PlanError(f"'{name}' is not a whole plan: {error!r}") from None


def _plan_to_dict(graph: Graph, plan: Plan) -> dict[str, Any]:
    names = [op.name for op in graph.ops]
    return {
        "placement": {names[i]: DEVICE for i in plan.order},
        "order": {DEVICE: [names[i] for i in plan.order]},
        "transfers": [],
        "fusion_groups": [],
        "layouts": {},
        "in_place": [list(pair) for pair in plan.in_place],
        "sub_buffers": [list(choice) for choice in plan.sub_buffers],
        "offsets": {
            str(s): _allocation_to_dict(plan.offsets[s]) for s in sorted(plan.offsets)
        },
        "workspaces": {
            names[i]: _allocation_to_dict(plan.workspaces[i])
            for i in sorted(plan.workspaces)
        },
        "bodies": {
            names[i]: [
                _plan_to_dict(body, body_plan)
                for body, body_plan in zip(graph.ops[i].subgraphs, bodies, strict=True)
            ]
            for i, bodies in sorted(plan.bodies.items())
        },
        "peak_bytes": plan.peak_bytes,
        "arena_bytes": plan.arena_bytes,
        "lower_bound": {"peak_bytes": plan.peak_bound, "arena_bytes": plan.arena_bound},
    }


def _allocation_to_dict(allocation: Allocation) -> dict[str, Any]:
    return {
        "device": DEVICE,
        "offset": allocation.offset,
        "bytes": allocation.bytes,
        "first_step": allocation.first_step,
        "last_step": allocation.last_step,
    }


def _plan(fields: Mapping[str, Any], graph: Graph) -> Plan:
    number = {op.name: i for i, op in enumerate(graph.ops)}
    return Plan(
        order=tuple(_op(name, number) for name in fields["order"][DEVICE]),
        in_place=tuple((int(a), int(b)) for a, b in fields["in_place"]),
        sub_buffers=tuple((int(a), int(b), int(at)) for a, b, at in fields["sub_buffers"]),
        offsets={int(s): _allocation(a) for s, a in fields["offsets"].items()},
        peak_bytes=int(fields["peak_bytes"]),
        arena_bytes=int(fields["arena_bytes"]),
        peak_bound=int(fields["lower_bound"]["peak_bytes"]),
        arena_bound=int(fields["lower_bound"]["arena_bytes"]),
        workspaces={
            _op(name, number): _allocation(a) for name, a in fields["workspaces"].items()
        },
        bodies={
            _op(name, number): tuple(
                _plan(body, graph.ops[number[name]].subgraphs[i])
                for i, body in enumerate(bodies)
            )
            for name, bodies in fields["bodies"].items()
        },
    )


def _op(name: str, number: Mapping[str, int]) -> int:
    if name not in number:
        raise PlanError(f"plan names op '{name}', which the model does not have")
    return number[name]


def _allocation(fields: Mapping[str, Any]) -> Allocation:
    return Allocation(
        offset=int(fields["offset"]),
        bytes=int(fields["bytes"]),
        first_step=int(fields["first_step"]),
        last_step=int(fields["last_step"]),
    )
