"""Tiny order problems as plain rows, small enough to try all orders."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from regal import _native

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray


@dataclass
class Tiny:
    """A problem as plain rows; see `_native.build_problem`."""

    n_ops: int
    edges: list[tuple[int, int]] = field(default_factory=list)
    touches: list[tuple[int, int]] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    workspace: list[int] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    in_place: list[tuple[int, int, int]] = field(default_factory=list)

    def native(self) -> _native.OrderProblem:
        verdict, problem = _native.build_problem(
            _rows(self.edges, 2),
            _rows(self.touches, 2),
            np.array(self.bytes, np.int64),
            np.array(self.workspace or [0] * self.n_ops, np.int64),
            np.array(self.inputs, np.int64),
            np.array(self.outputs, np.int64),
            _rows(self.in_place, 3),
        )
        assert verdict.fault == _native.ProblemFault.NONE
        return problem

    def legal_orders(self) -> Iterator[tuple[int, ...]]:
        """Yield every order that respects the edges."""
        before = [{a for a, b in self.edges if b == op} for op in range(self.n_ops)]

        def extend(done: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
            if len(done) == self.n_ops:
                yield done
            for op in range(self.n_ops):
                if op not in done and before[op] <= set(done):
                    yield from extend((*done, op))

        return extend(())


def best_peak(tiny: Tiny) -> int:
    """Return the lowest peak of all orders: the slow, obvious dynamic program over sets.

    The peak of a set of done ops is the best over its last op; storages by their definition.
    """
    n = tiny.n_ops
    touchers: list[int] = [0] * len(tiny.bytes)
    for op, storage in tiny.touches:
        touchers[storage] |= 1 << op
    before = [sum(1 << a for a, b in set(tiny.edges) if b == op) for op in range(n)]
    best = {0: 0}
    for done in range(1 << n):
        if done not in best:
            continue
        for op in range(n):
            if done >> op & 1 or before[op] & ~done:
                continue
            peak = max(best[done], _bytes_during(tiny, touchers, done, op))
            after = done | 1 << op
            best[after] = min(peak, best.get(after, peak))
    return best[(1 << n) - 1]


def _bytes_during(tiny: Tiny, touchers: list[int], done: int, op: int) -> int:
    """Return the bytes that are live while `op` runs after the ops in `done`."""
    during = (tiny.workspace or [0] * tiny.n_ops)[op]
    for storage, users in enumerate(touchers):
        is_begun = bool(users & (done | 1 << op)) or (storage in tiny.inputs)
        is_needed = bool(users & ~done) or (storage in tiny.outputs)
        is_used = bool(users) or (storage in tiny.inputs and storage in tiny.outputs)
        during += tiny.bytes[storage] * (is_used and is_begun and is_needed)
    taken: set[tuple[str, int]] = set()
    for _, dying, fresh in (pair for pair in tiny.in_place if pair[0] == op):
        dies = touchers[dying] & ~done == 1 << op
        if dies and not touchers[fresh] & done and not {("in", dying), ("out", fresh)} & taken:
            taken |= {("in", dying), ("out", fresh)}
            during -= tiny.bytes[dying]
    return during


def random_net(seed: int, most_ops: int = 10) -> Tiny:
    """Return a random network: each op writes a tensor and reads those of its predecessors."""
    rng = random.Random(seed)
    n = rng.randint(4, most_ops)
    largest = rng.choice([2, 4, 9])
    tiny = Tiny(n, bytes=[rng.randint(0, largest) for _ in range(n)])
    tiny.workspace = [rng.choice([0, 0, 0, 1, 2]) for _ in range(n)]
    reach = rng.choice([2, 4, n])
    for op in range(n):
        tiny.touches.append((op, op))
        sources = range(max(0, op - reach), op)
        for source in rng.sample(sources, min(len(sources), rng.choice([0, 1, 1, 1, 2, 3]))):
            tiny.edges.append((source, op))
            tiny.touches.append((op, source))
    _finish(tiny, rng, in_out=0.05)
    return tiny


def random_tiny(seed: int, most_ops: int = 7) -> Tiny:
    """Return a random problem: any op may touch any storage, whatever the edges."""
    rng = random.Random(seed)
    n = rng.randint(1, most_ops)
    density = rng.choice([0.1, 0.25, 0.5])
    relabel = rng.sample(range(n), n)
    tiny = Tiny(n)
    tiny.edges = [
        (relabel[a], relabel[b])
        for a, b in itertools.combinations(range(n), 2)
        if rng.random() < density
    ]
    tiny.workspace = [rng.choice([0, 0, 0, 1, 3]) for _ in range(n)]
    largest = rng.choice([2, 3, 9])
    for storage in range(rng.randint(1, 8)):
        tiny.bytes.append(rng.randint(0, largest))
        for op in rng.sample(range(n), min(n, rng.randint(0, 4))):
            tiny.touches.append((op, storage))
    _finish(tiny, rng, in_out=0.2)
    return tiny


def random_twins(seed: int) -> Tiny:
    """Return a random problem of at most 8 ops with two or three copies of a small unit."""
    rng = random.Random(seed)
    copies, size = rng.choice([(2, 2), (2, 3), (3, 2), (3, 1)])
    inside = [(a, b) for a, b in itertools.combinations(range(size), 2) if rng.random() < 0.8]
    workspace = [rng.choice([0, 0, 1, 2]) for _ in range(size)]
    own = [
        (rng.randint(0, 3), rng.sample(range(size), rng.randint(1, size)), rng.random() < 0.7)
        for _ in range(rng.randint(1, 3))
    ]
    shared = [rng.sample(range(size), rng.randint(1, size)) for _ in range(rng.randint(0, 2))]
    are_inputs = rng.random() < 0.2
    is_chained = rng.random() < 0.5  # joins one after the other, or one for all
    n_joins = rng.choice([1, copies]) if 1 + copies * size + copies <= 8 else 1
    tiny = Tiny(1 + copies * size + n_joins)
    tiny.workspace = [0] * tiny.n_ops
    joins = [1 + copies * size + j for j in range(n_joins)]
    if is_chained:
        tiny.edges += list(itertools.pairwise(joins))
    for touchers in shared:
        tiny.bytes.append(rng.randint(0, 3))
        tiny.touches.append((0, len(tiny.bytes) - 1))
        for copy, position in itertools.product(range(copies), touchers):
            tiny.touches.append((1 + copy * size + position, len(tiny.bytes) - 1))
    for copy in range(copies):
        first, join = 1 + copy * size, joins[copy % n_joins]
        tiny.edges += [(0, first + i) for i in range(size)]
        tiny.edges += [(first + a, first + b) for a, b in inside]
        tiny.edges.append((first + size - 1, join))
        for i in range(size):
            tiny.workspace[first + i] = workspace[i]
        for bytes_, touchers, leaves in own:
            tiny.bytes.append(bytes_)
            tiny.touches += [(first + i, len(tiny.bytes) - 1) for i in touchers]
            if leaves:
                tiny.touches.append((join, len(tiny.bytes) - 1))
            if are_inputs:
                tiny.inputs.append(len(tiny.bytes) - 1)
    for join in joins:
        tiny.bytes.append(rng.randint(0, 3))
        tiny.touches.append((join, len(tiny.bytes) - 1))
    _finish(tiny, rng, in_out=0.05)
    return tiny


def _finish(tiny: Tiny, rng: random.Random, in_out: float) -> None:
    """Choose inputs, outputs and in-place pairs."""
    storages = range(len(tiny.bytes))
    tiny.inputs += [s for s in storages if rng.random() < in_out]
    tiny.outputs = [s for s in storages if rng.random() < in_out]
    tiny.touches = sorted(set(tiny.touches))
    touches = set(tiny.touches)
    share = rng.choice([0.0, 0.5, 1.0])
    for op, a, b in itertools.product(range(tiny.n_ops), storages, storages):
        legal = a != b and tiny.bytes[a] == tiny.bytes[b] and a not in tiny.outputs
        legal = legal and b not in tiny.inputs and {(op, a), (op, b)} <= touches
        if legal and rng.random() < share:
            tiny.in_place.append((op, a, b))
    if share == 0.5:
        rng.shuffle(tiny.in_place)


def _rows(values: Sequence[tuple[int, ...]], columns: int) -> NDArray[np.int64]:
    return np.array(values, np.int64).reshape(-1, columns)
