"""The policy of the default method: a prior over head weights, and which stage comes next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal.policy.canonical import device_places, head_weights
from regal.policy.choice import DEFAULT, network_for
from regal.policy.columns import column_prior, learned_rule
from regal.policy.inputs import policy_context
from regal.policy.model import COLUMNS, PRIOR
from regal.search.devices.compact import compact_devices
from regal.search.devices.es import WeightPrior
from regal.search.devices.guided import guided_search
from regal.search.devices.portfolio import PortfolioRun, regal, usual_search

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from regal._native import Cancel, CompactDevices
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.policy.model import PolicyNetwork
    from regal.search.devices.types import DeviceOutcome, Objective
    from regal.search.types import Budget

MODES_TRIED = 16  # of the means that a network knows, the likeliest for this graph


class PriorGuide:
    """A `Guide`: what a network says about one problem."""

    def __init__(
        self,
        say: Callable[[NDArray[np.float32]], Mapping[str, NDArray[np.float32]]],
        problem: ScheduleProblem,
        compact: CompactDevices,
        objective: Objective,
    ) -> None:
        """Look at a problem once.

        Args:
            say: the network: (STATE,) numbers in; "arms", "log_step" and, for the parts "time"
                and "memory", "PART_modes" and "PART_means" out.
            problem: at least one op.
            compact: of it.
            objective: what is minimized.

        Cost: 1 ms per 1,000 ops; per question some 20 us.
        """
        self._say = say
        self._problem = problem
        self.context = policy_context(problem, compact, objective)
        self._part = "time" if objective.per_ns > 0 else "memory"

    def scores(self, progress: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return a number per arm; see `Guide`."""
        return self._say(np.concatenate((self.context, progress)))["arms"]

    def prior(self, progress: NDArray[np.float32]) -> WeightPrior | None:
        """Return the likeliest means; see `Guide`."""
        said = self._say(np.concatenate((self.context, progress)))
        means = said[f"{self._part}_means"]
        chosen = np.argsort(-said[f"{self._part}_modes"], kind="stable")[:MODES_TRIED]
        rows = head_weights(means[chosen].astype(np.float64), device_places(self._problem))
        return WeightPrior(
            mean=rows,
            deviation=np.array(_native.usual_deviation(self._problem.native)),
            step=float(np.exp(said["log_step"][0])),
        )


def network_says(
    network: PolicyNetwork,
) -> Callable[[NDArray[np.float32]], Mapping[str, NDArray[np.float32]]]:
    """Return how an exported network answers; see `PriorGuide`."""

    def say(state: NDArray[np.float32]) -> Mapping[str, NDArray[np.float32]]:
        outputs = network.run({"state": state[None]})
        return {k: v if k.endswith("_means") else v[0] for k, v in outputs.items()}

    return say


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorMethod:
    """A `DeviceMethod`: the portfolio, guided by a policy where there is one for the objective.

    A policy of kind "prior" decides what comes next, and gives the evolution strategy its starts;
    one of kind "columns" gives it learned features and a rule to start from.
    """

    policy: str = DEFAULT  # see `regal.policy.choice`; "none", "untrained": the usual portfolio

    def with_policy(self, policy: str) -> PriorMethod:
        """Return the method with another policy."""
        return PriorMethod(policy=policy)

    def __call__(
        self,
        problem: ScheduleProblem,
        objective: Objective,
        budget: Budget,
        *,
        seed: int,
        threads: int,
        cancel: Cancel | None = None,
    ) -> DeviceOutcome:
        """Return the best schedule that it finds; see `DeviceMethod` and `portfolio.regal`."""
        network = network_for(self.policy, PRIOR, also=(COLUMNS,))
        if network is None or problem.n_ops == 0 or problem.n_devices == 1:
            return regal(problem, objective, budget, seed=seed, threads=threads, cancel=cancel)
        compact = compact_devices(problem)
        run = PortfolioRun(
            problem, objective, budget, seed=seed, threads=threads, cancel=cancel, compact=compact
        )
        if network.kind == COLUMNS:
            rule = learned_rule(network, problem, compact, objective)
            usual_search(run, column_prior(rule, problem, objective))
        else:
            guided_search(run, PriorGuide(network_says(network), problem, compact, objective))
        return run.outcome()
