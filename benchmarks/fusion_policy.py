"""What a policy of fusion and layout keys gains for the joint search, at equal evaluations.

python benchmarks/fusion_policy.py ROWS.jsonl.gz --policy FILE [--split test] [--graphs 22]

Graphs of PyTorch and ONNX of one side of the data set, families in turn, priced by the roofline on
one device. One row per graph, devices, objective, number of evaluations, seed and policy ("none" or
the first digits of the file's SHA-256); rows that the file holds are not run again. A table goes to
stdout: gain over the search without a policy in percent of its value, mean over graphs of means of
seeds, with 95 % intervals that draw families; graphs won, tied and lost.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import math
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

from regal.data.entries import load_graph
from regal.devices.presets import system_named
from regal.evaluation.intervals import cluster_interval
from regal.fusion.analytic import fusion_problem
from regal.fusion.search import plan_fusion
from regal.learning.options import DataOptions
from regal.learning.workload import by_turns, entries_of
from regal.policy.choice import NONE
from regal.search.types import Budget

if TYPE_CHECKING:
    from regal.data.entries import Entry
    from regal.fusion.types import FusionProblem

OBJECTIVES = ("time", "balanced", "memory")
KEY = ("graph", "devices", "objective", "evaluations", "seed", "policy")
LEAST_OPS = 30
TIE = 1e-6  # share of the value


def main() -> None:
    """Run what is missing, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--policy", type=Path, required=True)
    parser.add_argument("--split", default="test", choices=("train", "valid", "test"))
    parser.add_argument("--graphs", type=int, default=22)
    parser.add_argument("--most-ops", type=int, default=600)
    parser.add_argument("--devices", default="cpu,gpu-pcie-2:1")
    parser.add_argument("--evaluations", default="100,300,1000,5000")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    rows = read_rows(options.rows)
    done = {tuple(row[name] for name in KEY) for row in rows}
    digest = hashlib.sha256(options.policy.read_bytes()).hexdigest()[:12]
    policies = {NONE: NONE, digest: str(options.policy)}
    budgets = [int(text) for text in options.evaluations.split(",")]
    with opened(options.rows, "at") as stream:
        for entry in chosen_entries(options.split, options.graphs, options.most_ops):
            graph = load_graph(entry)
            for devices in options.devices.split(","):
                problem = fusion_problem(graph, system_named(devices))
                for row in rows_of(entry, devices, budgets, options.seeds, policies):
                    if tuple(row[name] for name in KEY) in done:
                        continue
                    rows.append(row | run(problem, row, policies[row["policy"]]))
                    stream.write(json.dumps(rows[-1]) + "\n")
                    stream.flush()
    print_table(rows, digest)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file, none if there is none."""
    if not path.exists():
        return []
    with opened(path, "rt") as stream:
        return [json.loads(line) for line in stream]


def opened(path: Path, mode: Literal["rt", "at"]) -> TextIO:
    """Return an open file of text, which is compressed if its name ends so."""
    if path.suffix == ".gz":
        return gzip.open(path, mode)
    return path.open(mode)


def chosen_entries(split: str, count: int, most_ops: int) -> list[Entry]:
    """Return graphs of a side, families in turn."""
    options = DataOptions(fewest_ops=LEAST_OPS, most_ops=most_ops, frameworks=("torch", "onnx"))
    real = [entry for entry in entries_of(split, options) if entry.source != "synthetic"]
    return by_turns(real)[:count]


def rows_of(
    entry: Entry, devices: str, budgets: list[int], seeds: int, policies: dict[str, str]
) -> list[dict[str, Any]]:
    """Return the rows of a graph on devices, without results."""
    return [
        {
            "graph": entry.key,
            "family": entry.family,
            "ops": entry.ops,
            "devices": devices,
            "objective": objective,
            "evaluations": evaluations,
            "seed": seed,
            "policy": policy,
        }
        for objective in OBJECTIVES
        for evaluations in budgets
        for seed in range(seeds)
        for policy in policies
    ]


def run(problem: FusionProblem, row: dict[str, Any], policy: str) -> dict[str, Any]:
    """Return the results of one search."""
    budget = Budget(evaluations=row["evaluations"])
    started = time.process_time()
    found = plan_fusion(problem, row["objective"], budget, seed=row["seed"], policy=policy)
    return {
        "value": found.value,
        "time_ns": found.figures.time_ns,
        "peak_bytes": found.figures.peak,
        "cpu_seconds": round(time.process_time() - started, 4),
    }


def print_table(rows: list[dict[str, Any]], digest: str) -> None:
    """Print gains over no policy, per devices, objective and number of evaluations."""
    values = {tuple(row[name] for name in KEY): row["value"] for row in rows}
    gains: dict[tuple[str, ...], dict[tuple[str, str], list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for row in rows:
        if row["policy"] != digest:
            continue
        *key, _ = (row[name] for name in KEY)
        gain = 100 * (1 - row["value"] / values[(*key, NONE)])
        for devices in (row["devices"], "all"):
            cell = gains[devices, row["objective"], row["evaluations"]]
            cell[row["family"], row["graph"]].append(gain)
    print("| devices | objective | evaluations | gain, % | 95 % interval | won / tied / lost |")
    print("| --- | --- | ---: | ---: | --- | --- |")
    for (devices, objective, evaluations), graphs in gains.items():
        means = [(family, math.fsum(v) / len(v)) for (family, _), v in graphs.items()]
        mean = math.fsum(gain for _, gain in means) / len(means)
        interval = cluster_interval(means)
        text = "-" if interval is None else f"[{interval[0]:+.2f}, {interval[1]:+.2f}]"
        won = sum(gain > 100 * TIE for _, gain in means)
        lost = sum(gain < -100 * TIE for _, gain in means)
        print(
            f"| {devices} | {objective} | {evaluations:,} | {mean:+.2f} | {text} |"
            f" {won} / {len(means) - won - lost} / {lost} |"
        )


if __name__ == "__main__":
    main()
