"""GP+DFS: a balanced minimum-cut partition by METIS, then a depth-first order on each device."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal.baselines.devices.means import mean_durations, mean_transfers
from regal.baselines.devices.rules import is_used_up, outcome_of
from regal.errors import BackendError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from regal._native import Cancel, NamedSchedule
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.types import DeviceOutcome, Objective
    from regal.search.types import Budget

    Ints = NDArray[np.int64]

IMBALANCES = (30, 100, 300)  # thousandths by which a part may exceed its share
SEEDS = 3
MOST_WEIGHT = 10_000  # METIS sums weights; larger ones add nothing


def partition_dfs(
    problem: ScheduleProblem,
    objective: Objective,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    cancel: Cancel | None = None,
) -> DeviceOutcome:
    """Return the best schedule of up to 27 partitions: 3 weights, 3 imbalances, 3 seeds.

    Vertices are colocation groups, weighted by work, by bytes, or by both; edges by the mean
    time of the transfers between two groups. Parts are as large as their devices are fast. An op
    that may not run on the device of its part, or that finds it full while another is not, goes
    elsewhere. All devices run their ops in one depth-first order.

    Where it differs from GP+DFS of the REGAL paper, which says no more than "graph partitioning
    and depth first search": everything but the two ideas; the best of several partitions counts.

    Raises:
        BackendError: METIS is not installed.

    Source: Karypis & Kumar 1998 (METIS); REGAL, ICLR 2020 (the baseline).
    Cost: O(E) per partition; 2 s in all for 40,000 ops.
    """
    try:
        import pymetis
    except ImportError as error:
        raise BackendError(
            "partition-dfs: pymetis is not installed; pip install regal[placement]"
        ) from error
    started = time.perf_counter()
    best: NamedSchedule | None = None
    evaluations = 0
    was_interrupted = False
    graph = _GroupGraph.of(problem)
    choices = itertools.product(range(SEEDS), IMBALANCES, graph.weights)
    for number, imbalance, weights in itertools.islice(choices, budget.evaluations):
        parts = np.zeros(len(weights), dtype=np.int64)
        if len(weights) > 1:
            _, found = pymetis.part_graph(
                problem.n_devices,
                pymetis.CSRAdjacency(graph.starts, graph.neighbors),
                vweights=weights,
                eweights=graph.edge_weights,
                tpwgts=graph.shares,
                options=pymetis.Options(seed=(seed * SEEDS + number) % 2**31, ufactor=imbalance),
            )
            parts = np.array(found, dtype=np.int64)
        (schedule,) = _native.placed_schedules(
            problem.native,
            parts[problem.native.group].reshape(1, -1),
            _native.PlacementOrder.DFS,
            True,
            objective.per_ns,
            objective.per_byte,
        )
        evaluations += 1
        if best is None or schedule.score.is_better_than(best.score):
            best = schedule
        was_interrupted = cancel is not None and cancel.is_cancelled
        if was_interrupted or is_used_up(budget, started):
            break
    if best is None:
        raise AssertionError("no partition was tried")
    return outcome_of(problem, best.schedule, evaluations, started, was_interrupted=was_interrupted)


@dataclass(frozen=True, slots=True, kw_only=True)
class _GroupGraph:
    """The colocation groups as METIS reads them."""

    starts: Ints  # (groups + 1,)
    neighbors: Ints
    edge_weights: Ints  # like neighbors
    weights: tuple[Ints, ...]  # (groups,) each
    shares: list[float]  # per device

    @classmethod
    def of(cls, problem: ScheduleProblem) -> _GroupGraph:
        group = problem.native.group
        count = problem.native.n_groups
        work = np.bincount(group, mean_durations(problem), minlength=count)
        made = (problem.producers >= 0) & (problem.tensor_storages >= 0)
        sizes = problem.storage_bytes[problem.tensor_storages[made]]
        users = problem.resident_users
        owners = np.concatenate([problem.producers[made], users[:, 0]])
        sizes = np.concatenate([sizes, problem.resident_bytes[users[:, 1]]])
        size = np.bincount(group[owners], sizes, minlength=count)
        by_work, by_bytes = _scaled(work), _scaled(size)
        starts, neighbors, edge_weights = _adjacency(problem, group, count)
        # A device that can run nothing gets nothing; without ops all are equal.
        total = np.maximum(problem.durations, 0).sum(axis=0, dtype=np.float64)
        speed = np.where(total > 0, 1 / np.maximum(total, 1), float(not total.any()))
        return cls(
            starts=starts,
            neighbors=neighbors,
            edge_weights=edge_weights,
            weights=(by_work, by_bytes, by_work + by_bytes),
            shares=(speed / speed.sum()).tolist(),
        )


def _adjacency(problem: ScheduleProblem, group: Ints, count: int) -> tuple[Ints, Ints, Ints]:
    """Return row starts, neighbors and weights of the undirected graph of groups."""
    costs = mean_transfers(problem)
    writers, readers, tensors = problem.data_edges.T
    # A tensor that several ops of a group read is sent to it once.
    rows = np.unique(np.stack([group[writers], group[readers], tensors], axis=1), axis=0)
    rows = rows[rows[:, 0] != rows[:, 1]]
    low, high = np.minimum(rows[:, 0], rows[:, 1]), np.maximum(rows[:, 0], rows[:, 1])
    pairs, pair_of = np.unique(low * count + high, return_inverse=True)
    weights = _scaled(np.bincount(pair_of, costs[rows[:, 2]], minlength=len(pairs)))
    low, high = pairs // count, pairs % count
    ends = np.concatenate([low, high])
    order = np.argsort(ends, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=count))])
    both = np.concatenate([weights, weights])
    return starts.astype(np.int64), np.concatenate([high, low])[order], both[order]


def _scaled(values: NDArray[np.float64] | Ints) -> Ints:
    """Return `values` as integers from 1 to `MOST_WEIGHT`."""
    most = float(values.max(initial=0))
    if most == 0:
        return np.ones(len(values), dtype=np.int64)
    return np.maximum(np.rint(values / most * MOST_WEIGHT), 1).astype(np.int64)
