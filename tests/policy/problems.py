"""Problems that policies are shown in tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.plan.schedule_problem import schedule_problem
from regal.search.devices.types import Objective
from tests.graphs import random_graph
from tests.systems import cost_of, random_cost, random_system, system_of

if TYPE_CHECKING:
    from regal.graph.types import Graph
    from regal.plan.schedule_problem import ScheduleProblem

TIME = Objective(name="time", per_ns=1.0, per_byte=0.0)
MEMORY = Objective(name="memory", per_ns=0.0, per_byte=1.0)


def random_problem(seed: int, n_ops: int, n_devices: int = 2) -> ScheduleProblem:
    """Return a random graph on random devices."""
    graph = random_graph(seed, n_ops)
    system = random_system(seed, n_devices)
    return schedule_problem(graph, system, random_cost(graph, system, seed))


def problem_of(graph: Graph, n_devices: int = 2) -> ScheduleProblem:
    """Return a graph on equal devices, every op takes 1 ns."""
    system = system_of(n_devices)
    return schedule_problem(graph, system, cost_of(graph, system))
