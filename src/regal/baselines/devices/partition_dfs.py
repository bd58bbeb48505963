"""GP+DFS: a balanced minimum-cut partition by METIS, then a depth-first order on each device."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal.baselines.devices.means import mean_durations, mean_transfers
from regal.baselines.devices.rules import is_used_up
from regal.cost.types import FORBIDDEN
from regal.errors import BackendError
from regal.search.devices.outcomes import simulated_outcome

if TYPE_CHECKING:
    from collections.abc import Callable

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
        options = pymetis.Options(seed=(seed * SEEDS + number) % 2**31, ufactor=imbalance)

        def bisected(
            part: _Part, share: float, options: pymetis.Options = options
        ) -> NDArray[np.bool_]:
            _, sides = pymetis.part_graph(
                2,
                pymetis.CSRAdjacency(part.starts, part.neighbors),
                vweights=part.weights,
                eweights=part.edge_weights,
                tpwgts=[share, 1 - share],
                options=options,
            )
            is_left: NDArray[np.bool_] = np.array(sides) == 0
            return is_left

        devices = _partition(graph, weights, bisected)
        (schedule,) = _native.placed_schedules(
            problem.native,
            devices[problem.native.group].reshape(1, -1),
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
    return simulated_outcome(
        problem, best.schedule, evaluations, started, was_interrupted=was_interrupted
    )


def _partition(
    graph: _GroupGraph, weights: Ints, bisect: Callable[[_Part, float], NDArray[np.bool_]]
) -> Ints:
    """Return a device per group, by recursive bisection.

    METIS does the same for up to eight parts, but it prints where a side has too few vertices.
    """
    device_of = np.zeros(len(weights), dtype=np.int64)
    stack = [(np.arange(len(weights)), 0, len(graph.devices))]
    while stack:
        vertices, first, last = stack.pop()
        if last - first == 1 or len(vertices) < 2:
            device_of[vertices] = graph.devices[first]
            continue
        middle = (first + last) // 2
        share = graph.shares[first:middle].sum() / graph.shares[first:last].sum()
        is_left = bisect(_part_of(graph, weights, vertices), float(share))
        stack.append((vertices[is_left], first, middle))
        stack.append((vertices[~is_left], middle, last))
    return device_of


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Some vertices of a graph as METIS reads them."""

    starts: Ints  # (vertices + 1,)
    neighbors: Ints
    edge_weights: Ints  # like neighbors
    weights: Ints  # (vertices,)


def _part_of(graph: _GroupGraph, weights: Ints, vertices: Ints) -> _Part:
    """Return the graph of some vertices."""
    number = np.full(len(weights), -1, dtype=np.int64)
    number[vertices] = np.arange(len(vertices))
    is_inside = (number[graph.ends] >= 0) & (number[graph.neighbors] >= 0)
    degrees = np.bincount(number[graph.ends[is_inside]], minlength=len(vertices))
    return _Part(
        starts=np.concatenate([[0], np.cumsum(degrees)]),
        neighbors=number[graph.neighbors[is_inside]],
        edge_weights=graph.edge_weights[is_inside],
        weights=weights[vertices],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _GroupGraph:
    """The colocation groups, and what each device should get of them."""

    ends: Ints  # (2 edges,) ascending
    neighbors: Ints  # the other end of each
    edge_weights: Ints
    weights: tuple[Ints, ...]  # (groups,) each
    devices: Ints  # those that can run anything
    shares: NDArray[np.float64]  # like devices

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
        devices, shares = _shares(problem)
        ends, neighbors, edge_weights = _edges(problem, group, count)
        return cls(
            ends=ends,
            neighbors=neighbors,
            edge_weights=edge_weights,
            weights=(by_work, by_bytes, by_work + by_bytes),
            devices=devices,
            shares=shares,
        )


def _shares(problem: ScheduleProblem) -> tuple[Ints, NDArray[np.float64]]:
    """Return the devices that can run any op, and what each should get of the work.

    A device is as fast as it is on the ops that it can run.
    """
    can_run = problem.durations != FORBIDDEN
    devices = np.flatnonzero(can_run.any(axis=0))
    if len(devices) == 0:  # there are no ops
        return np.arange(problem.n_devices), np.full(problem.n_devices, 1 / problem.n_devices)
    means = mean_durations(problem)
    speeds = np.array(
        [means[can_run[:, d]].sum() / problem.durations[can_run[:, d], d].sum() for d in devices]
    )
    return devices, speeds / speeds.sum()


def _edges(problem: ScheduleProblem, group: Ints, count: int) -> tuple[Ints, Ints, Ints]:
    """Return both ends and the weight of each undirected edge between groups, each way round."""
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
    return (
        ends[order],
        np.concatenate([high, low])[order],
        np.concatenate([weights, weights])[order],
    )


def _scaled(values: NDArray[np.float64] | Ints) -> Ints:
    """Return `values` as integers from 1 to `MOST_WEIGHT`."""
    most = float(values.max(initial=0))
    if most == 0:
        return np.ones(len(values), dtype=np.int64)
    return np.maximum(np.rint(values / most * MOST_WEIGHT), 1).astype(np.int64)
