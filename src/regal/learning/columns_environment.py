"""Graphs as tasks of learned columns: short runs of the evolution strategy; a reward."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from regal.learning.environment import GraphEnvironment, Task, strategy
from regal.policy.canonical import canonical_size
from regal.policy.columns import HEADS, LearnedRule, column_prior, plain_rule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from regal.search.devices.compact import Found


def column_environment() -> GraphEnvironment:
    """Return the environment whose actions are rules; see `action_of`."""
    return GraphEnvironment(ColumnTask)


def action_of(rule: LearnedRule) -> NDArray[np.float32]:
    """Return a rule as one row of numbers."""
    return np.concatenate((rule.columns.reshape(-1), rule.means))


def rule_of(action: NDArray[np.float32]) -> LearnedRule:
    """Return the rule of an action."""
    columns, means = np.split(action, [len(action) - canonical_size()])
    return LearnedRule(columns=columns.reshape(-1, HEADS), means=means)


class ColumnTask(Task):
    """A graph on devices whose search is the evolution strategy that starts from a rule."""

    def search(self, action: NDArray[np.float32] | None, evaluations: int, seed: int) -> Found:
        """Return what is found from the rule of an action; None: from the plain heuristic.

        With columns of zeros, so that both draw the same random numbers: else luck would be
        most of what a rule seems to gain.
        """
        rule = plain_rule(self.problem.n_ops) if action is None else rule_of(action)
        prior = column_prior(rule, self.problem, self.objective, with_plain=False)
        return strategy(self.compact, self.objective, evaluations, seed, prior)
