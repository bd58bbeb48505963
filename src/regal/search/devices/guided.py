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
    PROGRESS,
    RULE_ARMS,
    STRATEGY,
    Choice,
    Progress,
)
from regal.search.devices.portfolio import STRATEGY_EVALUATIONS, PortfolioRun, usual_search

if TYPE_CHECKING:
    from regal._native import DeviceScore
    from regal.search.devices.es import WeightPrior
    from regal.search.devices.guide import Guide

GUIDED_EVALUATIONS = 1_200  # after them the stages take turns as they do without a policy
# Evaluations of a slice. The strategy goes on where it was; the others begin anew from the best
# schedules, so each of their slices is twice as long as the one before.
SLICES = {STRATEGY: 100, LOCAL: 100, ANNEAL: 150, GENETIC: 200}
MOST_STRATEGY = 500  # evaluations
OVERFLOW_WEIGHT = 20.0  # a schedule that exceeds all memory by all memory is e^20 times worse


def guided_search(run: PortfolioRun, guide: Guide) -> list[Choice]:
    """Spend the budget of a run as a policy says.

    A policy that prefers nothing at the very start leaves the search as it is without one. Else the
    first rules run. Then the policy chooses slice by slice; all rules have run and the
    evolution strategy has had its share when the stages begin to take turns. Nothing depends on
    the budget but the end, so that a run which the clock ended can be repeated.

    Returns what the policy chose.
    """
    if np.ptp(guide.scores(np.zeros(len(PROGRESS), dtype=np.float32))) == 0:
        usual_search(run)
        return []
    progress = first_progress(run)
    left = list(ARMS)
    choices = []
    prior: WeightPrior | None = None
    while run.goes_on() and run.spent < GUIDED_EVALUATIONS and left:
        state = progress.state()
        scores = guide.scores(state)
        arm = max(left, key=lambda name: scores[ARMS.index(name)])
        choices.append(Choice(arm=arm, open=tuple(left), progress=state))
        value, spent = log_value(run), run.spent
        if arm == STRATEGY:
            prior = guide.prior(state) if prior is None else prior
            prior = run.strategy(SLICES[arm], prior).prior
        elif arm == ANNEAL:
            run.anneal(SLICES[arm] * run.cheapness() << progress.times(arm))
        elif arm == LOCAL:
            run.local(SLICES[arm] << progress.times(arm))
        elif arm == GENETIC:
            run.genetic(SLICES[arm] << progress.times(arm))
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
    return choices


def first_progress(run: PortfolioRun) -> Progress:
    """Run the first rules; return what a policy sees then."""
    named = run.heuristics(FIRST_RULES)
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
    """Return the logarithm of the best value; see `value_of`."""
    return value_of(run.best, run.capacity)


def value_of(score: DeviceScore, capacity: float) -> float:
    """Return the logarithm of a value; what does not fit into all memory counts as much more."""
    share = min(score.overflow / capacity, 1.0) if score.overflow else 0.0
    return math.log(max(score.value, 1e-12)) + OVERFLOW_WEIGHT * share
