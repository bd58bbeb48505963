"""The comparisons that a study tests: one named beforehand, the others corrected together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from regal.evaluation.compare import comparisons
from regal.evaluation.intervals import holm
from regal.evaluation.suite import ALL_SYSTEMS, Reference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.evaluation.compare import Comparison
    from regal.evaluation.rows import Row
    from regal.evaluation.suite import Pair, Suite


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """A comparison, and the chance of its mean where there is no gain."""

    comparison: Comparison
    p: float
    corrected: float  # by Holm's method, among the secondary ones; that of the primary one is `p`


def primary_of(suite: Suite, rows: Sequence[Row]) -> Tested | None:
    """Return the primary comparison; None: there is none, or it has too few families."""
    first = suite.primary
    if first is None:
        return None
    for one in _over_systems(suite, rows, first, first.system):
        if (one.objective, one.budget) == (first.objective, first.budget):
            p = one.p_value
            return None if p is None else Tested(comparison=one, p=p, corrected=p)
    return None


def secondary_of(suite: Suite, rows: Sequence[Row]) -> list[Tested]:
    """Return the other comparisons of the suite's pairs over all systems, corrected together.

    Those with too few families for a p-value are left out.
    """
    first = suite.primary
    found = [
        (one, p)
        for pair in suite.secondary
        for one in _over_systems(suite, rows, pair, ALL_SYSTEMS)
        if (p := one.p_value) is not None
        and not (
            first is not None
            and first.system in (ALL_SYSTEMS, one.system)
            and (pair.method, pair.against) == (first.method, first.against)
            and (one.objective, one.budget) == (first.objective, first.budget)
        )
    ]
    corrected = holm([p for _, p in found])
    return [
        Tested(comparison=one, p=p, corrected=c)
        for (one, p), c in zip(found, corrected, strict=True)
    ]


def _over_systems(suite: Suite, rows: Sequence[Row], pair: Pair, system: str) -> list[Comparison]:
    reference = Reference(method=pair.against, evaluations=None, methods=(pair.method,))
    found = comparisons(suite, rows, reference)
    names = {one.system for one in found}
    wanted = system if system in names or len(names) != 1 else names.pop()
    return [one for one in found if one.system == wanted]
