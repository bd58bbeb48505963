"""All methods on one model, side by side: same problem, same budget, same checker."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from regal import pipeline
from regal.errors import BackendError, RegalError
from regal.plan.check import require_valid_model_plan
from regal.search.methods import METHODS, require_method
from regal.search.planner import peak_floor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.graph.types import LoadedModel
    from regal.options import Options
    from regal.result import Result

SCHEMA = "regal.comparison/1"
DEFAULT_EVALUATIONS = 50_000  # of each method, where the caller sets no limit
# What a report compares a result with: orders that need no search.
RULES = (
    "file-order",
    "dfs",
    "bfs",
    "greedy-memory",
    "lpmf",
    "xla-list",
    "xla-dfs",
    "inductor-dfs",
    "ort-default",
)
MOST_RULED_OPS = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one method reached; `peak_bound` is the best bound that any method proved."""

    method: str
    peak_bytes: int = 0
    arena_bytes: int = 0
    peak_bound: int = 0
    evaluations: int = 0
    seconds: float = 0.0
    failure: str = ""


def compare_methods(model: LoadedModel, names: Sequence[str] | None, options: Options) -> list[Row]:
    """Return one row per method, least peak first; a method that fails is a row, too.

    Raises:
        UsageError: a name is not a method.
    """
    if options.evaluations is None and options.seconds is None:
        options = replace(options, evaluations=DEFAULT_EVALUATIONS)
    names = [require_method(name) for name in (names or METHODS)]
    return _ranked([_runtime_row(model), *(_method_row(model, name, options) for name in names)])


def compare_with_rules(result: Result, options: Options) -> dict[str, Any] | None:
    """Return the JSON object of a comparison of a result with orders that need no search.

    None: the graph has more than MOST_RULED_OPS ops, for which that takes too long.
    """
    if max(len(graph.ops) for graph in result.model.entries) > MOST_RULED_OPS:
        return None
    found = Row(
        method=result.plan.method,
        peak_bytes=result.peak_bytes,
        arena_bytes=result.arena_bytes,
        peak_bound=result.peak_bound,
        evaluations=result.plan.evaluations,
        seconds=result.seconds,
    )
    names = [name for name in RULES if name != found.method]
    rows = [_runtime_row(result.model), *(_method_row(result.model, n, options) for n in names)]
    return comparison_to_dict(str(result.path), result.model, _ranked([found, *rows]), options)


def _ranked(rows: Sequence[Row]) -> list[Row]:
    """Return the rows least peak first, with the best bound that any of them proved."""
    bound = max((row.peak_bound for row in rows), default=0)
    rows = [replace(row, peak_bound=bound) for row in rows]
    return sorted(rows, key=lambda row: (bool(row.failure), row.peak_bytes, row.arena_bytes))


def _runtime_row(model: LoadedModel) -> Row:
    try:
        before = pipeline.plan_before(model)
    except BackendError as error:
        return Row(method="runtime", failure=str(error))
    return Row(
        method="runtime",
        peak_bytes=before.peak_bytes,
        arena_bytes=before.arena_bytes,
        peak_bound=max(peak_floor(graph) for graph in model.entries),
    )


def _method_row(model: LoadedModel, name: str, options: Options) -> Row:
    started = time.perf_counter()
    try:
        plan = pipeline.search(model, replace(options, method=name))
        require_valid_model_plan(model, plan)
    except RegalError as error:
        return Row(method=name, failure=str(error))
    return Row(
        method=name,
        peak_bytes=plan.peak_bytes,
        arena_bytes=plan.arena_bytes,
        peak_bound=plan.peak_bound,
        evaluations=plan.evaluations,
        seconds=time.perf_counter() - started,
    )


def comparison_to_dict(
    path: str, model: LoadedModel, rows: Sequence[Row], options: Options
) -> dict[str, Any]:
    """Return the JSON object of a comparison."""
    return {
        "schema": SCHEMA,
        "model": path,
        "framework": model.framework,
        "ops": len(model.graph.ops),
        "objective": "memory",
        "seed": options.seed,
        "lower_bound": {"peak_bytes": max((row.peak_bound for row in rows), default=0)},
        "methods": [_row_to_dict(row) for row in rows],
    }


def _row_to_dict(row: Row) -> dict[str, Any]:
    if row.failure:
        return {"method": row.method, "failure": row.failure}
    gap = row.peak_bytes / row.peak_bound - 1 if row.peak_bound else None
    return {
        "method": row.method,
        "peak_bytes": row.peak_bytes,
        "arena_bytes": row.arena_bytes,
        "gap": gap,
        "optimal": row.peak_bytes == row.peak_bound,
        "evaluations": row.evaluations,
        "seconds": round(row.seconds, 6),
    }
