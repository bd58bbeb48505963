"""Slow references of the decoders and of memory, written straight from their descriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.search.problems import Tiny

NEUTRAL = 2**31


class SlowMemory:
    """Live bytes, by sets: which ops have yet to touch each storage."""

    def __init__(self, problem: Tiny) -> None:
        self.problem = problem
        self.users = [
            {op for op in range(problem.n_ops) if s in problem.touches[op]}
            for s in range(len(problem.bytes))
        ]
        self.left = [set(users) for users in self.users]
        self.pairs: dict[int, list[tuple[int, int]]] = {}
        for op, a, b in problem.in_place:
            self.pairs.setdefault(op, []).append((a, b))
        self.live = sum(
            problem.bytes[s] for s in problem.inputs if self.users[s] or s in problem.outputs
        )
        self.peak = 0

    def effect_of(self, op: int) -> tuple[int, int]:
        """Return (bytes during the step, bytes after it), both beyond the live ones."""
        problem = self.problem
        made = sum(
            problem.bytes[s]
            for s in problem.touches[op]
            if self.left[s] == self.users[s] and s not in problem.inputs
        )
        freed = sum(
            problem.bytes[s]
            for s in problem.touches[op]
            if self.left[s] == {op} and s not in problem.outputs
        )
        merged: list[tuple[int, int]] = []
        for a, b in self.pairs.get(op, []):
            is_free = all(a != x and b != y for x, y in merged)
            if is_free and self.left[a] == {op} and self.left[b] == self.users[b]:
                merged.append((a, b))
        saved = sum(problem.bytes[a] for a, _ in merged)
        return made + problem.workspace[op] - saved, made - freed

    def run(self, op: int) -> None:
        during, after = self.effect_of(op)
        self.peak = max(self.peak, self.live + during)
        self.live += after
        for s in self.problem.touches[op]:
            self.left[s] = self.left[s] - {op}


Rank = tuple[int, ...]


def list_schedule(problem: Tiny, rank: Callable[[SlowMemory, int], Rank]) -> list[int]:
    """Return the order that always runs the ready op with the lowest rank."""
    memory = SlowMemory(problem)
    before: list[set[int]] = [set() for _ in range(problem.n_ops)]
    for a, b in problem.edges:
        before[b].add(a)
    done: list[int] = []
    while len(done) < problem.n_ops:
        finished = set(done)
        ready = [v for v in range(problem.n_ops) if v not in finished and before[v] <= finished]
        chosen = min(ready, key=lambda op: (*rank(memory, op), op))
        memory.run(chosen)
        done.append(chosen)
    return done


def slow_raw(problem: Tiny, keys: Sequence[int]) -> list[int]:
    return list_schedule(problem, lambda _, op: (-keys[op],))


def slow_greedy(problem: Tiny, keys: Sequence[int]) -> list[int]:
    def rank(memory: SlowMemory, op: int) -> Rank:
        during, after = memory.effect_of(op)
        return max(0, memory.live + during - memory.peak), after, -keys[op]

    return list_schedule(problem, rank)


def slow_bent(
    problem: Tiny, keys: Sequence[int], weight: int, *, is_forced: bool = False
) -> list[int]:
    most = max((sum(problem.bytes[s] for s in touched) for touched in problem.touches), default=0)
    bend = int(most * weight / 2**31)

    def rank(memory: SlowMemory, op: int) -> Rank:
        during, after = memory.effect_of(op)
        score = after - (((keys[op] >> 16) - 2**15) * bend >> 15)
        if is_forced and after <= 0 and memory.live + during <= memory.peak:
            return 0, during, score, -keys[op]
        return 1, score, -keys[op]

    return list_schedule(problem, rank)


def slow_dfs(problem: Tiny, keys: Sequence[int]) -> list[int]:
    order: list[int] = []
    entered: set[int] = set()

    def visit(op: int) -> None:
        if op in entered:
            return
        entered.add(op)
        for operand in by_key([a for a, b in problem.edges if b == op]):
            visit(operand)
        order.append(op)

    def by_key(ops: list[int]) -> list[int]:
        return sorted(ops, key=lambda op: (-keys[op], op))

    sources = {a for a, _ in problem.edges}
    for sink in by_key([op for op in range(problem.n_ops) if op not in sources]):
        visit(sink)
    return order
