"""Fusion problems as tasks: short joint searches; a reward."""

from __future__ import annotations

import time
from functools import cached_property
from typing import TYPE_CHECKING

from regal import _native
from regal.devices.presets import system_named
from regal.fusion.analytic import fusion_problem
from regal.fusion.check import check_fusion
from regal.fusion.keys import Meter, key_search
from regal.fusion.numbers import fusion_numbers
from regal.fusion.policy import fusion_inputs, proposal_of_action
from regal.fusion.search import METHODS, unfused_plan
from regal.learning.environment import TaskEnvironment, graph_of
from regal.search.devices.objectives import Weights, objective_of
from regal.search.types import Budget

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from regal._native import FusionNumbers
    from regal.fusion.types import FusionProblem
    from regal.learning.types import TaskSpec
    from regal.policy.inputs import PolicyInputs
    from regal.search.devices.types import Objective

METHOD = "joint"
LONG = 1000  # evaluations that find a good plan


def fusion_environment() -> TaskEnvironment[FusionTask]:
    """Return the environment whose actions are (genes, 3) means, spreads and elite biases."""
    return TaskEnvironment(FusionTask.of_graph)


class FusionTask:
    """A `SearchTask`: what to fuse and how to lay it out, on one device, for an objective."""

    def __init__(self, problem: FusionProblem, objective: str) -> None:
        """Build the task of a fusion problem of one device.

        Cost: 30 ms per 1,000 ops.
        """
        self._problem = problem
        self._native: FusionNumbers = fusion_numbers(problem)
        before = check_fusion(problem, unfused_plan(problem), time_bound_ns=0)
        self._objective: Objective = objective_of(
            objective,
            Weights(),
            before_time_ns=before.time_ns,
            before_peak_bytes=before.peak,
        )
        self._known: dict[tuple[int, int], float] = {}

    @classmethod
    def of_graph(cls, spec: TaskSpec) -> FusionTask:
        """Return the task of a graph, priced by the roofline of the one device of its system."""
        return cls(fusion_problem(graph_of(spec), system_named(spec.devices)), spec.objective)

    @cached_property
    def inputs(self) -> PolicyInputs:
        """Return what the policy sees."""
        return fusion_inputs(self._problem, self._native, self._objective)

    @cached_property
    def bound(self) -> float:
        """Return what a longer search without a policy reaches: no bound, but a good plan."""
        return self._cost(None, LONG, 0)

    def baseline(self, evaluations: int, seed: int) -> float:
        """Return the cost that uniform keys reach; it is searched once."""
        key = (evaluations, seed)
        if key not in self._known:
            self._known[key] = self._cost(None, evaluations, seed)
        return self._known[key]

    def attempt(
        self,
        action: NDArray[np.float32] | None,
        evaluations: int,
        seed: int,
        *,
        wants_keys: bool,
    ) -> tuple[float, None]:
        """Return the cost of the best plan that is found; there are no keys to imitate."""
        del wants_keys
        return self._cost(action, evaluations, seed), None

    def lesson(self, evaluations: int, seed: int) -> tuple[float, None]:
        """Return what a long search reaches; there are no keys to imitate."""
        return self._cost(None, evaluations, seed), None

    def _cost(self, action: NDArray[np.float32] | None, evaluations: int, seed: int) -> float:
        search = key_search(
            self._native,
            self._objective,
            Meter(Budget(evaluations=evaluations), time.perf_counter()),
            seed=seed,
            threads=1,
            proposal=None if action is None else proposal_of_action(action),
        )
        genes = METHODS[METHOD](search)
        decoded = _native.decode_fusion(
            self._native,
            self._objective.per_ns,
            self._objective.per_byte,
            search.capacity,
            genes,
        )
        return max(float(decoded[4].value), 1e-12)
