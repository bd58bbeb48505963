"""The default search with a part taken away: what is that part worth?

Each is a `DeviceMethod` without a policy, to be compared with the whole search without one. They
are for studies alone: `regal optimize` does not know them.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from regal._native import DeviceDecoder
from regal.search.devices.guide import ANNEAL, ARMS, GENETIC, LOCAL, PROGRESS, STRATEGY
from regal.search.devices.guided import guided_search
from regal.search.devices.portfolio import (
    GENETIC_EVALUATIONS,
    STRATEGY_EVALUATIONS,
    PortfolioRun,
    usual_search,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from regal._native import Cancel
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.es import WeightPrior
    from regal.search.devices.types import DeviceMethod, DeviceOutcome, Objective
    from regal.search.types import Budget

TURNS = (STRATEGY, LOCAL, ANNEAL, GENETIC)
SPENT_PER_TURN = 4.0  # of a score: more than a preference, so that the arm that spent least is next


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A `DeviceMethod`: the portfolio, spending its budget in another way."""

    spend: Callable[[PortfolioRun], None]
    decoder: DeviceDecoder | None = None  # None: the one that suits the objective

    def __call__(
        self,
        problem: ScheduleProblem,
        objective: Objective,
        budget: Budget,
        *,
        seed: int,
        threads: int,
        cancel: Cancel | None = None,
    ) -> DeviceOutcome:
        """Return the best schedule that it finds; see `DeviceMethod`."""
        run = PortfolioRun(
            problem,
            objective,
            budget,
            seed=seed,
            threads=threads,
            cancel=cancel,
            decoder=self.decoder,
        )
        self.spend(run)
        return run.outcome()


def without_seeds(run: PortfolioRun) -> None:
    """Spend the budget without any schedule of a rule to start from."""
    run.strategy(STRATEGY_EVALUATIONS)
    run.rounds()


def without_local(run: PortfolioRun) -> None:
    """Spend the budget without the searches that move parts of one schedule."""
    run.heuristics()
    if run.goes_on():
        run.strategy(STRATEGY_EVALUATIONS)
    factor = 1
    while run.goes_on():
        run.genetic(GENETIC_EVALUATIONS * factor)
        factor *= 2


def in_fixed_sequence(run: PortfolioRun) -> None:
    """Spend the budget slice by slice as with a policy, but in one sequence for all problems."""
    guided_search(run, _Turns())


class _Turns:
    """A `Guide`: the search that has spent least is next; rules of many evaluations come last."""

    def scores(self, progress: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return a number per arm; see `Guide`."""
        spent = {arm: float(progress[PROGRESS.index(f"{arm}_spent")]) for arm in TURNS}
        preference = {arm: -i / len(TURNS) for i, arm in enumerate(TURNS)}
        scores = [
            preference[arm] - SPENT_PER_TURN * spent[arm] if arm in spent else -1e6 for arm in ARMS
        ]
        return np.array(scores, dtype=np.float32)

    def prior(self, progress: NDArray[np.float32]) -> WeightPrior | None:
        """Return nothing: the strategy starts from the plain heuristic."""
        return None


VARIANTS: Mapping[str, DeviceMethod] = MappingProxyType(
    {
        "regal-raw-decoder": Variant(spend=usual_search, decoder=DeviceDecoder.RAW),
        "regal-no-seeds": Variant(spend=without_seeds),
        "regal-no-local": Variant(spend=without_local),
        "regal-fixed-sequence": Variant(spend=in_fixed_sequence),
    }
)
