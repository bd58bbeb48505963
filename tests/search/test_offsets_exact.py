"""The complete search against an oracle that tries every placement."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field

import numpy as np
import pytest

from regal._native import (
    OffsetBranching,
    OffsetPreference,
    OffsetProblem,
    OffsetStatus,
    OffsetTreeOptions,
    build_offset_problem,
    search_offset_tree,
)
from regal.search.offsets import AllocationStatus, allocate

SWITCHES = ("decompose", "raise_floors", "skip_twins", "must_block", "order_stacks", "not_first")


@dataclass
class Case:
    """A tiny problem: every attribute has one entry per buffer."""

    first: list[int]
    last: list[int]
    size: list[int]
    alignment: list[int]
    fixed: list[int]
    gaps: list[tuple[int, int, int]] = field(default_factory=list)
    reserved: list[tuple[int, int]] = field(default_factory=list)

    def live(self, b: int) -> set[int]:
        steps = set(range(self.first[b], self.last[b] + 1))
        for buffer, first, last in self.gaps:
            if buffer == b:
                steps -= set(range(first, last + 1))
        return steps

    def least_arena(self) -> int | None:
        """Return the least arena by trying all offsets in order of the arena, or None."""
        n = len(self.size)
        steps = [self.live(b) for b in range(n)]
        limit = max([0, *self.fixed, *(high for _, high in self.reserved)])
        limit += sum(self.size) + sum(self.alignment)
        for arena in range(limit + 1):
            if self._fits(arena, steps, 0, []):
                return arena
        return None

    def _fits(self, arena: int, steps: list[set[int]], b: int, offsets: list[int]) -> bool:
        if b == len(self.size):
            return True
        wanted = [self.fixed[b]] if self.fixed[b] >= 0 else range(0, arena, self.alignment[b])
        for at in wanted:
            end = at + self.size[b]
            if end > arena or any(at < high and low < end for low, high in self.reserved):
                continue
            clear = all(
                end <= offsets[a] or offsets[a] + self.size[a] <= at or not steps[a] & steps[b]
                for a in range(b)
            )
            if clear and self._fits(arena, steps, b + 1, [*offsets, at]):
                return True
        return False


def random_case(rng: random.Random, *, kind: str) -> Case:
    n = rng.randint(1, 6)
    first = [rng.randint(0, 4) for _ in range(n)]
    last = [f + rng.randint(0, 3) for f in first]
    size = [rng.randint(1, 4) for _ in range(n)]
    alignment, fixed = [1] * n, [-1] * n
    gaps, reserved = [], []
    if kind == "aligned":
        alignment = [rng.choice([1, 2, 3, 4]) for _ in range(n)]
    if kind == "evenly aligned":
        alignment = [rng.choice([2, 4]) for _ in range(n)]
    if kind == "fixed":
        fixed = [rng.choice([-1, -1, rng.randint(0, 8)]) for _ in range(n)]
    if kind == "gaps":
        for b in range(n):
            if last[b] - first[b] >= 2 and rng.random() < 0.7:
                at = rng.randint(first[b] + 1, last[b] - 1)
                gaps.append((b, at, at))
    if kind == "reserved":
        for _ in range(rng.randint(1, 2)):
            low = rng.randint(0, 8)
            reserved.append((low, low + rng.randint(1, 3)))
    return Case(first, last, size, alignment, fixed, gaps, reserved)


KINDS = ["plain", "aligned", "evenly aligned", "fixed", "gaps", "reserved"]


def require_legal(case: Case, offsets: list[int], arena: int) -> None:
    n = len(case.size)
    for b in range(n):
        assert offsets[b] >= 0
        assert offsets[b] % case.alignment[b] == 0
        assert offsets[b] + case.size[b] <= arena
        assert case.fixed[b] in (-1, offsets[b])
        for low, high in case.reserved:
            assert offsets[b] >= high or offsets[b] + case.size[b] <= low
    for a, b in itertools.combinations(range(n), 2):
        if case.live(a) & case.live(b):
            assert (
                offsets[a] + case.size[a] <= offsets[b] or offsets[b] + case.size[b] <= offsets[a]
            )


@pytest.mark.parametrize("kind", KINDS)
def test_the_arena_equals_the_least_of_all_placements(kind: str) -> None:
    rng = random.Random(f"least {kind}")
    n_feasible = 0
    for _ in range(250):
        case = random_case(rng, kind=kind)
        least = case.least_arena()
        outcome = allocate(
            case.first, case.last, case.size, alignment=case.alignment, fixed=case.fixed,
            gaps=case.gaps, reserved=case.reserved,
        )  # fmt: skip
        if least is None:
            assert outcome.status is AllocationStatus.INFEASIBLE, case
            continue
        n_feasible += 1
        assert outcome.status is AllocationStatus.OPTIMAL, case
        assert outcome.arena_bytes == least, case
        assert outcome.lower_bound == least, case
        require_legal(case, [int(offset) for offset in outcome.offsets], least)
    assert n_feasible > 100


@pytest.mark.parametrize("kind", KINDS)
def test_a_capacity_is_met_exactly_when_some_placement_meets_it(kind: str) -> None:
    rng = random.Random(f"capacity {kind}")
    for _ in range(150):
        case = random_case(rng, kind=kind)
        least = case.least_arena()
        around = least if least is not None else 12
        for capacity in {max(around - 1, 0), around, around + 1}:
            outcome = allocate(
                case.first, case.last, case.size, alignment=case.alignment, fixed=case.fixed,
                gaps=case.gaps, reserved=case.reserved, capacity=capacity,
            )  # fmt: skip
            fits = least is not None and least <= capacity
            expected = AllocationStatus.FITS if fits else AllocationStatus.INFEASIBLE
            assert outcome.status is expected, (case, capacity)
            assert outcome.is_placed == fits
            if fits:
                require_legal(case, [int(offset) for offset in outcome.offsets], capacity)


def native_problem(case: Case) -> OffsetProblem:
    problem = OffsetProblem()
    columns = (case.first, case.last, case.size, case.alignment, case.fixed)
    first, last, size, alignment, fixed = (np.array(c, dtype=np.int64) for c in columns)
    hint = np.full(len(case.size), -1, dtype=np.int64)
    gaps = np.array(case.gaps, dtype=np.int64).reshape(-1, 3)
    reserved = np.array(case.reserved, dtype=np.int64).reshape(-1, 2)
    build_offset_problem(problem, first, last, size, alignment, fixed, hint, gaps, reserved)
    return problem


def test_every_combination_of_the_tricks_gives_the_same_answer() -> None:
    rng = random.Random("tricks")
    cases = [random_case(rng, kind=kind) for kind in KINDS for _ in range(6)]
    n_refuted = 0
    for case in cases:
        least = case.least_arena()
        problem = native_problem(case)
        if problem.first_clashing >= 0:
            assert least is None
            continue
        assert least is not None
        for values in itertools.product([False, True], repeat=len(SWITCHES)):
            options = OffsetTreeOptions()
            for name, value in zip(SWITCHES, values, strict=True):
                setattr(options, name, value)
            for branching in (OffsetBranching.LOWEST, OffsetBranching.FEWEST_CHOICES):
                found = search_offset_tree(
                    problem, least, options, branching, OffsetPreference.TOTAL_AREA_WIDTH
                )
                assert found.status == OffsetStatus.OPTIMAL, (case, values, branching)
                require_legal(case, [int(o) for o in found.offsets[: len(case.size)]], least)
                refuted = search_offset_tree(
                    problem, least - 1, options, branching, OffsetPreference.RANDOM
                )
                assert refuted.status == OffsetStatus.INFEASIBLE, (case, values, branching)
                n_refuted += refuted.nodes > 1
    assert n_refuted > 0  # some refutations need a search, not only the bound
