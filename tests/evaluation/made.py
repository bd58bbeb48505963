"""Suites and rows for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regal.evaluation.rows import Row
from regal.evaluation.suite import REPORT, BudgetRule, GraphsRule, Reference, Suite
from tests.evaluation.fakes import DEVICES, OPS, entry

if TYPE_CHECKING:
    from collections.abc import Sequence


def suite(*methods: str, **changes: Any) -> Suite:
    """Return a suite on one planted graph; by default 50 evaluations, one seed."""
    facts: dict[str, Any] = {
        "name": "made",
        "about": "Made for a test.",
        "purpose": REPORT,
        "objectives": ("time",),
        "systems": ("2",),
        "seeds": (0,),
        "methods": tuple(entry(name) for name in methods),
        "budgets": (BudgetRule(evaluations=50),),
        "graphs": (GraphsRule(planted="time", ops=(OPS,), devices=(DEVICES,)),),
        "references": (Reference(method=methods[0], evaluations=50),),
    }
    return Suite(**(facts | changes))


def row(**changes: Any) -> Row:
    """Return the row of a run that reached 100 with the bound 50."""
    facts: dict[str, Any] = {
        "suite": "made",
        "version": "0",
        "commit": "",
        "machine": {"processor": "p", "cores": 1},
        "when": "",
        "graph": "g",
        "graph_hash": "h",
        "family": "f",
        "framework": "graph",
        "split": "train",
        "ops": 1,
        "system": "2",
        "n_devices": 2,
        "objective": "time",
        "weights": {},
        "method": "a",
        "name": "a",
        "options": {},
        "seed": 0,
        "threads": 1,
        "budget": "50 evaluations",
        "asked_evaluations": 50,
        "asked_seconds": None,
        "value": 100.0,
        "evaluations": 50,
        "bound": 50.0,
    } | changes
    facts.setdefault("id", repr(sorted((name, str(value)) for name, value in facts.items())))
    return Row(**facts)


def rows(values: dict[str, Sequence[float]], **changes: Any) -> list[Row]:
    """Return the rows of methods on graphs g0, g1, ..., each its own family, one seed."""
    return [
        row(method=method, name=method, graph=f"g{i}", family=f"f{i}", value=value, **changes)
        for method, row_values in values.items()
        for i, value in enumerate(row_values)
    ]
