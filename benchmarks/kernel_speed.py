"""Evaluations per second of the search kernel on one core, and how they grow with the graph.

    python benchmarks/kernel_speed.py [MODEL ...] [--sizes 1000 10000 100000] [--quick]

Synthetic graphs of four families, and any model files given. Seconds are CPU time, so that a
busy machine changes little. The last columns say how much longer one op takes than in the
smallest graph of the family. Targets: order + peak 100,000/s at 1,000 ops, 3,000/s at 10,000,
200/s at 100,000; time per op grows at most fivefold.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from synthetic import FAMILIES

from regal import _native
from regal.frontends import load
from regal.plan.problem import order_problem
from regal.search.brkga import run_brkga
from regal.search.local import improve_order
from regal.search.types import Budget

if TYPE_CHECKING:
    from collections.abc import Callable

    from regal._native import Decoder, OrderProblem

DECODERS = {
    "raw": _native.Decoder.RAW,
    "dfs": _native.Decoder.DFS,
    "greedy": _native.Decoder.GREEDY,
    "bent": _native.Decoder.BENT,
    "forced": _native.Decoder.FORCED,
}
COLUMNS = ("order+peak", *DECODERS, "brkga", "annealing")
DIFFERENT_ORDERS = 20  # enough that the branch predictor cannot learn them by heart


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Evaluations per CPU second of one graph, per column."""

    name: str
    n_ops: int
    per_second: dict[str, float]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--sizes", nargs="+", type=int, default=[1_000, 10_000, 100_000])
    parser.add_argument("--quick", action="store_true", help="a tenth of the evaluations")
    arguments = parser.parse_args()
    steps = 200_000 if arguments.quick else 2_000_000

    print(f"| graph | ops | {' | '.join(COLUMNS)} | order+peak ns/op | growth | forced growth |")
    print("|-|" + "-:|" * (len(COLUMNS) + 4))
    for family, make in FAMILIES.items():
        first: Speed | None = None
        for size in arguments.sizes:
            speed = speed_of(family, make(size).problem(), steps)
            first = first or speed
            print(row(speed, first), flush=True)
    for path in arguments.models:
        speed = speed_of(path.name, order_problem(load(path, {}, {}).graph).native, steps)
        print(row(speed, speed), flush=True)


def speed_of(name: str, problem: OrderProblem, steps: int) -> Speed:
    """Return the speeds on one graph; each column takes about `steps` steps of ops."""
    n = problem.n_ops
    count = max(4, steps // n)
    rng = np.random.default_rng(0)
    per_second = {"order+peak": simulations_per_second(problem, count, rng)}
    for label, decoder in DECODERS.items():
        per_second[label] = decodes_per_second(problem, decoder, max(3, count // 5), rng)
    plans = Budget(evaluations=max(45, count // 5))
    per_second["brkga"] = rate(
        lambda: run_brkga(problem, plans, seed=1).evaluations, plans.evaluations or 0
    )
    start = _native.classic_order(problem, _native.Classic.SAFE)
    moves = Budget(evaluations=20_000)
    per_second["annealing"] = rate(
        lambda: improve_order(problem, start, moves, seed=1, is_annealing=True).evaluations,
        moves.evaluations or 0,
    )
    return Speed(name=name, n_ops=n, per_second=per_second)


def simulations_per_second(problem: OrderProblem, count: int, rng: np.random.Generator) -> float:
    """Return how many random orders per second are simulated, the set-up subtracted."""
    keys = rng.integers(0, 2**32, (min(DIFFERENT_ORDERS, count), problem.n_ops), dtype=np.uint32)
    orders = np.array([_native.decode(problem, DECODERS["raw"], row)[0] for row in keys])
    many = np.concatenate([orders] * max(1, count // len(orders)))
    _native.peaks_of(problem, many[:1])
    setup = cpu_seconds(lambda: _native.peaks_of(problem, many[:1]))
    return (len(many) - 1) / max(cpu_seconds(lambda: _native.peaks_of(problem, many)) - setup, 1e-9)


def decodes_per_second(
    problem: OrderProblem, decoder: Decoder, count: int, rng: np.random.Generator
) -> float:
    """Return how many random chromosomes per second are decoded, the set-up subtracted."""
    genes = rng.integers(0, 2**32, (count, problem.n_ops + 1), dtype=np.uint32)
    setup = cpu_seconds(lambda: _native.decoded_peaks(problem, decoder, genes[:1]))
    whole = cpu_seconds(lambda: _native.decoded_peaks(problem, decoder, genes))
    return (count - 1) / max(whole - setup, 1e-9)


def rate(call: Callable[[], object], count: int) -> float:
    """Return `count` per CPU second of the call."""
    return count / max(cpu_seconds(call), 1e-9)


def cpu_seconds(call: Callable[[], object]) -> float:
    """Return the CPU time that the call takes."""
    started = time.process_time()
    call()
    return time.process_time() - started


def row(speed: Speed, first: Speed) -> str:
    """Return the table row of one graph, beside the smallest one of its family."""

    def nanoseconds(of: Speed, column: str) -> float:
        return 1e9 / of.per_second[column] / of.n_ops

    def growth(column: str) -> float:
        return nanoseconds(speed, column) / nanoseconds(first, column)

    cells = [f"{speed.per_second[column]:,.0f}" for column in COLUMNS]
    cells.append(f"{nanoseconds(speed, 'order+peak'):.1f}")
    cells += [f"{growth('order+peak'):.1f}x", f"{growth('forced'):.1f}x"]
    return f"| {speed.name} | {speed.n_ops:,} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
