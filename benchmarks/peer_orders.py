"""Rules and solvers that order the ops of one graph: ours and the peers.

Every one gets the same native problem: equal sizes, equal liveness, nothing in place. The
rules of compilers are those of `regal.baselines`; `inductor-*` with a star call the real
PyTorch functions where torch is installed.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np
from benchmarks.peer_inductor import inductor_order
from benchmarks.peer_offsets import Skipped

from regal import _native
from regal.search.methods import method_named
from regal.search.portfolio import default_evaluations, regal
from regal.search.types import Budget

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from regal.graph.types import Graph
    from regal.search.types import Outcome

    Orderer = Callable[["OrderCase", float], NDArray[np.int64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderCase:
    """One graph and its problem.

    `bound` is the cheap lower bound at which a solver may stop; none gets a better one.
    """

    name: str
    graph: Graph
    problem: _native.OrderProblem
    bound: int


def by_method(name: str) -> Orderer:
    """Return the orderer that runs a method of regal under a time limit."""

    def order(case: OrderCase, seconds: float) -> NDArray[np.int64]:
        outcome = method_named(name)(
            case.problem, Budget(seconds=seconds), seed=0, threads=1, stop_at=case.bound
        )
        if outcome.note:
            raise Skipped(outcome.note)
        return outcome.order

    return order


def by_default(case: OrderCase, seconds: float) -> NDArray[np.int64]:
    """Return what `regal optimize` does without any budget option."""
    return _default_outcome(case).order


def best_bound(case: OrderCase) -> int:
    """Return the best lower bound that our default run proves: what ratios are against."""
    return _default_outcome(case).lower_bound


def _default_outcome(case: OrderCase) -> Outcome:
    budget = Budget(evaluations=default_evaluations(case.problem.n_ops))
    return regal(case.problem, budget, seed=0, threads=1, stop_at=case.bound)


def runtime_default(case: OrderCase, seconds: float) -> NDArray[np.int64]:
    """Return the order in which the model's runtime executes it when nobody intervenes."""
    if case.graph.framework != "onnx":
        return np.arange(case.problem.n_ops, dtype=np.int64)
    order = import_module("regal.backends.onnx.order").default_order_of(case.graph)
    return np.array(order, dtype=np.int64)


def inductor_bfs(case: OrderCase, seconds: float) -> NDArray[np.int64]:
    """Return Inductor's breadth-first order, from its description.

    Of the ready ops, the one whose predecessors ran earliest comes next: their sorted
    positions are compared as lists, then the op numbers.

    Cost: O(edges log edges).
    """
    n_ops = case.problem.n_ops
    earlier: list[set[int]] = [set() for _ in range(n_ops)]
    later: list[set[int]] = [set() for _ in range(n_ops)]
    for a, b in _native.problem_rows(case.problem)[0].reshape(-1, 2).tolist():
        earlier[b].add(a)
        later[a].add(b)
    waits = [len(ops) for ops in earlier]
    position: dict[int, int] = {}
    ready: list[tuple[list[int], int]] = [([], op) for op in range(n_ops) if not waits[op]]
    heapq.heapify(ready)
    while ready:
        _, op = heapq.heappop(ready)
        position[op] = len(position)
        for reader in later[op]:
            waits[reader] -= 1
            if not waits[reader]:
                key = sorted(position[writer] for writer in earlier[reader])
                heapq.heappush(ready, (key, reader))
    return np.array(list(position), dtype=np.int64)


def by_inductor(rule: str) -> Orderer:
    """Return the orderer that calls PyTorch's own `topological_sort_<rule>`."""
    return lambda case, seconds: inductor_order(case.problem, rule)


ORDERERS: dict[str, Orderer] = {
    "file": by_method("file-order"),
    "runtime": runtime_default,
    "ort-default": by_method("ort-default"),
    "bfs": by_method("bfs"),
    "dfs": by_method("dfs"),
    "inductor-bfs": inductor_bfs,
    "inductor-dfs": by_method("inductor-dfs"),
    "inductor-lpmf": by_method("lpmf"),
    "inductor-lpmf*": by_inductor("lpmf"),
    "inductor-bfs*": by_inductor("bfs"),
    "inductor-dfs*": by_inductor("dfs"),
    "xla-list": by_method("xla-list"),
    "xla-dfs": by_method("xla-dfs"),
    "greedy-memory": by_method("greedy-memory"),
    "cp-sat": by_method("cp-sat"),
    "regal": by_default,
}


def peak_by_definition(problem: _native.OrderProblem, order: NDArray[np.int64]) -> int:
    """Return the peak of a legal order, computed here once more without the kernel.

    A storage lives from the first to the last op that touches it; inputs from the start,
    outputs to the end.

    Raises:
        ValueError: the order is not legal.
    """
    edges, touches, sizes, workspace, inputs, outputs, _ = _native.problem_rows(problem)
    if sorted(order.tolist()) != list(range(problem.n_ops)):
        raise ValueError("the order is not a permutation")
    step_of = np.empty(problem.n_ops, dtype=np.int64)
    step_of[order] = np.arange(problem.n_ops)
    pairs = edges.reshape(-1, 2)
    if np.any(step_of[pairs[:, 0]] >= step_of[pairs[:, 1]]):
        raise ValueError("a reader runs before its writer")
    first = np.full(len(sizes), problem.n_ops, dtype=np.int64)
    last = np.full(len(sizes), -1, dtype=np.int64)
    uses = touches.reshape(-1, 2)
    np.minimum.at(first, uses[:, 1], step_of[uses[:, 0]])
    np.maximum.at(last, uses[:, 1], step_of[uses[:, 0]])
    first[inputs] = 0
    last[outputs] = problem.n_ops - 1
    alive = np.zeros(problem.n_ops + 1, dtype=np.int64)
    is_used = last >= first
    np.add.at(alive, first[is_used], sizes[is_used])
    np.add.at(alive, last[is_used] + 1, -sizes[is_used])
    return int((np.cumsum(alive)[:-1] + workspace[order]).max(initial=0))
