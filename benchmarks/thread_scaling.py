"""Wall time of BRKGA on one and on two threads, in turns, medians over seeds.

    python benchmarks/thread_scaling.py [MODEL] [--devices 2] [--evaluations 6000] [--repeats 5]

Without `--devices` it is the search for an order on one device. The two runs of a seed must return
the same plan: any number of threads gives the same bytes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import regal
from regal.cost.roofline import graph_cost
from regal.devices.presets import system_named
from regal.plan.problem import order_problem
from regal.plan.schedule_problem import schedule_problem
from regal.search.brkga import run_brkga
from regal.search.devices.methods import device_method_named
from regal.search.devices.types import Objective
from regal.search.types import Budget

if TYPE_CHECKING:
    from collections.abc import Callable

    from regal.graph.types import Graph

MODEL = Path(__file__).parents[1] / "examples" / "models" / "randwire_ws_32_4_075.onnx"


def main() -> int:
    """Print the medians and the speed-up; return 1 if threads changed a result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", type=Path, default=MODEL)
    parser.add_argument("--devices", help="as for `regal optimize`")
    parser.add_argument("--evaluations", type=int, default=6000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    graph = regal.load(arguments.model).graph
    budget = Budget(evaluations=arguments.evaluations)
    run = (
        on_devices(graph, arguments.devices, budget) if arguments.devices else on_one(graph, budget)
    )
    seconds: dict[int, list[float]] = {1: [], 2: []}
    is_same = True
    for seed in range(arguments.repeats):
        plans = []
        for threads, times in seconds.items():
            started = time.perf_counter()
            plans.append(run(seed, threads))
            times.append(time.perf_counter() - started)
        is_same = is_same and plans[0] == plans[1]
    one, two = (statistics.median(times) for times in seconds.values())
    ratio = statistics.median(a / b for a, b in zip(seconds[1], seconds[2], strict=True))
    print(f"{arguments.model.name}: 1 thread {one:.3f} s, 2 threads {two:.3f} s, {ratio:.2f}x")
    print("equal plans" if is_same else "PLANS DIFFER")
    return 0 if is_same else 1


def on_one(graph: Graph, budget: Budget) -> Callable[[int, int], bytes]:
    """Return what searches an order with a seed and a number of threads."""
    problem = order_problem(graph).native

    def run(seed: int, threads: int) -> bytes:
        return run_brkga(problem, budget, seed=seed, threads=threads).order.tobytes()

    return run


def on_devices(graph: Graph, devices: str, budget: Budget) -> Callable[[int, int], bytes]:
    """Return what searches a placement with a seed and a number of threads."""
    system = system_named(devices)
    problem = schedule_problem(graph, system, graph_cost(graph, system))
    method = device_method_named("brkga-tuned")
    objective = Objective(name="time", per_ns=1.0, per_byte=0.0)

    def run(seed: int, threads: int) -> bytes:
        outcome = method(problem, objective, budget, seed=seed, threads=threads)
        return outcome.schedule.placement.tobytes()

    return run


if __name__ == "__main__":
    sys.exit(main())
