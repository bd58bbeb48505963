"""The policy of the default method: a prior over head weights, and which stage comes next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal.policy.choice import DEFAULT, network_for
from regal.policy.inputs import policy_context
from regal.policy.model import PRIOR
from regal.search.devices.compact import compact_devices
from regal.search.devices.es import WeightPrior
from regal.search.devices.guided import guided_search
from regal.search.devices.portfolio import PortfolioRun, regal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from regal._native import Cancel, CompactDevices
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.policy.model import PolicyNetwork
    from regal.search.devices.types import DeviceOutcome, Objective
    from regal.search.types import Budget

MODES_TRIED = 16  # of the means that a network knows, the likeliest for this graph
# Heads of a mean, whatever the number of devices; see `head_weights`.
CANONICAL_HEADS = ("priority", "affinity_slope", "affinity_arch", "colocation")


def canonical_size() -> int:
    """Return how many numbers a mean has that does not know the number of devices."""
    return len(CANONICAL_HEADS) * len(_native.device_feature_names()) + _native.GENE_WEIGHTS


def device_places(problem: ScheduleProblem) -> NDArray[np.float64]:
    """Return the (D,) place of each device from 0, the fastest, to 1."""
    totals = np.maximum(problem.durations, 0).sum(axis=0)
    places = np.empty(problem.n_devices)
    places[np.argsort(totals, kind="stable")] = np.arange(problem.n_devices)
    return places / max(problem.n_devices - 1, 1)


def head_weights(
    means: NDArray[np.float64], places: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the (k, weights) of `WeightPrior` for so many devices.

    The affinity to a device at place t is t * slope + 4 t (1 - t) * arch: with two devices the
    slope draws ops to the slower one, or the second.

    Args:
        means: (k, canonical_size()) numbers, head by head.
        places: (D,) see `device_places`.
    """
    width = len(_native.device_feature_names())
    priority, slope, arch, colocation, genes = np.split(means, np.arange(1, 5) * width, axis=1)
    affinities = [t * slope + 4.0 * t * (1.0 - t) * arch for t in places]
    unused = np.zeros((len(means), 2 * width))  # heads wait and transfer
    return np.concatenate((priority, *affinities, colocation, unused, genes), axis=1)


class PriorGuide:
    """A `Guide`: what a network says about one problem."""

    def __init__(
        self,
        network: PolicyNetwork,
        problem: ScheduleProblem,
        compact: CompactDevices,
        objective: Objective,
    ) -> None:
        """Look at a problem once. Cost: 5 ms per 1,000 ops."""
        self._network = network
        self._problem = problem
        self._compact = compact
        self._context = policy_context(problem, compact, objective)
        self._part = "time" if objective.per_ns > 0 else "memory"

    def outputs(self, progress: NDArray[np.float32]) -> Mapping[str, NDArray[np.float32]]:
        """Return what the network says in a state."""
        return self._network.run({"state": np.concatenate((self._context, progress))[None]})

    def scores(self, progress: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return a number per arm; see `Guide`."""
        return self.outputs(progress)["arms"][0]

    def prior(self, progress: NDArray[np.float32]) -> WeightPrior | None:
        """Return the likeliest means; see `Guide`."""
        outputs = self.outputs(progress)
        logits, means = outputs[f"{self._part}_modes"][0], outputs[f"{self._part}_means"]
        chosen = np.argsort(-logits, kind="stable")[:MODES_TRIED]
        rows = means[chosen].astype(np.float64)
        usual = np.array(_native.usual_deviation(self._problem.native))
        return WeightPrior(
            mean=np.ascontiguousarray(head_weights(rows, device_places(self._problem))),
            deviation=usual,
            step=float(np.exp(outputs["log_step"][0, 0])),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorMethod:
    """A `DeviceMethod`: the portfolio, guided by a policy."""

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
        network = network_for(self.policy, PRIOR)
        if network is None or problem.n_ops == 0 or problem.n_devices == 1:
            return regal(problem, objective, budget, seed=seed, threads=threads, cancel=cancel)
        compact = compact_devices(problem)
        run = PortfolioRun(
            problem, objective, budget, seed=seed, threads=threads, cancel=cancel, compact=compact
        )
        guided_search(run, PriorGuide(network, problem, compact, objective))
        return run.outcome()
