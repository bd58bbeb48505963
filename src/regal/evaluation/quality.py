"""How long methods take to come close to the best value that any run of a problem found."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regal.evaluation.compare import extremes
from regal.evaluation.intervals import cluster_interval
from regal.evaluation.judge import TIE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from regal.evaluation.rows import Row
    from regal.evaluation.suite import Suite


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """How one method gets within so many percent of the best values, over graphs and seeds."""

    objective: str
    method: str
    percent: float
    runs: int  # graphs, systems and seeds
    share: float  # percent of the runs that got there
    interval: tuple[float, float] | None  # of the share
    evaluations: float  # median; infinite where at most half got there
    seconds: float  # median, CPU time
    longest: float  # median of the CPU seconds of the longest run that there is


def reached(suite: Suite, rows: Sequence[Row]) -> list[Reached]:
    """Return when each method first comes within each of the suite's percentages of the best.

    Only runs that evaluations limit count, and they are looked at when their budgets end, which is
    the same for all methods: a smaller budget is the beginning of a larger one. The best value is
    that of all rows of the problem. Problems whose best value is 0 are left out, and what no run of
    the method could do.
    """
    known = extremes(rows)
    found = []
    for objective in suite.objectives:
        for percent in suite.within:
            for method in suite.methods:
                mine: dict[tuple[object, int], list[Row]] = defaultdict(list)
                for row in rows:
                    is_meant = (row.objective, row.method) == (objective, method.label)
                    is_counted = row.asked_evaluations is not None
                    if is_meant and is_counted and not row.failure and known[row.problem].best > 0:
                        mine[row.problem, row.seed].append(row)
                if mine:
                    runs = list(mine.values())
                    bests = [known[rows_[0].problem].best for rows_ in runs]
                    found.append(_reached(objective, method.label, percent, runs, bests))
    return found


def _reached(
    objective: str,
    method: str,
    percent: float,
    runs: Sequence[Sequence[Row]],
    bests: Sequence[float],
) -> Reached:
    firsts = [
        _first(rows, best * (1 + percent / 100)) for rows, best in zip(runs, bests, strict=True)
    ]
    shares = [
        (rows[0].family, 100.0 if math.isfinite(first[0]) else 0.0)
        for rows, first in zip(runs, firsts, strict=True)
    ]
    return Reached(
        objective=objective,
        method=method,
        percent=percent,
        runs=len(runs),
        share=statistics.fmean(share for _, share in shares),
        interval=cluster_interval(shares),
        evaluations=_median(count for count, _ in firsts),
        seconds=_median(seconds for _, seconds in firsts),
        longest=_median(max(row.cpu_seconds for row in rows) for rows in runs),
    )


def _first(rows: Sequence[Row], most: float) -> tuple[float, float]:
    """Return the evaluations and CPU seconds of the shortest run of at most this value."""
    good = [row for row in rows if row.value <= most * (1 + TIE)]
    if not good:
        return math.inf, math.inf
    first = min(good, key=lambda row: row.asked_evaluations or 0)
    return float(first.evaluations), first.cpu_seconds


def _median(values: Iterable[float]) -> float:
    return statistics.median_high(values)
