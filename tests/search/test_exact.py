"""The exact search against all orders of tiny problems."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field

import numpy as np
import pytest

from regal import _native
from regal.search.exact import beam, lower_bound, solve_exact

ONE_GIB = 1 << 30


@dataclass
class Tiny:
    """A problem as plain rows."""

    n_ops: int
    edges: list[tuple[int, int]] = field(default_factory=list)
    touches: list[tuple[int, int]] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    workspace: list[int] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    in_place: list[tuple[int, int, int]] = field(default_factory=list)

    def native(self) -> _native.OrderProblem:
        def rows(values: list, columns: int) -> np.ndarray:
            return np.array(values, np.int64).reshape(-1, columns)

        def flat(values: list[int]) -> np.ndarray:
            return np.array(values, np.int64)

        verdict, problem = _native.build_problem(
            rows(self.edges, 2),
            rows(self.touches, 2),
            flat(self.bytes),
            flat(self.workspace or [0] * self.n_ops),
            flat(self.inputs),
            flat(self.outputs),
            rows(self.in_place, 3),
        )
        assert verdict.fault == _native.ProblemFault.NONE
        return problem

    def legal_orders(self) -> list[tuple[int, ...]]:
        orders = itertools.permutations(range(self.n_ops))
        return [o for o in orders if all(o.index(a) < o.index(b) for a, b in self.edges)]


def random_tiny(seed: int, most_ops: int = 7) -> Tiny:
    """Return a random problem: any op may touch any storage, whatever the edges."""
    rng = random.Random(seed)
    n = rng.randint(1, most_ops)
    n_storages = rng.randint(1, 8)
    density = rng.choice([0.1, 0.25, 0.5])
    relabel = rng.sample(range(n), n)
    edges = [
        (relabel[a], relabel[b])
        for a, b in itertools.combinations(range(n), 2)
        if rng.random() < density
    ]
    size = rng.choice([2, 3, 9])
    tiny = Tiny(n, edges)
    tiny.bytes = [rng.randint(0, size) for _ in range(n_storages)]
    tiny.workspace = [rng.choice([0, 0, 0, 1, 3]) for _ in range(n)]
    for storage in range(n_storages):
        for op in rng.sample(range(n), min(n, rng.randint(0, 4))):
            tiny.touches.append((op, storage))
    tiny.inputs = [s for s in range(n_storages) if rng.random() < 0.2]
    tiny.outputs = [s for s in range(n_storages) if rng.random() < 0.2]
    touches = set(tiny.touches)
    for op in range(n):
        for a, b in itertools.permutations(range(n_storages), 2):
            legal = tiny.bytes[a] == tiny.bytes[b] and a not in tiny.outputs
            legal = legal and b not in tiny.inputs and {(op, a), (op, b)} <= touches
            if legal and rng.random() < 0.5:
                tiny.in_place.append((op, a, b))
    rng.shuffle(tiny.in_place)
    return tiny


def peak_of(problem: _native.OrderProblem, order: tuple[int, ...]) -> int:
    """Return the peak as the independent checker sees it."""
    steps = np.array(order, np.int64)
    pairs = _native.simulate(problem, steps).in_place.reshape(-1, 3)
    verdict = _native.check_order(problem, steps, pairs)
    assert verdict.fault == _native.OrderFault.NONE
    return verdict.peak_bytes


@pytest.mark.parametrize("block", range(8))
def test_the_exact_peak_is_the_best_of_all_orders(block: int) -> None:
    for seed in range(50 * block, 50 * block + 50):
        tiny = random_tiny(seed)
        problem = tiny.native()
        best = min(peak_of(problem, order) for order in tiny.legal_orders())
        outcome = solve_exact(problem)
        assert outcome.peak_bytes == outcome.lower_bound == best, seed
        assert peak_of(problem, outcome.order) == best, seed
        assert lower_bound(problem) <= best, seed
        assert peak_of(problem, beam(problem, 2)) >= best, seed
