"""The learning baseline: reinforcement learning on the one graph, which is read as a sequence."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal.baselines.devices.means import mean_durations
from regal.baselines.devices.reinforce import Learner, allowed_devices, learned_outcome, sampled
from regal.baselines.devices.sequence_network import gradient, new_parameters, walk
from regal.cost.types import FORBIDDEN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from regal._native import Cancel
    from regal.baselines.devices.reinforce import Flags, Ints, Parameters, Reals
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.types import DeviceOutcome, Objective
    from regal.search.types import Budget

MOST_STEPS = 128  # the paper cuts its graphs to 83-280 groups
HIDDEN = 32
LEARNING_RATE = 3e-3
ENTROPY_BONUS = 0.01


def graph_as_sequence(
    problem: ScheduleProblem,
    objective: Objective,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    cancel: Cancel | None = None,
) -> DeviceOutcome:
    """Return the best schedule that a sequence network sampled while it learned this graph.

    Ops, put into at most `MOST_STEPS` groups where there are more, are read in topological order;
    the network (see `sequence_network`) gives each a device. Each sample is one evaluation: it is
    list-scheduled (memory: run in a memory-saving order) and simulated. REINFORCE with a moving
    baseline makes better samples more likely. Nothing is learned from other graphs, and no
    heuristic placement is shown.

    Where it differs from the paper: GRUs of 32 units instead of LSTMs of 512; simulated instead
    of measured times; logarithms instead of square roots of them, in units of their spread; ops
    that find their device full move, where the paper punishes failed runs.

    Source: Mirhoseini et al. 2017 (device placement with a sequence model).
    Cost: per 16 evaluations 0.05 s of one core for 128 groups, besides the simulations.
    """
    started = time.perf_counter()
    rng = np.random.default_rng(seed)
    steps = _Steps.of(problem)
    network = _Network(steps, problem.n_devices, rng)
    learner = Learner(network.weights, LEARNING_RATE)
    outcome = learned_outcome(
        problem, objective, budget, network, learner,
        started=started, threads=threads, cancel=cancel,
    )  # fmt: skip
    return replace(outcome, curve=())  # its rows in benchmarks/results have none


class _Network:
    """A `Sampler`: a network that walks along the steps of the graph."""

    def __init__(self, steps: _Steps, n_devices: int, rng: np.random.Generator) -> None:
        self._steps = steps
        self._rng = rng
        self.weights = new_parameters(steps.features.shape[1], n_devices, HIDDEN, rng)

    def draw(self, count: int) -> Ints:
        """Return (count, N) devices."""
        self._walk = walk(
            self.weights,
            self._steps.features,
            self._steps.allowed,
            count,
            lambda _, p: sampled(p, self._rng.random(len(p))),
        )
        return self._walk.devices.T[:, self._steps.of_op]

    def slope(self, blame: Reals) -> Parameters:
        """Return the gradient at what was drawn last; see `Sampler`."""
        return gradient(self.weights, self._walk, blame, ENTROPY_BONUS / len(blame))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steps:
    """The graph as a sequence of G steps; all ops of a step run on one device."""

    of_op: Ints  # (N,)
    allowed: Flags  # (G, D)
    features: Reals  # (G, F), each column with mean 0 and deviation 1

    @classmethod
    def of(cls, problem: ScheduleProblem) -> _Steps:
        (plain,) = _native.placed_schedules(
            problem.native,
            np.zeros((1, problem.n_ops), dtype=np.int64),
            _native.PlacementOrder.FILE,
            True,
            1,
            0,
        )
        order = plain.schedule.order
        position = np.empty(problem.n_ops, dtype=np.int64)
        position[order] = np.arange(problem.n_ops)
        of_op = _numbered(problem.native.group, order)
        if of_op.max(initial=-1) >= MOST_STEPS:
            of_op = _numbered(_native.groups_put_together(problem.native), order)
        if of_op.max(initial=-1) >= MOST_STEPS:
            of_op = _merged(of_op, problem)
        return cls(
            of_op=of_op,
            allowed=allowed_devices(of_op, problem),
            features=_features(of_op, position, problem),
        )


def _numbered(group: Ints, order: Ints) -> Ints:
    """Return op -> group, numbered by their first ops in the order."""
    _, first, inverse = np.unique(group[order], return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    result = np.empty(len(group), dtype=np.int64)
    result[order] = rank[inverse]
    return result


def _merged(of_op: Ints, problem: ScheduleProblem) -> Ints:
    """Return fewer, larger steps: neighbors join up to an equal share of the work.

    Where neighbors have no device in common a new step begins, so there may be more than
    `MOST_STEPS`.
    """
    allowed = allowed_devices(of_op, problem)
    work = np.bincount(of_op, mean_durations(problem))
    merged = np.zeros(len(work), dtype=np.int64)
    share = work.sum() / MOST_STEPS
    current = 0
    common = allowed[0]
    filled = 0.0
    for step in range(len(work)):
        is_full = filled >= share * (current + 1)
        if step and (is_full or not (common & allowed[step]).any()):
            current += 1
            common = allowed[step]
        common = common & allowed[step]
        filled += work[step]
        merged[step] = current
    return merged[of_op]


def _features(of_op: Ints, position: Ints, problem: ScheduleProblem) -> Reals:
    """Return what the network sees of each step: sizes as logarithms, degrees, places."""
    count = int(of_op.max(initial=-1)) + 1

    def per_step(values: NDArray[np.float64] | Ints, ops: Ints) -> Reals:
        return np.bincount(of_op[ops], values, minlength=count).astype(np.float64)

    ops = np.arange(problem.n_ops)
    sizes = np.append(problem.storage_bytes, 0)[problem.tensor_storages]
    made = problem.producers >= 0
    writers, readers, tensors = problem.data_edges.T
    is_cut = of_op[writers] != of_op[readers]
    writers, readers, tensors = writers[is_cut], readers[is_cut], tensors[is_cut]
    n_ops = per_step(np.ones(problem.n_ops), ops)
    parents = per_step(np.ones(len(readers)), readers)
    children = per_step(np.ones(len(writers)), writers)
    place = per_step(position, ops) / np.maximum(n_ops, 1)
    durations = np.where(problem.durations == FORBIDDEN, 0, problem.durations)
    columns = [
        np.log1p(per_step(mean_durations(problem), ops)),
        np.log1p(per_step(sizes[made], problem.producers[made])),
        np.log1p(per_step(sizes[tensors], readers)),
        np.log1p(per_step(sizes[tensors], writers)),
        np.log1p(
            per_step(
                problem.resident_bytes[problem.resident_users[:, 1]], problem.resident_users[:, 0]
            )
        ),
        np.log1p(per_step(problem.workspace, ops)),
        np.log1p(n_ops),
        np.log1p(parents),
        np.log1p(children),
        place,
        place - per_step(position[writers], readers) / np.maximum(parents, 1),
        per_step(position[readers], writers) / np.maximum(children, 1) - place,
        *(np.log1p(per_step(durations[:, d], ops)) for d in range(problem.n_devices)),
    ]
    table = np.stack(columns, axis=1)
    spread = table.std(axis=0) if count else np.ones(table.shape[1])
    return (table - (table.mean(axis=0) if count else 0)) / np.where(spread > 0, spread, 1)
