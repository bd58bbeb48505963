"""Wall time of BRKGA on one and on two threads, in turns, medians over seeds.

    python benchmarks/thread_scaling.py [MODEL] [--evaluations 6000] [--repeats 5]

The two runs of a seed must return the same order: any number of threads gives the same bytes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

import regal
from regal.plan.problem import order_problem
from regal.search.brkga import run_brkga
from regal.search.types import Budget

MODEL = Path(__file__).parents[1] / "examples" / "models" / "randwire_ws_32_4_075.onnx"


def main() -> int:
    """Print the medians and the speed-up; return 1 if threads changed a result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", type=Path, default=MODEL)
    parser.add_argument("--evaluations", type=int, default=6000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    problem = order_problem(regal.load(arguments.model).graph).native
    budget = Budget(evaluations=arguments.evaluations)
    seconds: dict[int, list[float]] = {1: [], 2: []}
    is_same = True
    for seed in range(arguments.repeats):
        orders = []
        for threads, times in seconds.items():
            started = time.perf_counter()
            orders.append(run_brkga(problem, budget, seed=seed, threads=threads).order.tolist())
            times.append(time.perf_counter() - started)
        is_same = is_same and orders[0] == orders[1]
    one, two = (statistics.median(times) for times in seconds.values())
    ratio = statistics.median(a / b for a, b in zip(seconds[1], seconds[2], strict=True))
    print(f"{arguments.model.name}: 1 thread {one:.3f} s, 2 threads {two:.3f} s, {ratio:.2f}x")
    print("equal orders" if is_same else "ORDERS DIFFER")
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
