"""fx graph -> order and in-place choices, searched or remembered; judged either way."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.fx.experimental.symbolic_shapes import optimization_hint

from regal import __version__
from regal.errors import ModelError, PlanError
from regal.frontends.torch.fx import graph_of
from regal.graph.check import require_valid_graph
from regal.graph.memory import dependencies
from regal.plan.check import require_valid_plan
from regal.plan.problem import order_problem, planned_workspace
from regal.search.exact import lower_bound
from regal.search.methods import DEFAULT_METHOD, method_named
from regal.search.offsets import greedy_by_size
from regal.search.packing import plan_of_order
from regal.search.portfolio import default_evaluations
from regal.search.types import Budget
from regal.torch.cache import default_folder, key_of, store, stored

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch.fx import GraphModule

    from regal.graph.types import Graph, Role
    from regal.plan.types import Plan
    from regal.torch.cache import Orders
    from regal.torch.settings import Settings

log = logging.getLogger("regal.torch")

UNKNOWN_SIZE = 64  # stands for a size that only the data know; any number gives a legal order


@dataclass(frozen=True, slots=True)
class Planned:
    """A graph of PyTorch and its plan; `before` is the plan of the order as traced."""

    graph: Graph
    plan: Plan
    before: Plan
    was_stored: bool


def planned(
    module: GraphModule, name: str, roles: Mapping[str, Role], settings: Settings
) -> Planned:
    """Return the plan of an fx graph whose nodes carry fake tensors.

    Symbolic sizes count as what they were while tracing; the order holds for all sizes.

    Raises:
        ModelError: the graph cannot be read.
        PlanError: the plan is wrong: a defect.
    """
    graph = require_valid_graph(graph_of(module, name, roles, in_place=True, number_of=hinted))
    before = _plan_of(graph, None)
    if settings.objective == "time":
        return Planned(graph, before, before, was_stored=False)
    folder = folder_of(settings)
    way = (__version__, DEFAULT_METHOD, settings.budget, settings.seconds, settings.seed)
    key = key_of(graph, *way)
    if folder is not None and (found := stored(folder, key)) is not None:
        try:
            plan = _plan_of(graph, found)
        except (PlanError, ModelError) as error:
            log.info("order %s in %s is ignored: %s", key, folder, error)
        else:
            return Planned(graph, _better(before, plan), before, was_stored=True)
    orders = _searched(graph, settings)
    if folder is not None:
        store(folder, key, orders)
    return Planned(graph, _better(before, _plan_of(graph, orders)), before, was_stored=False)


def hinted(size: Any) -> int:
    """Return the number that stands for a size while planning; no guard is added."""
    return size if type(size) is int else int(optimization_hint(size, fallback=UNKNOWN_SIZE))


def _better(before: Plan, plan: Plan) -> Plan:
    return plan if plan.peak_bytes < before.peak_bytes else before


def folder_of(settings: Settings) -> Path | None:
    """Return the folder of what is remembered; None: nothing is."""
    if settings.cache is False:
        return None
    return default_folder() if settings.cache is True else Path(settings.cache)


def _searched(graph: Graph, settings: Settings) -> Orders:
    """Return the orders that the search finds, bodies first."""
    bodies = {
        i: [_searched(body, settings) for body in op.subgraphs]
        for i, op in enumerate(graph.ops)
        if op.subgraphs
    }
    plans = {
        i: tuple(
            _plan_of(body, row) for body, row in zip(graph.ops[i].subgraphs, rows, strict=True)
        )
        for i, rows in bodies.items()
    }
    problem = order_problem(graph, planned_workspace(graph, plans))
    outcome = method_named(DEFAULT_METHOD)(
        problem.native,
        Budget(
            evaluations=settings.budget or default_evaluations(len(graph.ops)),
            seconds=settings.seconds,
        ),
        seed=settings.seed,
        threads=settings.threads,
        stop_at=lower_bound(problem.native),
    )
    return {
        "order": [int(op) for op in outcome.order],
        "bodies": {str(i): rows for i, rows in bodies.items()},
    }


def _plan_of(graph: Graph, orders: Orders | None) -> Plan:
    """Return the judged plan of an order, in-place choices added; None: the order as traced.

    Raises:
        PlanError: it is no order of this graph.
    """
    file_order = tuple(range(len(graph.ops)))
    order: Any = file_order if orders is None else orders.get("order")
    given: Any = {} if orders is None else orders.get("bodies")
    if orders is not None:
        is_order = isinstance(order, list) and all(type(op) is int for op in order)
        if not is_order or sorted(order) != list(file_order) or not isinstance(given, dict):
            raise PlanError(f"graph '{graph.name}': what is stored is no order of its ops")
    bodies = {
        i: tuple(
            _plan_of(body, row)
            for body, row in zip(op.subgraphs, _rows(given, i, len(op.subgraphs)), strict=True)
        )
        for i, op in enumerate(graph.ops)
        if op.subgraphs
    }
    _require_legal(graph, order)
    plan = plan_of_order(graph, tuple(order), bodies, peak_bound=0, place=greedy_by_size)
    return require_valid_plan(graph, plan)


def _rows(given: Mapping[str, Any], op: int, count: int) -> list[Orders | None]:
    rows = given.get(str(op), [None] * count)
    if not isinstance(rows, list) or len(rows) != count:
        raise PlanError(f"op {op}: what is stored has not the orders of its {count} bodies")
    return rows


def _require_legal(graph: Graph, order: Any) -> None:
    step = {op: i for i, op in enumerate(order)}
    for earlier, later in dependencies(graph):
        if step[earlier] > step[later]:
            raise PlanError(f"graph '{graph.name}': what is stored is no legal order")
