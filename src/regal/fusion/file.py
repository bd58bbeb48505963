"""Fusion plans as JSON: the fields of a plan file, with the kernels in their order."""

from __future__ import annotations

import json
from reprlib import repr as repr_of
from typing import TYPE_CHECKING, Any

from regal.errors import PlanError
from regal.fusion.types import FusionPlan, FusionTransfer, Kernel
from regal.graph.file import model_hash
from regal.graph.types import LoadedModel
from regal.plan.file import document_of, op_number, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.graph.types import Graph

SCHEMA = "regal.fusion-plan/1"
LAYOUTS = ("contiguous", "channels_last")


def fusion_plan_to_json(
    graph: Graph,
    plan: FusionPlan,
    *,
    method: str,
    seed: int,
    evaluations: int,
    devices: Sequence[str] = ("cpu0",),
    time_ns: int,
    peak_bytes: Sequence[int],
) -> str:
    """Return the file of a checked plan; ops are named, tensors numbered.

    Args:
        graph: the one that was planned.
        plan: of that graph.
        method: that found it.
        seed: of the search.
        evaluations: it took.
        devices: their names.
        time_ns: that the plan takes.
        peak_bytes: per device.
    """
    names = [op.name for op in graph.ops]
    placement = {op: kernel.device for kernel in plan.kernels for op in kernel.ops}
    document = {
        "schema": SCHEMA,
        "graph_hash": model_hash(_model_of(graph)),
        "method": method,
        "seed": seed,
        "evaluations": evaluations,
        "devices": list(devices),
        "placement": {names[op]: devices[device] for op, device in sorted(placement.items())},
        "order": {
            name: [names[op] for k in plan.kernels if k.device == d for op in k.ops]
            for d, name in enumerate(devices)
        },
        "fusion_groups": [[names[op] for op in k.ops] for k in plan.kernels if len(k.ops) > 1],
        "layouts": {names[op]: LAYOUTS[plan.layouts[op]] for op in sorted(plan.layouts)},
        "kernels": [_kernel_to_dict(names, devices, kernel) for kernel in plan.kernels],
        "transfers": [
            {
                "tensor": sent.tensor,
                "layout": LAYOUTS[sent.layout],
                "source": devices[sent.source],
                "target": devices[sent.target],
            }
            for sent in plan.transfers
        ],
        "in_place": [list(pair) for pair in plan.in_place],
        "time_ns": time_ns,
        "peak_bytes_per_device": dict(zip(devices, peak_bytes, strict=True)),
    }
    return json.dumps(document, indent=1)


def fusion_plan_from_json(data: bytes, graph: Graph, name: str = "plan") -> FusionPlan:
    """Return the plan in a file, matched to `graph` by its hash; it is not judged here.

    What `fusion_groups`, `layouts`, `placement` and `order` repeat of the kernels must agree.

    Raises:
        PlanError: not JSON, not this schema, a plan of another graph, or one that disagrees.
    """
    document = document_of(data, _model_of(graph), name, SCHEMA)
    try:
        plan = _plan(document, graph)
        again = json.loads(
            fusion_plan_to_json(
                graph,
                plan,
                method="",
                seed=0,
                evaluations=0,
                devices=document["devices"],
                time_ns=0,
                peak_bytes=[0] * len(document["devices"]),
            )
        )
        for field in ("placement", "order", "fusion_groups", "layouts"):
            if document[field] != again[field]:
                raise PlanError(f"'{name}': '{field}' disagrees with 'kernels'")
    except KeyError as error:
        raise PlanError(f"'{name}' is not a whole plan: {error} is missing") from None
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise PlanError(f"'{name}' is not a whole plan: {error}") from None
    return plan


def _model_of(graph: Graph) -> LoadedModel:
    return LoadedModel(framework=graph.framework, entries=(graph,), source=None)


def _kernel_to_dict(names: Sequence[str], devices: Sequence[str], kernel: Kernel) -> dict[str, Any]:
    what: dict[str, Any] = (
        {"copy_of": kernel.tensor} if kernel.is_copy else {"ops": [names[op] for op in kernel.ops]}
    )
    return {**what, "layout": LAYOUTS[kernel.layout], "device": devices[kernel.device]}


def _plan(document: dict[str, Any], graph: Graph) -> FusionPlan:
    number = {op.name: i for i, op in enumerate(graph.ops)}
    devices = document["devices"]
    kernels = []
    for row in document["kernels"]:
        is_copy = "copy_of" in row
        if not is_copy and not row["ops"]:
            raise PlanError("plan has a kernel without ops that copies nothing")
        kernels.append(
            Kernel(
                ops=() if is_copy else tuple(op_number(op, number) for op in row["ops"]),
                tensor=_tensor(row["copy_of"], graph) if is_copy else -1,
                layout=_place_in(LAYOUTS, row["layout"]),
                device=_place_in(devices, row["device"]),
            )
        )
    return FusionPlan(
        kernels=tuple(kernels),
        transfers=tuple(
            FusionTransfer(
                tensor=_tensor(row["tensor"], graph),
                layout=_place_in(LAYOUTS, row["layout"]),
                source=_place_in(devices, row["source"]),
                target=_place_in(devices, row["target"]),
            )
            for row in document["transfers"]
        ),
        in_place=tuple((_tensor(a, graph), _tensor(b, graph)) for a, b in document["in_place"]),
    )


def _place_in(known: Sequence[str], value: object) -> int:
    if value not in known:
        raise PlanError(f"plan holds {repr_of(value)}, expected one of {', '.join(known)}")
    return known.index(text(value))


def _tensor(number: object, graph: Graph) -> int:
    if type(number) is not int or not 0 <= number < len(graph.tensors):
        raise ValueError(f"tensor {number!r} is none of {len(graph.tensors)}")
    return number
