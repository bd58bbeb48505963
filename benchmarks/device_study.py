"""The default method beside the paper's search (BRKGA, raw keys, 5,000 evaluations) on real graphs.

    python benchmarks/device_study.py FILE... [--devices 2] [--seeds 3] [--rows ROWS.jsonl]

Gain in percent: 100 * (other - default) / other on the objective, the mean over seeds per graph,
then the mean over graphs with its 95 % interval (t distribution), the median, on how many graphs
the default is better, equal, worse. Equal evaluations, and equal wall time: the default gets the
seconds that the other method took on that graph and seed. A graph that fails is a row, too.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

from regal.errors import RegalError
from regal.frontends import load
from regal.options import Options
from regal.scheduling import costs_of, schedule_before, search_schedule, system_for

OTHERS = ("brkga", "brkga-tuned")
# 97.5 % points of the t distribution for 1, 2, ... degrees of freedom; past the table, 2.
T_POINTS = (
    12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13,
)  # fmt: skip
TIE = 1e-9


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--devices", default="2")
    parser.add_argument("--evaluations", type=int, default=5_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=Path)
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for path in arguments.paths:
        for objective in ("time", "memory"):
            try:
                found = rows_of(path, objective, arguments)
            except RegalError as error:
                found = [{"graph": path.name, "objective": objective, "failure": str(error)}]
            rows += found
            if arguments.rows:
                with arguments.rows.open("a") as file:
                    file.writelines(json.dumps(row) + "\n" for row in found)
    print_tables(rows)


def rows_of(path: Path, objective: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Return one row per seed: what each method reached."""
    model = load(path)
    system = system_for(model, arguments.devices)
    costs = costs_of(model, system)
    before = schedule_before(model, system, costs)

    def run(method: str, seed: int, **budget: Any) -> tuple[int, float]:
        started = time.perf_counter()
        options = Options(objective=objective, method=method, seed=seed, **budget)
        plan = search_schedule(model, system, costs, before, options)
        if plan.overflow_bytes:
            raise RegalError(f"{method} exceeds a memory")
        value = plan.time_ns if objective == "time" else plan.peak_bytes
        return value, time.perf_counter() - started

    rows = []
    for seed in range(arguments.seeds):
        row: dict[str, Any] = {"graph": path.name, "ops": len(model.graph.ops)}
        row |= {"objective": objective, "seed": seed}
        row["regal"], row["regal_s"] = run("regal", seed, evaluations=arguments.evaluations)
        for other in OTHERS:
            row[other], seconds = run(other, seed, evaluations=arguments.evaluations)
            row[f"{other}_s"] = seconds
            row[f"regal_in_{other}_s"], _ = run("regal", seed, seconds=seconds)
        rows.append(row)
    return rows


def print_tables(rows: list[dict[str, Any]]) -> None:
    """Print the table of gains; the averages say over how many graphs they are."""
    good = [row for row in rows if "failure" not in row]
    print(
        "| objective | against | budget | graphs | mean gain [95 %] | median | better/equal/worse |"
    )
    print("|---|---|---|---|---|---|---|")
    for objective in ("time", "memory"):
        for other in OTHERS:
            for budget, key in (("evaluations", "regal"), ("wall time", f"regal_in_{other}_s")):
                gains = gains_of([r for r in good if r["objective"] == objective], other, key)
                if not gains:
                    continue
                signs = [0 if abs(g) < TIE else (1 if g > 0 else -1) for g in gains]
                counts = f"{signs.count(1)}/{signs.count(0)}/{signs.count(-1)}"
                mean, half = interval(gains)
                cells = (
                    objective,
                    other,
                    budget,
                    str(len(gains)),
                    f"{mean:+.1f} % [{mean - half:+.1f}, {mean + half:+.1f}]",
                    f"{statistics.median(gains):+.1f} %",
                    counts,
                )
                print(f"| {' | '.join(cells)} |")
    for row in rows:
        if "failure" in row:
            print(f"failed: {row['graph']} {row['objective']}: {row['failure']}")


def gains_of(rows: list[dict[str, Any]], other: str, key: str) -> list[float]:
    """Return one gain per graph, in percent: the mean over its seeds."""
    by_graph: dict[str, list[float]] = {}
    for row in rows:
        gain = 100 * (row[other] - row[key]) / row[other] if row[other] else 0.0
        by_graph.setdefault(row["graph"], []).append(gain)
    return [statistics.mean(gains) for gains in by_graph.values()]


def interval(values: list[float]) -> tuple[float, float]:
    """Return the mean and half the width of its 95 % interval."""
    if len(values) < 2:
        return statistics.mean(values), float("inf")
    freedom = len(values) - 1
    point = T_POINTS[freedom - 1] if freedom <= len(T_POINTS) else 2.0
    half = point * statistics.stdev(values) / len(values) ** 0.5
    return statistics.mean(values), half


if __name__ == "__main__":
    main()
