"""A suite as the list of its runs; each has an id, so that none is done twice."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from regal.devices.file import system_to_dict
from regal.devices.presets import system_named
from regal.evaluation.suite import BALANCED, DRAWN_SYSTEM, OWN_SYSTEM, budgets_of, weights_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.evaluation.graphs import GraphSource
    from regal.evaluation.methods import MethodEntry
    from regal.evaluation.suite import BudgetRule, Suite


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A graph on a system: what the cells of one batch share."""

    source: GraphSource
    system: str  # as `--devices` takes it, or OWN_SYSTEM


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One run that a suite asks for."""

    problem: Problem
    objective: str
    method: MethodEntry
    seed: int
    budget: BudgetRule
    id: str


def problems_of(suite: Suite, sources: Sequence[GraphSource]) -> list[Problem]:
    """Return every graph on every system; graphs that bring their own devices only there."""
    found = []
    for source in sources:
        systems = [source.system] if source.system else suite.systems
        found += [Problem(source=source, system=system) for system in systems]
    return found


def cells_of(suite: Suite, problem: Problem) -> list[Cell]:
    """Return the runs on one problem."""
    objectives = suite.objectives
    if problem.source.objective:
        objectives = tuple(name for name in objectives if name == problem.source.objective)
    cells = []
    for objective in objectives:
        for seed in suite.seeds:
            pairs = [
                (method, rule)
                for method in suite.methods
                for rule in budgets_of(suite, method.label)
                if suite.seeds.index(seed) < rule.seeds
            ]
            # What gets the time of another run comes after it, while the machine is as busy.
            pairs.sort(key=lambda pair: bool(pair[1].seconds_of))
            for method, budget in pairs:
                cells.append(
                    Cell(
                        problem=problem,
                        objective=objective,
                        method=method,
                        seed=seed,
                        budget=budget,
                        id=_id(suite, problem, objective, method, seed, budget),
                    )
                )
    return cells


def _id(
    suite: Suite,
    problem: Problem,
    objective: str,
    method: MethodEntry,
    seed: int,
    budget: BudgetRule,
) -> str:
    """Return a hash of everything that decides what the run is; the program is not part of it."""
    plain, own = weights_of(objective, suite.weights)
    weights = [own.time, own.memory] if plain == BALANCED else []
    what = [
        problem.source.key, problem.source.hash, problem.system, _system_hash(problem.system),
        objective, weights, method.label, method.name, method.options, seed, suite.threads,
        budget.evaluations, budget.seconds, budget.seconds_of,
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:24]


@lru_cache(maxsize=64)
def _system_hash(system: str) -> str:
    if system in (OWN_SYSTEM, DRAWN_SYSTEM):
        return ""  # the graph decides it
    text = json.dumps(system_to_dict(system_named(system)), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
