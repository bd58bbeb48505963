"""What a policy may decide in the default method for several devices, and what it sees."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from regal._native import DeviceRule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from regal.search.devices.es import WeightPrior

# Rules that cost about one evaluation each and together come close to the best of all rules; they
# always run first.
FIRST_RULES = (
    DeviceRule.ETF,
    DeviceRule.SINGLE_DEVICE,
    DeviceRule.SCT,
    DeviceRule.HEFT,
    DeviceRule.M_ETF,
    DeviceRule.CPOP,
    DeviceRule.PEFT,
)
# What may come next, in any sequence: the other rules, once each, and slices of the searches.
RULE_ARMS: Mapping[str, tuple[DeviceRule, ...]] = {
    "dfs": (DeviceRule.DFS,),
    "bfs": (DeviceRule.BFS,),
    "file-order": (DeviceRule.FILE_ORDER,),
    "greedy-memory": (DeviceRule.GREEDY_MEMORY,),
    "spread": (DeviceRule.ROUND_ROBIN, DeviceRule.M_TOPO),
}
# "modes" is the evolution strategy from the likeliest means of the prior, once; "strategy" goes on
# with the strategy where it was, at first from the plain heuristic.
STRATEGY, MODES, LOCAL, ANNEAL, GENETIC = "strategy", "modes", "local", "anneal", "genetic"
SEARCH_ARMS = (STRATEGY, MODES, LOCAL, ANNEAL, GENETIC)
ARMS = (*SEARCH_ARMS, *RULE_ARMS)
# Columns of the state after the context of the problem.
PROGRESS = (
    *(f"{arm}_spent" for arm in ARMS),  # log(1 + evaluations) / 6
    *(f"{arm}_gain" for arm in ARMS),  # of its last slice: log of the values' ratio, times 10, to 2
    *(f"{arm}_gained" for arm in ARMS),  # of all its slices
    *(f"first_{rule.name.lower()}" for rule in FIRST_RULES),  # log of its best over the best, to 2
    "first_bound",  # log of the best first value over the proven bound, to 4
    "bound",  # of the best value
    "overflow",  # 1: the best schedule does not fit into memory
    "spent",  # log(1 + evaluations) / 6
)
MOST_GAIN = 2.0


class Guide(Protocol):
    """What a policy says about one problem."""

    def scores(self, progress: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return a (ARMS,) number per arm: the highest is next. All equal: no more choices.

        Args:
            progress: (PROGRESS,) what has happened so far.
        """
        ...

    def prior(self, progress: NDArray[np.float32]) -> WeightPrior | None:
        """Return what the evolution strategy starts from; None: the plain heuristic."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An arm that a policy chose."""

    arm: str
    open: tuple[str, ...]  # what it could choose from
    progress: NDArray[np.float32]  # what it saw


@dataclass(slots=True)
class Progress:
    """What has happened in a run so far."""

    firsts: NDArray[np.float64]  # (FIRST_RULES,) log of the value over the best of them
    first_bound: float  # log of the best first value over the bound
    bound: float
    overflow: float
    spent: int
    spent_by: dict[str, int] = field(default_factory=dict)
    gain_by: dict[str, float] = field(default_factory=dict)
    gained_by: dict[str, float] = field(default_factory=dict)
    times_by: dict[str, int] = field(default_factory=dict)

    def times(self, arm: str) -> int:
        """Return how many slices an arm has had."""
        return self.times_by.get(arm, 0)

    def note(self, arm: str, evaluations: int, gain: float) -> None:
        """Note one slice of an arm.

        Args:
            arm: one of ARMS.
            evaluations: what it spent.
            gain: log of the best value before over that after.
        """
        self.spent += evaluations
        self.times_by[arm] = self.times(arm) + 1
        self.spent_by[arm] = self.spent_by.get(arm, 0) + evaluations
        self.gain_by[arm] = gain
        self.gained_by[arm] = self.gained_by.get(arm, 0.0) + gain

    def state(self) -> NDArray[np.float32]:
        """Return the (PROGRESS,) numbers."""
        return np.array(
            (
                *(math.log1p(self.spent_by.get(arm, 0)) / 6.0 for arm in ARMS),
                *(min(10.0 * self.gain_by.get(arm, 0.0), MOST_GAIN) for arm in ARMS),
                *(min(10.0 * self.gained_by.get(arm, 0.0), MOST_GAIN) for arm in ARMS),
                *np.minimum(self.firsts, MOST_GAIN),
                min(self.first_bound, 2.0 * MOST_GAIN),
                min(self.bound, 2.0 * MOST_GAIN),
                self.overflow,
                math.log1p(self.spent) / 6.0,
            ),
            dtype=np.float32,
        )
