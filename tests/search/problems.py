"""Random problems, small enough for slow oracles, and a slow reference of everything."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regal import _native

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiny:
    """A problem as plain rows, beside its native form."""

    n_ops: int
    edges: frozenset[tuple[int, int]]
    touches: tuple[frozenset[int], ...]  # per op: storages
    bytes: tuple[int, ...]
    workspace: tuple[int, ...]
    inputs: frozenset[int]
    outputs: frozenset[int]
    in_place: tuple[tuple[int, int, int], ...]
    native: _native.OrderProblem


def rows(values: Sequence[Sequence[int]], columns: int) -> np.ndarray:
    return np.array(values, dtype=np.int64).reshape(-1, columns)


def build(
    *,
    edges: Sequence[tuple[int, int]],
    touches: Sequence[Sequence[int]],
    bytes_of: Sequence[int],
    workspace: Sequence[int] | None = None,
    inputs: Sequence[int] = (),
    outputs: Sequence[int] = (),
    in_place: Sequence[tuple[int, int, int]] = (),
) -> Tiny:
    workspace = [0] * len(touches) if workspace is None else workspace
    flat = [(op, s) for op, storages in enumerate(touches) for s in storages]
    verdict, native = _native.build_problem(
        rows(edges, 2),
        rows(flat, 2),
        np.array(bytes_of, dtype=np.int64),
        np.array(workspace, dtype=np.int64),
        np.array(inputs, dtype=np.int64),
        np.array(outputs, dtype=np.int64),
        rows(in_place, 3),
    )
    assert verdict.fault == _native.ProblemFault.NONE, verdict.guilty
    return Tiny(
        n_ops=len(touches),
        edges=frozenset(edges),
        touches=tuple(frozenset(storages) for storages in touches),
        bytes=tuple(bytes_of),
        workspace=tuple(workspace),
        inputs=frozenset(inputs),
        outputs=frozenset(outputs),
        in_place=tuple(sorted(in_place, key=lambda pair: pair[0])),
        native=native,
    )


def random_problem(seed: int, most_ops: int = 7) -> Tiny:
    """Return a problem with tiny sizes, so that ties, zero bytes and in-place are common.

    Mostly tensors with one writer and some readers; sometimes storages whose users are not
    ordered at all, as sub-buffers and views make them.
    """
    rng = random.Random(seed)
    n = rng.randint(1, most_ops)
    edges: set[tuple[int, int]] = set()
    touches: list[set[int]] = [set() for _ in range(n)]
    sizes: list[int] = []
    for _ in range(rng.randint(0, 2)):  # graph inputs
        for op in rng.sample(range(n), rng.randint(0, min(n, 3))):
            touches[op].add(len(sizes))
        sizes.append(rng.randint(0, 3))
    n_inputs = len(sizes)
    for writer in range(n):
        for _ in range(rng.choice([0, 1, 1, 1, 2])):
            later = range(writer + 1, n)
            readers = rng.sample(later, min(len(later), rng.choice([0, 1, 1, 2, 3])))
            for op in [writer, *readers]:
                touches[op].add(len(sizes))
            edges |= {(writer, reader) for reader in readers}
            sizes.append(rng.randint(0, 3))
    for _ in range(rng.choice([0, 0, 1])):  # users in any order
        for op in rng.sample(range(n), rng.randint(1, min(n, 4))):
            touches[op].add(len(sizes))
        sizes.append(rng.randint(0, 3))
    if n > 1 and rng.random() < 0.3:
        first, second = sorted(rng.sample(range(n), 2))
        edges.add((first, second))
    inputs = set(range(n_inputs)) - {s for s in range(n_inputs) if rng.random() < 0.1}
    outputs = {s for s in range(len(sizes)) if rng.random() < 0.2}
    pairs = [
        (op, a, b)
        for op in range(n)
        for a in sorted(touches[op] - outputs)
        for b in sorted(touches[op] - inputs)
        if a != b and sizes[a] == sizes[b] and rng.random() < 0.5
    ]
    rng.shuffle(pairs)
    labels = list(range(n))
    if rng.random() < 0.5:  # ids that do not follow the order
        rng.shuffle(labels)
    renamed: list[list[int]] = [[] for _ in range(n)]
    for op in range(n):
        renamed[labels[op]] = sorted(touches[op])
    return build(
        edges=sorted((labels[a], labels[b]) for a, b in edges),
        touches=renamed,
        bytes_of=sizes,
        workspace=[rng.choice([0, 0, 0, 1, 2, 4]) for _ in range(n)],
        inputs=sorted(inputs),
        outputs=sorted(outputs),
        in_place=[(labels[op], a, b) for op, a, b in pairs],
    )


def all_orders(problem: Tiny) -> Iterator[list[int]]:
    """Yield every legal order."""

    def extend(done: list[int]) -> Iterator[list[int]]:
        if len(done) == problem.n_ops:
            yield list(done)
        for op in ready_ops(problem, done):
            yield from extend([*done, op])

    yield from extend([])


def ready_ops(problem: Tiny, done: Sequence[int]) -> list[int]:
    return [
        op
        for op in range(problem.n_ops)
        if op not in done and all(a in done for a, b in problem.edges if b == op)
    ]


def live_after(problem: Tiny, done: Sequence[int]) -> int:
    """Return the bytes live between steps, once the ops of `done` ran."""
    total = 0
    for s, size in enumerate(problem.bytes):
        users = {op for op in range(problem.n_ops) if s in problem.touches[op]}
        began = bool(users & set(done)) or (
            s in problem.inputs and bool(users or s in problem.outputs)
        )
        goes_on = s in problem.outputs or bool(users - set(done))
        total += size if began and goes_on else 0
    return total


def live_during(problem: Tiny, done: Sequence[int], op: int) -> int:
    """Return the bytes live while `op` runs after `done`, workspace included."""
    total = problem.workspace[op]
    users = [
        {v for v in range(problem.n_ops) if s in problem.touches[v]}
        for s in range(len(problem.bytes))
    ]
    for s, size in enumerate(problem.bytes):
        began = (
            s in problem.touches[op]
            or bool(users[s] & set(done))
            or (s in problem.inputs and bool(users[s] or s in problem.outputs))
        )
        goes_on = s in problem.outputs or bool(users[s] - set(done))
        total += size if began and goes_on else 0
    merged: set[tuple[str, int]] = set()
    for owner, a, b in problem.in_place:
        if owner != op or ("in", a) in merged or ("out", b) in merged:
            continue
        if users[a] - set(done) == {op} and not users[b] & set(done):
            merged |= {("in", a), ("out", b)}
            total -= problem.bytes[a]
    return total


def slow_peak(problem: Tiny, order: Sequence[int]) -> int:
    return max((live_during(problem, order[:i], op) for i, op in enumerate(order)), default=0)


def best_peak(problem: Tiny) -> int:
    """Return the lowest peak of all legal orders."""
    return min(slow_peak(problem, order) for order in all_orders(problem))


def wide_problem(seed: int, width: int) -> Tiny:
    """Return three layers of `width` ops: hundreds are ready at once, with many ties."""
    rng = random.Random(seed)
    n = 3 * width + 1
    edges: set[tuple[int, int]] = set()
    touches: list[set[int]] = [{v} for v in range(n)]
    for v in range(width, 3 * width):
        layer = v // width
        for u in rng.sample(range((layer - 1) * width, layer * width), rng.choice([1, 2])):
            edges.add((u, v))
            touches[v].add(u)
    for v in range(2 * width, 3 * width):
        edges.add((v, n - 1))
        if rng.random() < 0.2:
            touches[n - 1].add(v)
    sizes = [rng.randint(0, 5) for _ in range(n)]
    pairs = [(v, u, v) for u, v in sorted(edges) if sizes[u] == sizes[v] and u in touches[v]]
    return build(
        edges=sorted(edges),
        touches=[sorted(touched) for touched in touches],
        bytes_of=sizes,
        workspace=[rng.choice([0, 0, 1, 3]) for _ in range(n)],
        outputs=[n - 1],
        in_place=pairs,
    )
