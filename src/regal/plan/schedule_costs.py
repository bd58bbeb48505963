"""Judge the op times that a plan file states, as far as the model and the system tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.cost.roofline import given_ns, graph_cost
from regal.cost.types import FORBIDDEN
from regal.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.cost.types import GraphCost
    from regal.devices.types import System
    from regal.graph.types import Graph, LoadedModel


def require_possible_costs(model: LoadedModel, system: System, costs: Sequence[GraphCost]) -> None:
    """Raise unless a plan's times are possible ones.

    No device runs what it cannot run, and what the model's own file gives is what it gives. All
    other times may be measured, or come from a cost model that has changed since.

    Args:
        model: a checked model.
        system: D devices.
        costs: of each entry, as a plan file states them.

    Raises:
        PlanError: names the op and the device.

    Cost: that of `graph_cost`.
    """
    for graph, cost in zip(model.entries, costs, strict=True):
        _require_possible(graph, system, cost)


def _require_possible(graph: Graph, system: System, cost: GraphCost) -> None:
    true = graph_cost(graph, system)
    for op, stated, found in zip(graph.ops, cost.op_ns, true.op_ns, strict=True):
        for device, ns, true_ns in zip(system.devices, stated, found, strict=True):
            if true_ns == FORBIDDEN and ns != FORBIDDEN:
                raise PlanError(
                    f"plan gives op '{op.name}' {ns} ns on '{device.name}', which cannot run it"
                )
            if ns != true_ns and given_ns(op, device) is not None:
                raise PlanError(
                    f"plan gives op '{op.name}' {ns} ns on '{device.name}'; the model's file says"
                    f" {true_ns}"
                )
