"""Is there anything to gain? What a long search finds over a short one, on two devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.cost.roofline import graph_cost
from regal.devices.presets import system_named
from regal.plan.schedule_problem import schedule_problem
from regal.search.devices.methods import device_method_named
from regal.search.devices.types import Objective
from regal.search.types import Budget

if TYPE_CHECKING:
    from regal.graph.types import Graph

SHORT, LONG = 200, 5_000  # evaluations
METHOD = "brkga"
OBJECTIVES = (
    Objective(name="time", per_ns=1.0, per_byte=0.0),
    Objective(name="memory", per_ns=0.0, per_byte=1.0),
)


def headroom(graph: Graph, seed: int = 0) -> float:
    """Return by which share a long BRKGA beats a short one, on time or memory: the larger.

    Source: the paper's filter of its synthetic set; it keeps a graph where the long search is
    20 % faster, or where only the long one fits into memory.

    Cost: LONG + SHORT evaluations per objective; 1 s per 1,000 ops.
    """
    system = system_named("2")
    problem = schedule_problem(graph, system, graph_cost(graph, system))
    search = device_method_named(METHOD)
    gains = []
    for objective in OBJECTIVES:
        values = []
        for evaluations in (SHORT, LONG):
            found = search(
                problem, objective, Budget(evaluations=evaluations), seed=seed, threads=1
            )
            values.append(objective.value(found.figures.time, found.figures.most))
        gains.append(1.0 - values[1] / values[0] if values[0] else 0.0)
    return max(gains)
