"""Time against memory: what a method offers when the weights of both change.

A graph, system and seed give one point (time, peak) per objective of the suite, each as a share of
the "before" (everything on the first device). The hypervolume is the area between the points and
the corner at CORNER, as a share of the area that the proven bounds leave: 0 where no point is
better than the corner, 100 % where one has both bounds.

Source: Zitzler & Thiele 1999 (hypervolume).
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from regal.evaluation.intervals import cluster_interval
from regal.evaluation.suite import budgets_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from regal.evaluation.rows import Row
    from regal.evaluation.suite import Suite

    Point = tuple[float, float]  # time and peak, as shares of the "before"
    Place = tuple[str, str, str, int]  # graph and its hash, system, seed

CORNER: Final = 1.1  # of time and of peak: what is worse by more than a tenth counts nothing
TINY: Final = 1e-12
EQUAL: Final = 1e-7  # percent


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """What one method offers at one budget, over all graphs, systems and seeds with all points."""

    method: str
    budget: str
    volume: float  # percent, mean over graphs
    gain: float  # percentage points over the reference, mean over graphs; 0 for itself
    interval: tuple[float, float] | None  # of the gain
    outcomes: tuple[int, int, int]  # graphs and systems where it is better, equal, worse
    of_best: float  # percent of the volume of all points of all methods together
    runs: int
    asked: int
    families: int
    points: Mapping[str, Point]  # objective -> geometric means


def is_sweep(suite: Suite) -> bool:
    """Return whether a suite asks for time, memory, and several weights in between."""
    is_between = any(" " in objective for objective in suite.objectives)
    return is_between and {"time", "memory"} <= set(suite.objectives)


def fronts(suite: Suite, rows: Sequence[Row], against: str) -> list[Front]:
    """Return what each method offers beside another one, at the same budgets.

    Only graphs, systems and seeds count for which both have a result for every objective.
    """
    befores, bounds = _limits(rows)
    points: dict[tuple[str, str], dict[Place, dict[str, Point]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    every: dict[Place, list[Point]] = defaultdict(list)
    families: dict[Place, str] = {}
    for row in rows:
        place = _place(row)
        families[place] = row.family
        if not row.failure and place in befores:
            before = befores[place]
            point = row.time_ns / before[0], row.peak_bytes / before[1]
            points[row.method, row.budget][place][row.objective] = point
            every[place].append(point)
    whole = {
        key: {
            place: list(found.values())
            for place, found in by_place.items()
            if len(found) == len(suite.objectives)
        }
        for key, by_place in points.items()
    }
    found = []
    for rule in suite.budgets:
        theirs = whole.get((against, rule.text), {})
        for method in suite.methods:
            if rule not in budgets_of(suite, method.label):
                continue
            mine = whole.get((method.label, rule.text), {})
            places = [place for place in mine if place in theirs]
            if not places:
                continue
            corners = {place: _corner_of(befores[place], bounds[place]) for place in places}
            own = [volume(mine[p], corners[p]) for p in places]
            others = [volume(theirs[p], corners[p]) for p in places]
            best = [volume(every[p], corners[p]) for p in places]
            gains = _by_case(places, [a - b for a, b in zip(own, others, strict=True)])
            named = [(families[place], gain) for place, gain in gains.items()]
            found.append(
                Front(
                    method=method.label,
                    budget=rule.text,
                    volume=statistics.fmean(own),
                    gain=statistics.fmean(gain for _, gain in named),
                    interval=cluster_interval(named),
                    outcomes=_outcomes(gains.values()),
                    of_best=100 * sum(own) / sum(best) if sum(best) > 0 else 100.0,
                    runs=len(places),
                    asked=len(families),
                    families=len({family for family, _ in named}),
                    points={
                        objective: _mean_point(
                            points[method.label, rule.text][place][objective] for place in places
                        )
                        for objective in suite.objectives
                    },
                )
            )
    return found


def volume(points: Iterable[Point], ideal: Point) -> float:
    """Return the hypervolume of some points, in percent of what `ideal` would have.

    Args:
        points: (time, peak).
        ideal: the least of each that is possible, below CORNER.
    """
    area, lowest = 0.0, CORNER
    for time, peak in sorted(points):
        if time < CORNER and peak < lowest:
            area += (CORNER - time) * (lowest - peak)
            lowest = peak
    return 100 * area / ((CORNER - ideal[0]) * (CORNER - ideal[1]))


def _limits(rows: Iterable[Row]) -> tuple[dict[Place, Point], dict[Place, Point]]:
    """Return the "before" and the best proven bounds: time and peak."""
    before: dict[Place, dict[str, float]] = defaultdict(dict)
    bounds: dict[Place, Point] = {}
    for row in rows:
        if row.objective in ("time", "memory") and row.before > 0:
            before[_place(row)][row.objective] = row.before
        time, peak = bounds.get(_place(row), (0.0, 0.0))
        bounds[_place(row)] = max(time, row.time_bound_ns), max(peak, row.peak_bound)
    known = {
        place: (values["time"], values["memory"])
        for place, values in before.items()
        if len(values) == 2
    }
    return known, bounds


def _place(row: Row) -> Place:
    return (row.graph, row.graph_hash, row.system, row.seed)


def _corner_of(before: Point, bound: Point) -> Point:
    return min(bound[0] / before[0], 1.0), min(bound[1] / before[1], 1.0)


def _by_case(places: Sequence[Place], gains: Sequence[float]) -> dict[Place, float]:
    """Return the mean gain over the seeds of each graph and system, by its first seed."""
    cases: dict[tuple[str, str, str], list[tuple[Place, float]]] = defaultdict(list)
    for place, gain in zip(places, gains, strict=True):
        cases[place[:3]].append((place, gain))
    return {case[0][0]: statistics.fmean(gain for _, gain in case) for case in cases.values()}


def _outcomes(gains: Iterable[float]) -> tuple[int, int, int]:
    values = list(gains)
    better = sum(gain > EQUAL for gain in values)
    worse = sum(gain < -EQUAL for gain in values)
    return better, len(values) - better - worse, worse


def _mean_point(points: Iterable[Point]) -> Point:
    logs = [(math.log(max(time, TINY)), math.log(max(peak, TINY))) for time, peak in points]
    time, peak = (statistics.fmean(column) for column in zip(*logs, strict=True))
    return math.exp(time), math.exp(peak)
