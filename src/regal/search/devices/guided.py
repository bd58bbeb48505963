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
    MODES,
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
# Evaluations of the slices of the strategy: small at first, so that a small budget has choices. The
# others begin anew from the best schedules, so each of their slices is twice as long as the last.
STRATEGY_SLICES = (40, 60, 100)
MODES_SLICE = 60
SLICES = {LOCAL: 50, ANNEAL: 80, GENETIC: 100}
MOST_STRATEGY = 500  # evaluations, together with those from the modes
OVERFLOW_WEIGHT = 20.0  # a schedule that exceeds all memory by all memory is e^20 times worse


def guided_search(run: PortfolioRun, guide: Guide) -> list[Choice]:
    """Spend the budget of a run as a policy says.

    A policy that prefers nothing at the very start leaves the search as it is without one. Else the
    first rules run. Then the policy chooses slice by slice, until it prefers nothing; all rules
    have run and the evolution strategy has had its share when the stages begin to take turns.
    Nothing depends on the budget but the end, so that a run which the clock ended can be repeated.

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
        if np.ptp(scores) == 0:
            break
        arm = max(left, key=lambda name: scores[ARMS.index(name)])
        choices.append(Choice(arm=arm, open=tuple(left), progress=state))
        value, spent = log_value(run), run.spent
        length = slice_of(arm, progress.times(arm))
        if arm == MODES:
            prior = run.strategy(length, guide.prior(state)).prior
            left.remove(arm)
        elif arm == STRATEGY:
            prior = run.strategy(length, prior).prior
        elif arm == ANNEAL:
            run.anneal(length)
        elif arm == LOCAL:
            run.local(length)
        elif arm == GENETIC:
            run.genetic(length)
        else:
            run.heuristics(RULE_ARMS[arm])
            left.remove(arm)
        progress.note(arm, run.spent - spent, max(value - log_value(run), 0.0))
        progress.bound = progress.first_bound - sum(progress.gained_by.values())
        progress.overflow = float(run.best.overflow > 0)
        if strategy_spent(progress) >= MOST_STRATEGY and STRATEGY in left:
            left.remove(STRATEGY)
    # As without a policy, but for the rules that have not run: they come last.
    missing = STRATEGY_EVALUATIONS - strategy_spent(progress)
    if run.goes_on() and missing > 0:
        run.strategy(missing, prior)
    rest = [rule for arm, rules in RULE_ARMS.items() if arm in left for rule in rules]
    if run.goes_on() and rest:
        run.heuristics(rest)
    run.rounds()
    return choices


def slice_of(arm: str, times: int) -> int:
    """Return the evaluations of the next slice of an arm that has had so many; 0: of a rule."""
    if arm == STRATEGY:
        return STRATEGY_SLICES[min(times, len(STRATEGY_SLICES) - 1)]
    return MODES_SLICE if arm == MODES else SLICES.get(arm, 0) << times


def strategy_spent(progress: Progress) -> int:
    """Return the evaluations of the strategy so far, from whatever start."""
    return progress.spent_by.get(STRATEGY, 0) + progress.spent_by.get(MODES, 0)


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
