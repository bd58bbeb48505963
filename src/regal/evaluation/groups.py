"""The same comparisons over parts of the graphs: by size, number of devices, or framework."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from regal.evaluation.compare import comparisons
from regal.evaluation.suite import ALL_SYSTEMS, DEVICES, OPS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.evaluation.compare import Comparison
    from regal.evaluation.rows import Row
    from regal.evaluation.suite import Reference, Suite

SIZES: Final = (1_000, 2_000, 5_000, 10_000)  # ops: where a group ends and the next begins


def grouped(
    suite: Suite, rows: Sequence[Row], reference: Reference, grouping: str
) -> list[tuple[str, Comparison]]:
    """Return (group, comparison over all its systems), the groups of a comparison side by side.

    Args:
        suite: what was run.
        rows: of it. Those of runs that were never begun do not say their size: they are left out.
        reference: what gains are measured against.
        grouping: one of `GROUPINGS`.
    """
    parts: dict[tuple[int, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row.ops:
            parts[_group_of(row, grouping)].append(row)
    found: list[tuple[str, Comparison]] = []
    for (_, name), part in sorted(parts.items()):
        ones = comparisons(suite, part, reference)
        whole = [one for one in ones if one.system == ALL_SYSTEMS] or ones
        found += [(name, one) for one in whole]
    ranks = {key: rank for rank, key in enumerate(_keys(suite))}
    found.sort(key=lambda item: ranks[_key(item[1])])  # stable
    return found


def size_group(ops: int) -> tuple[int, str]:
    """Return the place and the name of the group of a number of ops."""
    place = sum(ops >= end for end in SIZES)
    if place == len(SIZES):
        return place, f"{SIZES[-1]:,} and more"
    low = SIZES[place - 1] if place else 0
    return place, f"{low:,} to {SIZES[place] - 1:,}"


def _group_of(row: Row, grouping: str) -> tuple[int, str]:
    if grouping == OPS:
        return size_group(row.ops)
    if grouping == DEVICES:
        return row.n_devices, str(row.n_devices)
    return 0, row.framework


def _keys(suite: Suite) -> list[tuple[str, str, str]]:
    return [
        (objective, rule.text, method.label)
        for objective in suite.objectives
        for rule in suite.budgets
        for method in suite.methods
    ]


def _key(one: Comparison) -> tuple[str, str, str]:
    return one.objective, one.budget, one.method
