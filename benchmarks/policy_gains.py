"""What a policy gains over the same search without one, at equal evaluations, on one side.

python benchmarks/policy_gains.py [--policy FILE] [--split valid] [--graphs 40] > rows.jsonl

One JSON line per graph, devices, objective and budget: gains = log(value without / value with).
A table of means with 95 % confidence intervals over graphs goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import defaultdict

import numpy as np

from regal.learning.environment import Task
from regal.learning.options import DataOptions
from regal.learning.types import TaskSpec
from regal.learning.workload import by_turns, entries_of
from regal.policy.prior import PriorMethod
from regal.search.types import Budget

OBJECTIVES = ("time", "memory", "balanced")


def main() -> None:
    """Print rows and the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", default="default")
    parser.add_argument("--split", default="valid", choices=("train", "valid"))
    parser.add_argument("--graphs", type=int, default=40)
    parser.add_argument("--most-ops", type=int, default=1000)
    parser.add_argument("--devices", default="2,4,random")
    parser.add_argument("--objectives", default=",".join(OBJECTIVES))
    parser.add_argument("--evaluations", default="100,300,1000")
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    entries = by_turns(entries_of(options.split, DataOptions(most_ops=options.most_ops)))
    gains: dict[tuple[str, str, int], dict[str, list[float]]] = defaultdict(dict)
    for place, entry in enumerate(entries[: options.graphs]):
        for devices in options.devices.split(","):
            for objective in options.objectives.split(","):
                drawn = f"random:{place}" if devices == "random" else devices
                task = Task(TaskSpec(key=entry.key, objective=objective, devices=drawn))
                for evaluations in map(int, options.evaluations.split(",")):
                    found = [
                        _gain(task, options.policy, evaluations, seed)
                        for seed in range(options.seeds)
                    ]
                    gains[devices, objective, evaluations][entry.key] = found
                    row = {
                        "graph": entry.key,
                        "devices": drawn,
                        "objective": objective,
                        "evaluations": evaluations,
                        "gains": found,
                    }
                    print(json.dumps(row), flush=True)
    for devices, objective, evaluations in sorted(gains):
        # Together, too: all systems of a graph count as one.
        for graph, values in gains[devices, objective, evaluations].items():
            gains["all", objective, evaluations].setdefault(graph, []).extend(values)
    for (devices, objective, evaluations), by_graph in sorted(gains.items()):
        means = np.array([np.mean(values) for values in by_graph.values()])
        margin = 1.96 * means.std(ddof=1) / math.sqrt(len(means))
        print(
            f"{devices:>7} {objective:<9}{evaluations:>6}  {100 * means.mean():+6.2f} %"
            f"  [{100 * (means.mean() - margin):+.2f}, {100 * (means.mean() + margin):+.2f}]"
            f"  median {100 * np.median(means):+.2f}"
            f"  better {np.mean(means > 1e-4):.0%}  worse {np.mean(means < -1e-4):.0%}",
            file=sys.stderr,
        )


def _gain(task: Task, policy: str, evaluations: int, seed: int) -> float:
    """Return the log-ratio; a schedule that does not fit counts as e times worse at most."""
    values = []
    for name in ("none", policy):
        found = PriorMethod(policy=name)(
            task.problem, task.objective, Budget(evaluations=evaluations), seed=seed, threads=1
        )
        values.append(math.log(task.cost_of(found.schedule)))
    return max(-1.0, min(1.0, values[0] - values[1]))


if __name__ == "__main__":
    main()
