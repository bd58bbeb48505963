"""The paper's method: a network sets Beta distributions per gene, BRKGA searches with them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal.policy.bins import USUAL_BIAS, beta_parameters, expected, prior_logits
from regal.policy.choice import DEFAULT, NONE, network_for, part_of
from regal.policy.inputs import policy_inputs
from regal.search.devices.brkga import DeviceBrkgaOptions, DeviceProposal, run_device_brkga
from regal.search.devices.compact import compact_devices, outcome_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from regal._native import Cancel, CompactDevices
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.policy.model import PolicyNetwork
    from regal.search.devices.types import DeviceOutcome, Objective
    from regal.search.types import Budget

KIND = "paper"
NO_ROW = -1

# The paper's search: raw keys, populations of 100 that start at random, no heuristic among them.
PAPER_SEARCH = DeviceBrkgaOptions(
    decoder=_native.DeviceDecoder.RAW,
    population=100,
    elites=20,
    mutants=15,
    elite_bias=USUAL_BIAS,
    with_neutral=False,
    relabels_devices=False,
)


def gene_rows(problem: ScheduleProblem) -> NDArray[np.int64]:
    """Return, per gene of the raw decoder, the row of the policy's choices that it follows.

    Rows are: one per op for its priority, one per colocation group and device for affinities, one
    per op for the transfers of what it makes. Transfers of graph inputs have NO_ROW: they stay
    uniform.
    """
    n = problem.n_ops
    pairs = problem.native.n_groups * problem.n_devices
    producers = problem.producers
    transfers = np.where(producers >= 0, n + pairs + producers, NO_ROW)
    return np.concatenate((np.arange(n + pairs), transfers))


def row_logits(outputs: Mapping[str, NDArray[np.float32]]) -> NDArray[np.float32]:
    """Return the (rows, logits) of what a network says, in the sequence of `gene_rows`."""
    affinity = outputs["affinity"]
    return np.concatenate(
        (outputs["priority"], affinity.reshape(-1, affinity.shape[-1]), outputs["transfer"])
    )


def proposal_of_rows(
    rows: NDArray[np.int64],
    mean: NDArray[np.float64],
    spread: NDArray[np.float64],
    bias: NDArray[np.float64],
) -> DeviceProposal:
    """Return the proposal of choices, one per row; see `gene_rows`."""
    alpha, beta = beta_parameters(mean, spread)
    is_free = rows == NO_ROW
    return DeviceProposal(
        alpha=np.where(is_free, 1.0, alpha[rows]),
        beta=np.where(is_free, 1.0, beta[rows]),
        elite_bias=np.where(is_free, USUAL_BIAS, bias[rows]),
    )


def paper_proposal(
    network: PolicyNetwork | None,
    problem: ScheduleProblem,
    compact: CompactDevices,
    objective: Objective,
) -> DeviceProposal:
    """Return what the network proposes; without one, what an untrained one does.

    Cost: the inputs and one run of the network; 30 ms per 2,000 ops.
    """
    rows = gene_rows(problem)
    if network is None:
        logits = np.broadcast_to(prior_logits(), (rows.max(initial=0) + 1, len(prior_logits())))
    else:
        logits = row_logits(network(policy_inputs(problem, compact, objective)))
    return proposal_of_rows(rows, *expected(logits))


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperMethod:
    """A `DeviceMethod`: BRKGA over raw keys, from the proposals of a network.

    Source: Paliwal et al., REGAL, ICLR 2020.
    """

    policy: str = DEFAULT  # see `regal.policy.choice`; "none": uniform keys

    def with_policy(self, policy: str) -> PaperMethod:
        """Return the method with another policy."""
        return PaperMethod(policy=policy)

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
        """Return the best schedule that it finds; see `DeviceMethod`."""
        network = network_for(self.policy, KIND, part_of(objective))
        started = time.perf_counter()
        compact = compact_devices(problem)
        proposal = None
        if self.policy != NONE and problem.n_ops > 0:
            proposal = paper_proposal(network, problem, compact, objective)
        found = run_device_brkga(
            compact,
            objective,
            budget,
            seed=seed,
            threads=threads,
            options=PAPER_SEARCH,
            proposal=proposal,
            cancel=cancel,
        )
        return outcome_of(problem, found, started, cancel)
