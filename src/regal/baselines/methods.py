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


def random_orders(
    problem: OrderProblem,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    stop_at: int,
    cancel: Cancel | None = None,
) -> Outcome:
    """Return the best of as many random orders as the budget allows."""
    # BRKGA whose every chromosome is new: one elite is kept, the others are mutants.
    options = BrkgaOptions(
        decoder=_native.Decoder.RAW,
        population=100,
        elites=1,
        mutants=99,
        with_neutral=False,
    )
    return run_brkga(
        problem,
        budget,
        seed=seed,
        threads=threads,
        stop_at=stop_at,
        options=options,
        cancel=cancel,
    )


def brkga_paper(
    problem: OrderProblem,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    stop_at: int,
    cancel: Cancel | None = None,
) -> Outcome:
    """Return what the BRKGA of the REGAL paper finds: raw keys, no seeds, no heuristic."""
    options = BrkgaOptions(
        decoder=_native.Decoder.RAW,
        population=100,
        elites=20,
        mutants=15,
        with_neutral=False,
    )
    return run_brkga(
        problem,
        budget,
        seed=seed,
        threads=threads,
        stop_at=stop_at,
        options=options,
        cancel=cancel,
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
        "random": random_orders,
        "dfs": ClassicMethod(_native.Classic.DFS),
        "bfs": ClassicMethod(_native.Classic.BFS),
        "greedy-memory": ClassicMethod(_native.Classic.GREEDY_MEMORY),
        "lpmf": ClassicMethod(_native.Classic.LPMF),
        "xla-list": ClassicMethod(_native.Classic.XLA_LIST),
        "xla-dfs": ClassicMethod(_native.Classic.XLA_DFS),
        "inductor-dfs": ClassicMethod(_native.Classic.DFS_SMALL),
        "ort-default": ClassicMethod(_native.Classic.ORT_DEFAULT),
        "brkga": brkga_paper,
        "brkga-tuned": brkga_tuned,
        "local-search": local_search,
        "annealing": annealing,
        "memetic": memetic,
        "cp-sat": cp_sat,
    }
)
