"""Plan files: the JSON form of a plan, `regal.plan/1` (docs/formats.md)."""

from __future__ import annotations

import json
from reprlib import repr as repr_of
from typing import TYPE_CHECKING, Any

from regal.errors import PlanError
from regal.graph.file import model_hash
from regal.plan.pools import pools_from_dict, pools_to_dict
from regal.plan.types import Allocation, ModelPlan, Plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.graph.types import Graph, LoadedModel, Op

SCHEMA = "regal.plan/1"
DEVICE = "cpu0"


def plan_to_json(model: LoadedModel, plan: ModelPlan) -> str:
    """Return the plan file of a checked plan; ops are named, tensors and storages numbered."""
    first, *others = [
        plan_to_dict(graph, entry) for graph, entry in zip(model.entries, plan.plans, strict=True)
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
    document, entries = entries_of(data, model, name)
    try:
        if document["devices"] != [DEVICE]:
            raise PlanError(
                f"'{name}' has no system, but lists devices {repr_of(document['devices'])}; a plan"
                f" without one has ['{DEVICE}']"
            )
        plans = tuple(
            _plan(entry, graph) for entry, graph in zip(entries, model.entries, strict=True)
        )
        return ModelPlan(
            graph_hash=document["graph_hash"],
            method=text(document["method"]),
            seed=natural(document["seed"]),
            evaluations=natural(document["evaluations"]),
            plans=plans,
        )
    except KeyError as error:
        raise PlanError(f"'{name}' is not a whole plan: {error} is missing") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise PlanError(f"'{name}' is not a whole plan: {error}") from None


def entries_of(data: bytes, model: LoadedModel, name: str) -> tuple[dict[str, Any], list[Any]]:
    """Return the JSON object of a plan file, and that of each entry of `model` in it.

    The object itself is that of the main entry.

    Raises:
        PlanError: not JSON, not this schema, or a plan of another model.
    """
    document = document_of(data, model, name, SCHEMA)
    others = document.get("entries", [])
    if not isinstance(others, list) or 1 + len(others) != len(model.entries):
        found = 1 + len(others) if isinstance(others, list) else repr_of(others)
        raise PlanError(f"'{name}' has {found} entries, the model {len(model.entries)}")
    return document, [document, *others]


def document_of(data: bytes, model: LoadedModel, name: str, schema: str) -> dict[str, Any]:
    """Return the JSON object of a file of this schema, matched to `model` by its hash.

    Raises:
        PlanError: not JSON, not this schema, or a plan of another model.
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise PlanError(f"'{name}' is not a JSON file: {str(error).splitlines()[0]}") from None
    if not isinstance(document, dict) or document.get("schema") != schema:
        found = document.get("schema") if isinstance(document, dict) else None
        raise PlanError(f"'{name}' has schema {repr_of(found)}; a plan file has '{schema}'")
    expected = model_hash(model)
    if document.get("graph_hash") != expected:
        raise PlanError(
            f"'{name}' is a plan of another graph: its hash is"
            f" {str(document.get('graph_hash'))[:12]}, the model's is {expected[:12]}"
        )
    return document


def plan_to_dict(graph: Graph, plan: Plan) -> dict[str, Any]:
    """Return the JSON object of the plan of one graph."""
    names = [op.name for op in graph.ops]
    return {
        "placement": {names[i]: DEVICE for i in plan.order},
        "order": {DEVICE: [names[i] for i in plan.order]},
        "transfers": [],
        "fusion_groups": [],
        "layouts": {},
        "in_place": [list(pair) for pair in plan.in_place],
        "sub_buffers": [list(choice) for choice in plan.sub_buffers],
        "offsets": {str(s): _allocation_to_dict(plan.offsets[s]) for s in sorted(plan.offsets)},
        "workspaces": {
            names[i]: _allocation_to_dict(plan.workspaces[i]) for i in sorted(plan.workspaces)
        },
        "bodies": {
            names[i]: [
                plan_to_dict(body, body_plan)
                for body, body_plan in zip(graph.ops[i].subgraphs, bodies, strict=True)
            ]
            for i, bodies in sorted(plan.bodies.items())
        },
        "peak_bytes": plan.peak_bytes,
        "arena_bytes": plan.arena_bytes,
        "lower_bound": {"peak_bytes": plan.peak_bound, "arena_bytes": plan.arena_bound},
        **({} if plan.pools is None else {"pools": pools_to_dict(plan.pools, names)}),
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
    if fields["placement"] != dict.fromkeys(number, DEVICE):
        raise PlanError(f"plan of '{graph.name}' does not place each op on '{DEVICE}'")
    require_empty(fields, "transfers", "fusion_groups", "layouts")
    return Plan(
        order=tuple(op_number(name, number) for name in fields["order"][DEVICE]),
        in_place=tuple((whole(a), whole(b)) for a, b in fields["in_place"]),
        sub_buffers=tuple((whole(a), whole(b), whole(at)) for a, b, at in fields["sub_buffers"]),
        offsets={storage_number(s): _allocation(a) for s, a in fields["offsets"].items()},
        peak_bytes=whole(fields["peak_bytes"]),
        arena_bytes=whole(fields["arena_bytes"]),
        peak_bound=natural(fields["lower_bound"]["peak_bytes"]),
        arena_bound=natural(fields["lower_bound"]["arena_bytes"]),
        workspaces={
            op_number(name, number): _allocation(a) for name, a in fields["workspaces"].items()
        },
        bodies={
            op_number(name, number): bodies_of(bodies, graph.ops[number[name]])
            for name, bodies in fields["bodies"].items()
        },
        pools=pools_from_dict(fields["pools"], list(number)) if "pools" in fields else None,
    )


def bodies_of(plans: Any, op: Op) -> tuple[Plan, ...]:
    """Return the plans of the bodies of `op` from their JSON form."""
    if not isinstance(plans, list) or len(plans) != len(op.subgraphs):
        raise PlanError(f"plan of op '{op.name}' is not a list of {len(op.subgraphs)} bodies")
    return tuple(_plan(plan, body) for plan, body in zip(plans, op.subgraphs, strict=True))


def op_number(name: str, number: Mapping[str, int]) -> int:
    """Return the op of this name."""
    if name not in number:
        raise PlanError(f"plan names op '{name}', which the model does not have")
    return number[name]


def _allocation(fields: Mapping[str, Any]) -> Allocation:
    allocation = Allocation(
        offset=whole(fields["offset"]),
        bytes=whole(fields["bytes"]),
        first_step=whole(fields["first_step"]),
        last_step=whole(fields["last_step"]),
    )
    if fields["device"] != DEVICE:
        raise PlanError(f"plan names device {repr_of(fields['device'])}; it has '{DEVICE}' alone")
    return allocation


def storage_number(key: str) -> int:
    """Return the storage or tensor that a key names; one number has one spelling."""
    if not (key.isascii() and key.isdigit() and len(key) < 20 and str(int(key)) == key):
        raise PlanError(f"plan places storage {repr_of(key)}, expected a number")
    return int(key)


def whole(value: object) -> int:
    """Return `value` if it is an integer that the kernel can take."""
    if type(value) is not int or abs(value) >= 1 << 62:
        raise PlanError(f"plan holds {repr_of(value)}, expected an integer below 2^62")
    return value


def natural(value: object) -> int:
    """Return `value` if it is a whole number of 0 or more that the kernel can take."""
    number = whole(value)
    if number < 0:
        raise PlanError(f"plan holds {number}, expected 0 or more")
    return number


def require_empty(fields: Mapping[str, Any], *keys: str) -> None:
    """Raise unless the lists or objects under these keys are empty."""
    for key in keys:
        if fields[key] not in ([], {}):
            raise PlanError(f"plan has {key} {repr_of(fields[key])}; expected none")


def text(value: object) -> str:
    """Return `value` if it is a string."""
    if not isinstance(value, str):
        raise PlanError(f"plan holds {repr_of(value)}, expected a string")
    return value
