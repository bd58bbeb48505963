"""Learned columns: what a graph network adds to the features that head weights multiply."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal.policy.canonical import (
    CANONICAL_HEADS,
    canonical_size,
    device_places,
    head_weights,
)
from regal.policy.inputs import policy_inputs
from regal.search.devices.es import WeightPrior

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from regal._native import CompactDevices
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.policy.model import PolicyNetwork
    from regal.search.devices.types import Objective

HEADS = len(CANONICAL_HEADS)
STEP = 0.5  # of the evolution strategy, at first
# At which level Inherit leaves a device, as the kernel tries it without a prior.
LEVELS = (0.0, -0.26, 0.26, -0.55, 0.55, -0.97, 0.97, -3.0, 3.0)
LEVEL_GENE = 3  # of the weight genes; see GeneWeight in the kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedRule:
    """A rule for one problem of n ops: all 0 is the plain heuristic."""

    columns: NDArray[np.float32]  # (n, HEADS): added to what the features say to each head
    means: NDArray[np.float32]  # (canonical_size(),): of the weights of features; see `prior`


def column_prior(
    rule: LearnedRule, problem: ScheduleProblem, objective: Objective, *, with_plain: bool = True
) -> WeightPrior:
    """Return a prior whose first evaluation is the rule.

    Column h has a weight in head h alone; its mean, the root of the number of features, undoes
    the scale of the heads, and is also its deviation: the search first varies a column by half.

    Args:
        rule: of the problem.
        problem: n ops on D devices.
        objective: decides the decoder; Inherit starts at nine levels.
        with_plain: whether the plain heuristic is a start, too.
    """
    width = len(_native.device_feature_names())
    root = math.sqrt(width)
    parts = np.split(rule.means.astype(np.float64), np.arange(1, HEADS + 1) * width)
    own = root * np.eye(HEADS)
    mean = np.concatenate([*map(np.concatenate, zip(parts[:HEADS], own, strict=True)), parts[-1]])
    starts = mean[None]
    if objective.per_ns == 0:
        starts = np.repeat(starts, len(LEVELS), axis=0)
        starts[:, LEVEL_GENE - _native.GENE_WEIGHTS] += LEVELS
    if with_plain:
        starts = np.concatenate((starts, np.zeros((1, len(mean)))))
    deviation = np.array(_native.usual_deviation(problem.native, HEADS))
    heads = deviation[: -_native.GENE_WEIGHTS].reshape(-1, width + HEADS)  # a view
    varied = np.zeros((len(heads), HEADS))
    varied[0, 0] = varied[1 + problem.n_devices, 3] = root
    varied[1 : 1 + problem.n_devices, 1] = root
    varied[1 : 1 + problem.n_devices, 2] = root if problem.n_devices > 2 else 0.0
    heads[:, width:] = np.where(heads[:, width:] > 0, varied, 0.0)
    return WeightPrior(
        mean=head_weights(starts, device_places(problem), HEADS),
        deviation=deviation,
        step=STEP,
        columns=np.ascontiguousarray(rule.columns.T, dtype=np.float32),
    )


def learned_rule(
    network: PolicyNetwork,
    problem: ScheduleProblem,
    compact: CompactDevices,
    objective: Objective,
) -> LearnedRule:
    """Return what an exported network says of a problem of at least one op.

    Cost: 10 to 20 ms per 1,000 ops.
    """
    said = network(policy_inputs(problem, compact, objective))
    return LearnedRule(columns=said["columns"], means=said["means"])


def plain_rule(n_ops: int) -> LearnedRule:
    """Return the rule of an untrained network: the plain heuristic."""
    return LearnedRule(
        columns=np.zeros((n_ops, HEADS), dtype=np.float32),
        means=np.zeros(canonical_size(), dtype=np.float32),
    )
