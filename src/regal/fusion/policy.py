"""What a policy sees of a fusion problem, and what it proposes for fusion and layout keys."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal.cost.roofline import ROOFLINE
from regal.cost.types import FORBIDDEN, GraphCost
from regal.devices.types import Device, System
from regal.errors import UsageError
from regal.fusion.types import CONTIGUOUS
from regal.plan.schedule_problem import schedule_problem
from regal.policy.bins import (
    MEAN_BINS,
    SPREAD_BINS,
    USUAL_BIAS,
    beta_parameters,
    bin_spreads,
    expected,
    prior_logits,
)
from regal.policy.choice import DEFAULT, SHIPPED, network_for, require_policy
from regal.policy.inputs import node_feature_names, policy_inputs
from regal.policy.model import FUSION
from regal.search.devices.compact import compact_devices

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from regal._native import FusionNumbers
    from regal.fusion.types import FusionProblem
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.policy.inputs import PolicyInputs
    from regal.policy.model import PolicyNetwork
    from regal.search.devices.types import Objective

UNIFORM_SPREAD = 1.0 / 3.0  # alpha = beta = 1
PRIOR_SPREAD, PRIOR_SPREAD_WIDTH = 0.362092, 0.6  # their average, in logarithms, is uniform
TOLERANCE = 1e-3  # proposals nearer to uniform keys and the usual bias than this say nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionProposal:
    """What a policy sets, per fusion gene, then per layout gene; the other genes stay uniform.

    Random chromosomes draw gene i from Beta(alpha[i], beta[i]); offspring take it from the
    elite parent with chance `elite_bias[i]`.
    """

    alpha: NDArray[np.float64]
    beta: NDArray[np.float64]
    elite_bias: NDArray[np.float64]


def require_fusion_policy(policy: str) -> str:
    """Return `policy` if it names a policy of fusion that is there.

    Raises:
        UsageError: it does not, or none ships.
    """
    if policy == DEFAULT and not (SHIPPED / f"{FUSION}.onnx").exists():
        raise UsageError("policy 'default': none of fusion ships; give 'none' or a file")
    return require_policy(policy)


def unfused_schedule_problem(problem: FusionProblem) -> ScheduleProblem:
    """Return the schedule problem of the ops alone, contiguous, on one device without limits.

    Cost: 10 ms per 1,000 ops.
    """
    device = Device(name="0", kind="cpu", flops_per_s={"": 1.0}, bytes_per_s=1.0, launch_ns=0)
    fastest = []
    for row in problem.alone_ns:
        known = [times[CONTIGUOUS] for times in row if times[CONTIGUOUS] != FORBIDDEN]
        fastest.append((max(min(known, default=1), 1),))
    cost = GraphCost(op_ns=tuple(fastest), sources=(ROOFLINE,) * len(fastest))
    return schedule_problem(problem.graph, System(name="one", devices=(device,)), cost)


def fusion_inputs(
    problem: FusionProblem,
    native: FusionNumbers,
    objective: Objective,
    base: ScheduleProblem | None = None,
) -> PolicyInputs:
    """Return what a policy sees; columns of `fusion_node_names` in `nodes`.

    Args:
        problem: n ops, at least one.
        native: of the same problem.
        objective: what is minimized.
        base: the schedule problem of its ops alone; None: as on one device without limits.

    Cost: 20 ms per 1,000 ops.
    """
    base = unfused_schedule_problem(problem) if base is None else base
    inputs = policy_inputs(base, compact_devices(base), objective)
    count, columns = _native.fusion_features(native)
    own = np.asarray(columns, dtype=np.float32).reshape(count, -1).T
    return replace(inputs, nodes=np.concatenate((inputs.nodes, own), axis=1))


def fusion_node_names() -> tuple[str, ...]:
    """Return the names of the columns of `nodes` in `fusion_inputs`."""
    return (*node_feature_names(), *(name for name, *_ in _native.fusion_feature_names()))


def keyed_ops(inputs: PolicyInputs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ops of the fusion genes and those of the layout genes, in their sequence."""
    first = len(node_feature_names())
    has_fusion, has_layout = inputs.nodes[:, first : first + 2].T > 0.5
    return np.flatnonzero(has_fusion), np.flatnonzero(has_layout)


def fusion_prior_logits() -> NDArray[np.float32]:
    """Return the logits of mean, spread and bias of a policy that has learned nothing.

    Their average is uniform keys and the usual bias; see `expected`.
    """
    logits = prior_logits()
    spreads = -0.5 * (np.log(bin_spreads() / PRIOR_SPREAD) / PRIOR_SPREAD_WIDTH) ** 2
    logits[MEAN_BINS : MEAN_BINS + SPREAD_BINS] = spreads
    return logits


def proposal_of_action(action: NDArray[np.float32]) -> FusionProposal | None:
    """Return the proposal of the (genes, 3) means, spreads and elite biases of keys.

    None where all say what a search without a policy does anyway.
    """
    mean, spread, bias = action.astype(np.float64).T
    usual = np.array((0.5, UNIFORM_SPREAD, USUAL_BIAS))
    if len(action) == 0 or np.abs(action - usual).max() < TOLERANCE:
        return None
    alpha, beta = beta_parameters(mean, spread)
    return FusionProposal(alpha=alpha, beta=beta, elite_bias=bias)


def network_action(network: PolicyNetwork, inputs: PolicyInputs) -> NDArray[np.float32]:
    """Return the (genes, 3) action of a network: fusion genes, then layout genes.

    Cost: 15 ms per 1,000 ops.
    """
    said = network(inputs)
    fusion, layout = keyed_ops(inputs)
    logits = np.concatenate((said["fusion"][fusion], said["layout"][layout]))
    return np.stack(expected(logits), axis=1).astype(np.float32)


def fusion_proposal(
    policy: str,
    problem: FusionProblem,
    native: FusionNumbers,
    objective: Objective,
    base: ScheduleProblem | None = None,
) -> FusionProposal | None:
    """Return what a policy proposes; None: uniform keys.

    Args:
        policy: see `regal.policy.choice`.
        problem: n ops.
        native: of the same problem.
        objective: what is minimized.
        base: see `fusion_inputs`.

    Raises:
        UsageError: the file is missing, broken, or of another kind.
    """
    network = network_for(require_fusion_policy(policy), FUSION)
    if network is None or len(problem.graph.ops) == 0:
        return None
    return proposal_of_action(
        network_action(network, fusion_inputs(problem, native, objective, base))
    )
