"""Gains of methods over a reference, from rows: paired, with intervals, nothing left out silently.

A gain is 100 * (reference - method) / reference on the objective, for one graph, system and seed;
a graph's gain is the mean over its seeds. Only pairs of two results count, and every comparison
says how many runs it was asked for. `regal.evaluation.intervals` says what the intervals are.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from regal.evaluation.intervals import cluster_interval, p_value
from regal.evaluation.judge import TIE, is_tie
from regal.evaluation.suite import ALL_SYSTEMS, budgets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from regal.evaluation.rows import Row
    from regal.evaluation.suite import BudgetRule, Reference, Suite

    ProblemKey = tuple[str, str, str, str]
    RunKey = tuple[ProblemKey, int, str, str]  # and seed, method, budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One graph on one system: means over the seeds of which both runs have a result."""

    graph: str
    family: str
    gain: float  # percent
    room_to_best: float  # percent of the reference: what the best run of all gains
    room_to_bound: float  # percent of the reference: what no schedule can exceed


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One method beside a reference, over all graphs that both have results for."""

    objective: str
    system: str
    budget: str
    method: str
    against: str
    cases: tuple[Case, ...]
    pairs: int  # graphs, seeds and systems with two results
    asked: int  # that any method has a row for: what has no row here is missing, not left out
    cpu_seconds: float  # mean per run of the method
    reference_cpu_seconds: float  # mean per run of the reference, in the same pairs
    alone: int = 0  # graphs, seeds and systems where only the method has a result: the other failed
    reference_alone: int = 0

    @property
    def gains(self) -> list[float]:
        """Return the gain of each case, in percent."""
        return [case.gain for case in self.cases]

    @property
    def mean(self) -> float:
        """Return the mean gain over the cases."""
        return statistics.fmean(self.gains)

    @property
    def median(self) -> float:
        """Return the median gain of the cases."""
        return statistics.median(self.gains)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the 95 % interval of the mean; None: too few families."""
        return cluster_interval([(case.family, case.gain) for case in self.cases])

    @property
    def p_value(self) -> float | None:
        """Return the chance of such a mean where there is no gain; None: too few families."""
        return p_value([(case.family, case.gain) for case in self.cases])

    @property
    def families(self) -> int:
        """Return how many families the cases are of."""
        return len({case.family for case in self.cases})

    @property
    def outcomes(self) -> tuple[int, int, int]:
        """Return on how many cases the method is better, equal, worse."""
        wins = sum(gain > 100 * TIE for gain in self.gains)
        losses = sum(gain < -100 * TIE for gain in self.gains)
        return wins, len(self.gains) - wins - losses, losses

    @property
    def share_of_best(self) -> float | None:
        """Return the gain as a share of what the best runs gain; None: there is nothing."""
        return _share(sum(self.gains), sum(case.room_to_best for case in self.cases))

    @property
    def share_of_bound(self) -> float | None:
        """Return the gain as a share of what the proven bounds leave; None: there is nothing."""
        return _share(sum(self.gains), sum(case.room_to_bound for case in self.cases))


@dataclass(frozen=True, slots=True)
class Extremes:
    """What is known of a problem from all its rows."""

    best: float  # the least value of any run
    bound: float  # the largest proven bound


def comparisons(suite: Suite, rows: Sequence[Row], reference: Reference) -> list[Comparison]:
    """Return every method at every budget and system beside a reference, in the suite's order.

    Runs whose time another method decides are compared with that method's run, if it is the
    reference. Where there are several systems, each comparison is also made over all of them.
    A method is asked for every graph and seed that any row is of, and listed without any row.
    """
    known = extremes(rows)
    good: dict[RunKey, Row] = {}
    failed: set[RunKey] = set()
    for row in rows:
        key = (row.problem, row.seed, row.method, row.budget)
        if row.failure:
            failed.add(key)
        else:
            good[key] = row
    asked: dict[tuple[str, str], dict[tuple[ProblemKey, int], None]] = defaultdict(dict)
    for row in rows:
        for system in (row.system, ALL_SYSTEMS):
            asked[row.objective, system][row.problem, row.seed] = None
    systems = list(dict.fromkeys(row.system for row in rows))
    if len(systems) > 1:
        systems.append(ALL_SYSTEMS)
    found = []
    for objective, system, rule, method in product(
        suite.objectives, systems, suite.budgets, suite.methods
    ):
        runs = asked.get((objective, system), {})
        against = _reference_budget(suite, rule, reference)
        is_meant = not reference.methods or method.label in reference.methods
        is_other = method.label != reference.method
        is_run = is_meant and is_other and rule in budgets_of(suite, method.label)
        if not runs or not is_run or against is None:
            continue
        pairs, alone, reference_alone = [], 0, 0
        for problem, seed in runs:
            mine = (problem, seed, method.label, rule.text)
            theirs = (problem, seed, reference.method, against)
            if mine in good and theirs in good:
                pairs.append((good[mine], good[theirs]))
            alone += mine in good and theirs in failed
            reference_alone += mine in failed and theirs in good
        names = (objective, system, rule.text, method.label)
        one = _comparison(names, _name(reference), pairs, len(runs), known)
        found.append(replace(one, alone=alone, reference_alone=reference_alone))
    return found


def extremes(rows: Iterable[Row]) -> dict[ProblemKey, Extremes]:
    """Return the best value and the best bound of every problem that has a result."""
    best: dict[ProblemKey, float] = {}
    bound: dict[ProblemKey, float] = {}
    for row in rows:
        if not row.failure:
            best[row.problem] = min(row.value, best.get(row.problem, row.value))
            bound[row.problem] = max(row.bound, bound.get(row.problem, row.bound))
    return {problem: Extremes(value, bound[problem]) for problem, value in best.items()}


def contradictions(rows: Iterable[Row]) -> list[str]:
    """Return the problems on which a claimed bound is above a checked value: one line each."""
    return [
        f"{graph}, {system}, {objective}: a bound of {known.bound:g} is claimed, and"
        f" {known.best:g} was reached"
        for (graph, _, system, objective), known in sorted(extremes(rows).items())
        if known.bound > known.best and not is_tie(known.bound, known.best)
    ]


def by_family(comparison: Comparison) -> dict[str, tuple[float, int]]:
    """Return the mean gain of each family, and its number of graphs and systems."""
    gains: dict[str, list[float]] = defaultdict(list)
    for case in comparison.cases:
        gains[case.family].append(case.gain)
    return {name: (statistics.fmean(gains[name]), len(gains[name])) for name in sorted(gains)}


def _comparison(
    key: tuple[str, str, str, str],
    against: str,
    pairs: Sequence[tuple[Row, Row]],
    asked: int,
    known: Mapping[ProblemKey, Extremes],
) -> Comparison:
    objective, system, budget, method = key
    by_case: dict[ProblemKey, list[tuple[Row, Row]]] = defaultdict(list)
    for row, other in pairs:
        by_case[row.problem].append((row, other))
    return Comparison(
        objective=objective,
        system=system,
        budget=budget,
        method=method,
        against=against,
        cases=tuple(_case(by_case[one], known[one]) for one in sorted(by_case)),
        pairs=len(pairs),
        asked=asked,
        cpu_seconds=_mean(pairs, lambda pair: pair[0].cpu_seconds),
        reference_cpu_seconds=_mean(pairs, lambda pair: pair[1].cpu_seconds),
    )


def _case(pairs: Sequence[tuple[Row, Row]], known: Extremes) -> Case:
    first = pairs[0][0]
    return Case(
        graph=first.graph,
        family=first.family,
        gain=statistics.fmean(_gain(other.value, row.value) for row, other in pairs),
        room_to_best=statistics.fmean(_gain(other.value, known.best) for _, other in pairs),
        room_to_bound=statistics.fmean(_gain(other.value, known.bound) for _, other in pairs),
    )


def _gain(reference: float, value: float) -> float:
    """Return by how many percent `value` is below `reference`; 0 where they are equal."""
    if is_tie(reference, value) or reference == 0:
        return 0.0
    return 100 * (reference - value) / reference


def _share(gain: float, room: float) -> float | None:
    return gain / room if room > 100 * TIE else None


def _mean(pairs: Sequence[tuple[Row, Row]], of: Callable[[tuple[Row, Row]], float]) -> float:
    return statistics.fmean(map(of, pairs)) if pairs else 0.0


def _reference_budget(suite: Suite, rule: BudgetRule, reference: Reference) -> str | None:
    """Return the budget of the reference's run that a run under `rule` is compared with."""
    if rule.seconds_of and rule.seconds_of != reference.method:
        return None
    evaluations = rule.evaluations if rule.seconds_of else reference.evaluations
    if evaluations is None:
        return rule.text
    return next(
        one.text for one in suite.budgets if one.evaluations == evaluations and not one.seconds_of
    )


def _name(reference: Reference) -> str:
    if reference.evaluations is None:
        return f"{reference.method} at the same budget"
    return f"{reference.method}, {reference.evaluations:,} evaluations"
