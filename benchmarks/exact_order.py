"""How far the exact order search gets: peak, proven bound, effort and CPU seconds per graph.

    python benchmarks/exact_order.py [MODEL ...] [--states 400000] [--sizes 200 1000 5000]

All graphs of the model files given (bodies too) and synthetic graphs of four families. "op bound"
is the largest need of a single op, "beam" the best order of a beam of 100 in both directions.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from synthetic import FAMILIES

from regal import _native
from regal.errors import RegalError
from regal.frontends import load
from regal.plan.problem import order_problem
from regal.search.exact import beam, lower_bound, solve_exact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from regal.graph.types import Graph

T = TypeVar("T")

BEAM_WIDTH = 100
ROW = "{:40.40} {:>6} {:>13} {:>13} {:>13} {:>13} {:>13} {:>7} {:>8} {:>7} {:>7}"
HEAD = ("graph", "ops", "file", "op bound", "beam", "peak", "proven", "gap %")
EFFORT = ("states", "beam s", "exact s")


def main() -> None:
    """Print a row per graph and how many were proven optimal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", type=Path, nargs="*")
    parser.add_argument("--states", type=int, default=400_000)
    parser.add_argument("--sizes", type=int, nargs="*", default=[200, 1000, 5000])
    arguments = parser.parse_args()
    print(ROW.format(*HEAD, *EFFORT))
    proven = [
        report(name, problem, arguments.states)
        for name, problem in (
            *synthetic_problems(arguments.sizes),
            *model_problems(arguments.models),
        )
        if problem.n_ops > 0
    ]
    print(f"proven optimal: {sum(proven)} of {len(proven)}")


def report(name: str, problem: _native.OrderProblem, states: int) -> bool:
    """Print the row of one graph; return whether its best order is proven."""
    beam_order, beam_seconds = timed(lambda: beam(problem, BEAM_WIDTH))
    outcome, seconds = timed(lambda: solve_exact(problem, max_states=states))
    bound = outcome.lower_bound
    gap = 100 * (outcome.peak_bytes / bound - 1) if bound else 0.0
    print(
        ROW.format(
            name,
            problem.n_ops,
            peak_of(problem, range(problem.n_ops)),
            lower_bound(problem),
            peak_of(problem, beam_order),
            outcome.peak_bytes,
            bound,
            f"{gap:.2f}",
            outcome.states,
            f"{beam_seconds:.3f}",
            f"{seconds:.3f}",
        ),
        flush=True,
    )
    return outcome.is_optimal


def synthetic_problems(sizes: list[int]) -> Iterator[tuple[str, _native.OrderProblem]]:
    """Yield a graph of each family and size."""
    for family, make in FAMILIES.items():
        for n_ops in sizes:
            yield f"{family}-{n_ops}", make(n_ops).problem()


def model_problems(paths: list[Path]) -> Iterator[tuple[str, _native.OrderProblem]]:
    """Yield every graph of the models; say which models are refused."""
    for path in paths:
        try:
            model = load(path)
        except RegalError as error:
            print(f"{path.name}: {error}")
            continue
        for entry in model.entries:
            yield from graph_problems(path.name, entry)


def graph_problems(name: str, graph: Graph) -> Iterator[tuple[str, _native.OrderProblem]]:
    """Yield a graph and its bodies."""
    yield name, order_problem(graph).native
    for op in graph.ops:
        for body in op.subgraphs:
            yield from graph_problems(f"{name}/{op.name}", body)


def peak_of(problem: _native.OrderProblem, order: range | tuple[int, ...]) -> int:
    """Return the peak of an order."""
    return _native.simulate(problem, np.array(order, np.int64)).peak_bytes


def timed(call: Callable[[], T]) -> tuple[T, float]:
    """Return what `call` returns and its CPU seconds."""
    started = time.process_time()
    result = call()
    return result, time.process_time() - started


if __name__ == "__main__":
    main()
