"""Write a plan into a .pt2 file: the nodes of its graphs in planned order, all else as it was."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, cast

import torch

from regal.backends.torch.judge import require_same_meaning
from regal.backends.torch.rewrite import decisions_of
from regal.backends.types import AppliedModel
from regal.errors import BackendError
from regal.frontends.torch.fx import bodies_of
from regal.frontends.torch.pt2 import TorchSource, read_program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch.fx import GraphModule

    from regal.graph.types import Graph, LoadedModel
    from regal.plan.types import ModelPlan, Plan


def default_order(model: LoadedModel) -> tuple[int, ...] | None:
    """Return None: PyTorch runs a program in the order of its file."""
    return None


def apply(model: LoadedModel, plan: ModelPlan) -> AppliedModel:
    """Return the program with its nodes, and those of its bodies, in planned order.

    Weights, names, signature and free dimensions stay. The order alone is written: a reader of
    the file may rely on operators that overwrite nothing.

    Raises:
        BackendError: the file changed since it was read.
        PlanError: the order may change what the program computes.
    """
    source = cast("TorchSource", model.source)
    program = read_program(source.path)
    names = [node.name for node in program.graph.nodes]
    if names != [node.name for node in source.program.graph.nodes]:
        raise BackendError(f"'{source.path}' is no longer what was planned: plan it again")
    (entry,) = plan.plans
    (graph,) = model.entries
    _reorder(program.graph_module, graph, entry)
    require_same_meaning(source.program.graph_module, program.graph_module, {})
    data = io.BytesIO()
    torch.export.save(program, data)
    return AppliedModel(files={"": data.getvalue()})


refine = apply  # there is one way to write an order


def with_free_dimensions(model: LoadedModel) -> LoadedModel | None:
    """Return None: dimensions that are free stay free anyhow."""
    return None


def encoded(data: bytes, out: object) -> bytes:
    """Return `data`: there is one form."""
    return data


def _reorder(module: GraphModule, graph: Graph, plan: Plan) -> None:
    """Move the nodes of a graph, and of its bodies, into planned order."""
    nodes = {node.name: node for node in module.graph.nodes}
    for i, plans in plan.bodies.items():
        op = graph.ops[i]
        found = bodies_of(module, nodes[op.name])
        for (_, _, inner), body, body_plan in zip(found, op.subgraphs, plans, strict=True):
            _reorder(inner, body, body_plan)
    _put(module, decisions_of(module, graph, plan).order)


def _put(module: GraphModule, order: Sequence[str]) -> None:
    nodes = {node.name: node for node in module.graph.nodes}
    end = module.graph.output_node()
    for name in order:
        if nodes[name] is not end:
            end.prepend(nodes[name])
    module.graph.lint()
    module.recompile()
