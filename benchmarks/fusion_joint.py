"""Fusion and layouts searched together against one after the other, priced by the roofline.

python benchmarks/fusion_joint.py ROWS.jsonl [--graphs 20] [--evaluations 5000] [--seeds 3]
       [--devices cpu,gpu-pcie-2] [--methods joint,sequential]

Graphs of the training side of the data set, chosen by turns among families. One row per graph,
devices, objective, method and seed; rows that the file holds are not run again. A table of all rows
goes to stdout: how other methods compare with "joint", with 95 % intervals over graphs.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regal.data import load_graph, load_index
from regal.devices.presets import system_named
from regal.evaluation.intervals import cluster_interval
from regal.fusion.analytic import fusion_problem
from regal.fusion.devices import METHODS as DEVICE_METHODS
from regal.fusion.devices import plan_fusion_on_devices
from regal.fusion.search import METHODS, plan_fusion
from regal.search.types import Budget

if TYPE_CHECKING:
    from regal.data.entries import Entry
    from regal.devices.types import System
    from regal.fusion.types import FusionProblem

OBJECTIVES = ("time", "balanced", "memory")
LEAST_OPS, MOST_OPS = 60, 900
KEY = ("graph", "devices", "objective", "method", "seed", "evaluations")


def main() -> None:
    """Run what is missing, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--graphs", type=int, default=20)
    parser.add_argument("--evaluations", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--devices", default="cpu,gpu-pcie-2")
    parser.add_argument("--methods", default="", help="comma-separated; default: all")
    options = parser.parse_args()
    rows = read_rows(options.rows)
    done = {tuple(row[name] for name in KEY) for row in rows}
    with options.rows.open("a") as stream:
        for entry in chosen_entries(options.graphs):
            graph = load_graph(entry)
            for devices in options.devices.split(","):
                system = system_named(devices)
                problem = fusion_problem(graph, system)
                for objective in OBJECTIVES:
                    methods = METHODS if len(system.devices) == 1 else DEVICE_METHODS
                    asked = options.methods.split(",") if options.methods else list(methods)
                    for method in (name for name in methods if name in asked):
                        for seed in range(options.seeds):
                            key = (entry.key, devices, objective, method, seed, options.evaluations)
                            if key in done:
                                continue
                            figures = run(problem, system, objective, method, seed, options)
                            row = {**dict(zip(KEY, key, strict=True)), **figures}
                            rows.append(row)
                            stream.write(json.dumps(row) + "\n")
                            stream.flush()
    print_table(rows)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file, none if there is none."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def chosen_entries(count: int) -> list[Entry]:
    """Return real graphs of the training side, one family after the other, the first of each."""
    families: dict[str, list[Entry]] = defaultdict(list)
    for entry in load_index():
        is_real = entry.framework in {"torch", "onnx"} and entry.source != "synthetic"
        if entry.split == "train" and is_real and LEAST_OPS <= entry.ops <= MOST_OPS:
            families[entry.family].append(entry)
    chosen: list[Entry] = []
    turn = 0
    while len(chosen) < count and any(len(members) > turn for members in families.values()):
        chosen += [
            members[turn * 7 % len(members)]
            for _, members in sorted(families.items())
            if len(members) > turn
        ]
        turn += 1
    step = max(len(chosen) // count, 1)  # spread over the alphabet
    return sorted(chosen[::step][:count], key=lambda entry: entry.ops)


def run(
    problem: FusionProblem,
    system: System,
    objective: str,
    method: str,
    seed: int,
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Return the figures of one search."""
    started = time.process_time()
    budget = Budget(evaluations=options.evaluations)
    if len(system.devices) == 1:
        one = plan_fusion(problem, objective, budget, method=method, seed=seed)
        numbers = {
            "time_ns": one.figures.time_ns,
            "peak_bytes": one.figures.peak,
            "before_time_ns": one.before.time_ns,
            "before_peak_bytes": one.before.peak,
            "time_bound_ns": one.figures.time_bound_ns,
            "value": one.value,
            "spent": one.evaluations,
            "kernels": len(one.plan.kernels),
        }
    else:
        many = plan_fusion_on_devices(problem, system, objective, budget, method=method, seed=seed)
        numbers = {
            "time_ns": many.schedule.figures.time_ns,
            "peak_bytes": many.schedule.figures.peak,
            "before_time_ns": many.before_time_ns,
            "before_peak_bytes": many.before_peak_bytes,
            "time_bound_ns": 0,
            "value": many.value,
            "spent": many.evaluations,
            "kernels": len(many.plan.kernels),
        }
    numbers["ops"] = len(problem.graph.ops)
    numbers["cpu_seconds"] = round(time.process_time() - started, 3)
    return numbers


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print, per devices, objective and method, geometric means over graphs of means over seeds."""
    logs: dict[tuple[str, str], dict[str, dict[str, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for row in rows:
        cell = logs[row["devices"], row["objective"]][row["method"]]
        cell[row["graph"]].append(math.log(row["value"]))
    print(
        "| devices | objective | method | above joint, % | 95 % interval |"
        " joint better / equal / worse | graphs |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for (devices, objective), methods in sorted(logs.items()):
        if "joint" not in methods:
            continue
        best = {graph: sum(v) / len(v) for graph, v in methods["joint"].items()}
        for method, graphs in methods.items():
            gap_of = {g: sum(v) / len(v) - best[g] for g, v in graphs.items() if g in best}
            gaps = list(gap_of.values())
            interval = cluster_interval(list(gap_of.items()))
            text = "-"
            if interval is not None:
                low, high = (100 * (math.exp(gap) - 1) for gap in interval)
                text = f"[{low:+.2f}, {high:+.2f}]"
            better = sum(gap > 1e-9 for gap in gaps)
            worse = sum(gap < -1e-9 for gap in gaps)
            mean = 100 * (math.exp(sum(gaps) / len(gaps)) - 1)
            print(
                f"| {devices} | {objective} | {method} | {mean:+.2f} | {text} |"
                f" {better} / {len(gaps) - better - worse} / {worse} | {len(gaps)} |"
            )


if __name__ == "__main__":
    main()
