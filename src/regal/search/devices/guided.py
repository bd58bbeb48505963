"""The default method for several devices when a policy guides it: which stage comes next?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from regal.search.devices.guide import (
    ANNEAL,
    ARMS,
    FIRST_RULES,
    GENETIC,
    LOCAL,
    RULE_ARMS,
    STRATEGY,
    Progress,
)
from regal.search.devices.portfolio import STRATEGY_EVALUATIONS, PortfolioRun

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal._native import NamedSchedule
    from regal.search.devices.es import WeightPrior
    from regal.search.devices.guide import Guide

GUIDED_EVALUATIONS = 1_200  # after them the stages take turns as they do without a policy
# Evaluations of one slice.
SLICES = {STRATEGY: 100, LOCAL: 100, ANNEAL: 100, GENETIC: 150}
MOST_STRATEGY = 500  # evaluations
OVERFLOW_WEIGHT = 20.0  # a schedule that exceeds all memory by all memory is e^20 times worse


def guided_search(run: PortfolioRun, guide: Guide) -> list[tuple[str, tuple[str, ...]]]:
    """Spend the budget of a run as a policy says.

    The first rules always run. Then the policy chooses slice by slice; all rules have run and the
    evolution strategy has had its share when the stages begin to take turns. Nothing depends on
    the budget but the end, so that a run which the clock ended can be repeated.

    Returns the arms that the policy chose, each with those that it could choose from.
    """
    named = run.heuristics(FIRST_RULES)
    progress = _first_progress(run, named)
    left = list(ARMS)
    taken = []
    prior: WeightPrior | None = None
    while run.goes_on() and run.spent < GUIDED_EVALUATIONS and left:
        state = progress.state()
        scores = guide.scores(state)
        if np.ptp(scores) == 0:
            break
        arm = max(left, key=lambda name: scores[ARMS.index(name)])
        taken.append((arm, tuple(left)))
        value, spent = log_value(run), run.spent
        if arm == STRATEGY:
            prior = guide.prior(state) if prior is None else prior
            prior = run.strategy(SLICES[arm], prior).prior
        elif arm == ANNEAL:
            run.anneal(SLICES[arm] * run.cheapness())
        elif arm == LOCAL:
            run.local(SLICES[arm])
        elif arm == GENETIC:
            run.genetic(SLICES[arm])
        else:
            run.heuristics(RULE_ARMS[arm])
            left.remove(arm)
        progress.note(arm, run.spent - spent, max(value - log_value(run), 0.0))
        progress.bound = progress.first_bound - sum(progress.gained_by.values())
        progress.overflow = float(run.best.overflow > 0)
        if progress.spent_by.get(STRATEGY, 0) >= MOST_STRATEGY and STRATEGY in left:
            left.remove(STRATEGY)
    rest = [rule for arm, rules in RULE_ARMS.items() if arm in left for rule in rules]
    if run.goes_on() and rest:
        run.heuristics(rest)
    missing = STRATEGY_EVALUATIONS - progress.spent_by.get(STRATEGY, 0)
    if run.goes_on() and missing > 0:
        run.strategy(missing, prior)
    run.rounds()
    return taken


def _first_progress(run: PortfolioRun, named: Sequence[NamedSchedule]) -> Progress:
    prefixes = [rule.name.lower().replace("_", "-") for rule in FIRST_RULES]
    best = named[0].score.value
    values = np.full(len(prefixes), math.inf)
    for one in named:
        for i, prefix in enumerate(prefixes):
            if one.name.split("/")[0].split(" ")[0] == prefix:
                values[i] = min(values[i], one.score.value)
    ratios = np.log(np.maximum(values, 1e-12) / max(best, 1e-12))
    gap = math.log(max(best, 1e-12) / max(run.bound, 1e-12))
    return Progress(
        firsts=np.maximum(ratios, 0.0),
        first_bound=gap,
        bound=gap,
        overflow=float(run.best.overflow > 0),
        spent=run.spent,
    )


def log_value(run: PortfolioRun) -> float:
    """Return the logarithm of the best value; what does not fit counts as much more."""
    best = run.best
    share = min(best.overflow / run.capacity, 1.0) if best.overflow else 0.0
    return math.log(max(best.value, 1e-12)) + OVERFLOW_WEIGHT * share


