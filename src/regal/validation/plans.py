"""Diverse plans of one model: known good, known bad, and random ones."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from regal.options import Options
from regal.pipeline import plan_before, search
from regal.plan.check import require_valid_model_plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from regal.graph.types import LoadedModel
    from regal.plan.types import ModelPlan

# In turn with random orders, after the best and the runtime's own.
METHODS = ("bfs", "dfs", "file-order", "greedy-memory", "lpmf", "xla-list")
EVALUATIONS = 300
MOST_DOUBLES = 8  # random orders that were there already, before a small graph counts as done


def order_plans(model: LoadedModel, most: int, seed: int) -> list[tuple[str, ModelPlan]]:
    """Return up to `most` checked plans for one device with different orders, each named.

    The runtime's own order is first. A graph that has fewer orders gives fewer plans.
    """
    plans: list[tuple[str, ModelPlan]] = []
    seen: set[tuple[tuple[int, ...], ...]] = set()
    doubles = 0
    for name, plan in _all_plans(model, seed):
        orders = tuple(entry.order for entry in plan.plans)
        if orders in seen:
            doubles += name.startswith("random")
        else:
            seen.add(orders)
            plans.append((name, plan))
        if len(plans) >= most or doubles >= MOST_DOUBLES:
            break
    return plans


def _all_plans(model: LoadedModel, seed: int) -> Iterator[tuple[str, ModelPlan]]:
    options = Options(evaluations=EVALUATIONS, seed=seed)

    def found(options: Options) -> ModelPlan:
        return require_valid_model_plan(model, search(model, options))

    yield "before", require_valid_model_plan(model, plan_before(model))
    yield "regal", found(options)
    for number in count():
        one = replace(options, method="random", evaluations=1, seed=seed + number)
        yield f"random {number}", found(one)
        if number < len(METHODS):
            yield METHODS[number], found(replace(options, method=METHODS[number]))
