"""The methods for one device, by name."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from regal import _native
from regal.baselines.cp_sat import cp_sat
from regal.search.brkga import BrkgaOptions, run_brkga
from regal.search.classic import ClassicMethod, best_classic
from regal.search.local import annealing, local_search
from regal.search.memetic import memetic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal._native import Cancel, OrderProblem
    from regal.search.types import Budget, OrderMethod, Outcome


class BrkgaMethod:
    """An `OrderMethod` that runs BRKGA with fixed options and without any order to start from."""

    def __init__(self, options: BrkgaOptions) -> None:
        self._options = options

    def __call__(
        self,
        problem: OrderProblem,
        budget: Budget,
        *,
        seed: int,
        threads: int,
        stop_at: int,
        cancel: Cancel | None = None,
    ) -> Outcome:
        """Return the best order that it finds; see `OrderMethod`."""
        return run_brkga(
            problem,
            budget,
            seed=seed,
            threads=threads,
            stop_at=stop_at,
            options=self._options,
            cancel=cancel,
        )


# Every chromosome is new: one elite is kept, the others are mutants.
RANDOM_ORDERS = BrkgaOptions(
    decoder=_native.Decoder.RAW, population=100, elites=1, mutants=99, with_neutral=False
)
# The BRKGA of the REGAL paper (ICLR 2020): raw keys, no seeds, no heuristic.
PAPER = BrkgaOptions(
    decoder=_native.Decoder.RAW, population=100, elites=20, mutants=15, with_neutral=False
)


def brkga_tuned(
    problem: OrderProblem,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    stop_at: int,
    cancel: Cancel | None = None,
) -> Outcome:
    """Return what BRKGA finds with the strong decoder and the best classic order."""
    return run_brkga(
        problem,
        budget,
        seed=seed,
        threads=threads,
        stop_at=stop_at,
        seed_orders=[best_classic(problem).order],
        cancel=cancel,
    )


METHODS: Mapping[str, OrderMethod] = MappingProxyType(
    {
        "file-order": ClassicMethod(_native.Classic.FILE_ORDER),
        "random": BrkgaMethod(RANDOM_ORDERS),
        "dfs": ClassicMethod(_native.Classic.DFS),
        "bfs": ClassicMethod(_native.Classic.BFS),
        "greedy-memory": ClassicMethod(_native.Classic.GREEDY_MEMORY),
        "lpmf": ClassicMethod(_native.Classic.LPMF),
        "xla-list": ClassicMethod(_native.Classic.XLA_LIST),
        "xla-dfs": ClassicMethod(_native.Classic.XLA_DFS),
        "inductor-dfs": ClassicMethod(_native.Classic.DFS_SMALL),
        "ort-default": ClassicMethod(_native.Classic.ORT_DEFAULT),
        "brkga": BrkgaMethod(PAPER),
        "brkga-tuned": brkga_tuned,
        "local-search": local_search,
        "annealing": annealing,
        "memetic": memetic,
        "cp-sat": cp_sat,
    }
)
