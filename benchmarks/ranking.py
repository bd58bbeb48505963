"""How well predicted times rank plans of one graph as measured ones do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

APART = 0.03  # measured times of plans that differ by less are about the same


def ranking(plans: list[dict[str, Any]]) -> dict[str, Any]:
    """Return Kendall's tau of prediction and measurement, and that of the halves of all runs.

    And tau over the pairs whose measured times differ by more than APART, with their share.
    """
    pairs = [(plan["predicted_ms"], plan["ms"]) for plan in plans]
    apart, share = kendall_apart(pairs, APART)
    return {
        "kendall": round(kendall(pairs), 3),
        "kendall_halves": round(kendall(tuple(plan["halves_ms"]) for plan in plans), 3),
        "kendall_apart": round(apart, 3),
        "share_apart": round(share, 3),
    }


def kendall(pairs: Iterable[tuple[float, float]]) -> float:
    """Return Kendall's tau-b of (predicted, measured)."""
    rows = list(pairs)
    score = ties_a = ties_b = 0
    for i, (a, b) in enumerate(rows):
        for c, d in rows[:i]:
            left, right = (a > c) - (a < c), (b > d) - (b < d)
            score += left * right
            ties_a += left != 0
            ties_b += right != 0
    return score / math.sqrt(ties_a * ties_b) if ties_a and ties_b else 0.0


def kendall_apart(pairs: Iterable[tuple[float, float]], apart: float) -> tuple[float, float]:
    """Return Kendall's tau over the pairs whose measured times differ, and their share.

    Args:
        pairs: (predicted, measured).
        apart: by how much of the smaller one they differ at least.
    """
    rows = list(pairs)
    signs = [
        ((a > c) - (a < c)) * (1 if b > d else -1)
        for i, (a, b) in enumerate(rows)
        for c, d in rows[:i]
        if abs(b - d) > apart * min(b, d)
    ]
    number = len(rows) * (len(rows) - 1) // 2
    return (sum(signs) / len(signs), len(signs) / number) if signs else (0.0, 0.0)
