"""Anytime curves: how far above the best known value a method is after so many evaluations."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from regal.evaluation.compare import extremes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from regal.evaluation.rows import Row
    from regal.evaluation.suite import Suite

    Curve = list[tuple[int, float]]  # (evaluations, percent above the best)

STEPS: Final = (1, 3)  # of each power of ten
LEAST = 10


def grid_of(rows: Iterable[Row]) -> list[int]:
    """Return the numbers of evaluations at which curves are read."""
    asked = [row.asked_evaluations for row in rows if row.asked_evaluations is not None]
    most = max(asked, default=0)
    steps = {step * 10**power for power in range(8) for step in STEPS} | set(asked)
    return sorted(n for n in steps if LEAST <= n <= most)


def curves_of(suite: Suite, rows: Sequence[Row], objective: str) -> dict[str, Curve]:
    """Return the curve of each method, over all its runs that evaluations limit.

    A run is what one graph, system and seed have in common. Its value after n evaluations is the
    best one that its rows or their curves tell for n or fewer; a smaller budget is the beginning
    of a larger one. A point is there where every run of the method has a value by then; between
    its budgets only if it keeps curves.
    """
    known = extremes(rows)
    grid = grid_of(rows)
    found: dict[str, Curve] = {}
    for method in suite.methods:
        runs: dict[object, list[tuple[int, float]]] = defaultdict(list)
        points: set[int] = set()
        for row in rows:
            is_meant = row.method == method.label and row.objective == objective
            if is_meant and not row.failure and row.asked_evaluations is not None:
                best = known[row.problem].best
                if best > 0:  # nothing is a percentage of 0: task graphs without bytes
                    runs[row.problem, row.seed] += _points(row, best)
                    points |= set(grid) if row.curve else {row.asked_evaluations}
        curve = _mean_curve(runs, sorted(points))
        if curve:
            found[method.label] = curve
    return found


def _points(row: Row, best: float) -> list[tuple[int, float]]:
    """Return (evaluations, ratio to the best) of a row: its result, and its curve."""
    points = [(count, value) for count, _, value in row.curve]
    return [(count, value / best) for count, value in [*points, (row.evaluations, row.value)]]


def _mean_curve(
    runs: Mapping[object, Sequence[tuple[int, float]]], grid: Sequence[int]
) -> list[tuple[int, float]]:
    curve = []
    for n in grid:
        ratios = []
        for points in runs.values():
            values = [ratio for count, ratio in points if count <= n]
            if values:
                ratios.append(min(values))
        if ratios and len(ratios) == len(runs):
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            curve.append((n, 100 * (mean - 1)))
    return curve
