"""Gains of methods over a reference, from rows: paired, with intervals, nothing left out silently.

A gain is 100 * (reference - method) / reference on the objective, for one graph, system and seed;
a graph's gain is the mean over its seeds. Only pairs of two results count, and every comparison
says how many runs it was asked for. Intervals are 95 % percentile intervals of a bootstrap that
draws families of graphs, not graphs: kin graphs gain alike, and as many of them prove little.

Source: cluster bootstrap: Davison & Hinkley 1997, section 3.8.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from regal.evaluation.judge import TIE, is_tie

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from regal.evaluation.rows import Row
    from regal.evaluation.suite import BudgetRule, Reference, Suite

    ProblemKey = tuple[str, str, str, str]

ALL_SYSTEMS = "all"
RESAMPLES: Final = 4_000
BOOTSTRAP_SEED: Final = 20_260
FEWEST_FAMILIES = 3  # below, an interval would be a fiction


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
    asked: int  # that were asked for
    cpu_seconds: float  # mean per run of the method
    reference_cpu_seconds: float  # mean per run of the reference, in the same pairs

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


@dataclass(slots=True)
class _Group:
    """The runs of one method at one budget, and what they are measured against."""

    rows: list[tuple[Row, Row | None]] = field(default_factory=list)  # with their references


def comparisons(suite: Suite, rows: Sequence[Row], reference: Reference) -> list[Comparison]:
    """Return every method at every budget and system beside a reference, in the suite's order.

    Runs whose time another method decides are compared with that method's run, if it is the
    reference. Where there are several systems, each comparison is also made over all of them.
    """
    known = extremes(rows)
    by_run = {(row.problem, row.seed, row.method, row.budget): row for row in rows}
    groups: dict[tuple[str, str, str, str], _Group] = defaultdict(_Group)
    for row in rows:
        rule = _rule_of(suite, row.budget)
        if rule is None or row.method == reference.method:
            continue
        against = _reference_budget(suite, rule, reference)
        if against is None:
            continue
        other = by_run.get((row.problem, row.seed, reference.method, against))
        for system in (row.system, ALL_SYSTEMS):
            key = (row.objective, system, row.budget, row.method)
            groups[key].rows.append((row, other))
    systems = list(dict.fromkeys(row.system for row in rows))
    found = []
    for objective in suite.objectives:
        for system in systems if len(systems) == 1 else [*systems, ALL_SYSTEMS]:
            for rule in suite.budgets:
                for method in suite.methods:
                    key = (objective, system, rule.text, method.label)
                    if key in groups:
                        name = _name(reference)
                        found.append(_comparison(key, name, groups[key].rows, known))
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


def cluster_interval(gains: Sequence[tuple[str, float]]) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean gain, drawing families; None: too few of them.

    Args:
        gains: (family, gain) of each graph.
    """
    by_family: dict[str, list[float]] = defaultdict(list)
    for family, gain in gains:
        by_family[family].append(gain)
    n = len(by_family)
    if n < FEWEST_FAMILIES:
        return None
    names = sorted(by_family)  # so that the order of the rows does not matter
    sums = np.array([sum(sorted(by_family[name])) for name in names])
    counts = np.array([len(by_family[name]) for name in names], dtype=np.float64)
    drawn = np.random.default_rng(BOOTSTRAP_SEED).integers(n, size=(RESAMPLES, n))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def by_family(comparison: Comparison) -> dict[str, tuple[float, int]]:
    """Return the mean gain of each family, and its number of graphs and systems."""
    gains: dict[str, list[float]] = defaultdict(list)
    for case in comparison.cases:
        gains[case.family].append(case.gain)
    return {name: (statistics.fmean(gains[name]), len(gains[name])) for name in sorted(gains)}


def _comparison(
    key: tuple[str, str, str, str],
    against: str,
    rows: Sequence[tuple[Row, Row | None]],
    known: Mapping[ProblemKey, Extremes],
) -> Comparison:
    objective, system, budget, method = key
    pairs = [
        (row, other)
        for row, other in rows
        if other is not None and not row.failure and not other.failure
    ]
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
        asked=len(rows),
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


def _rule_of(suite: Suite, budget: str) -> BudgetRule | None:
    return next((rule for rule in suite.budgets if rule.text == budget), None)


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
