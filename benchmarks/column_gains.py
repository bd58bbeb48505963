"""What learned columns gain for the evolution strategy alone, at equal evaluations, on one side.

python benchmarks/column_gains.py POLICY [--split valid] [--graphs 20] > rows.jsonl

One JSON line per graph, devices, objective and budget, with the logarithm of what the strategy
reaches from the plain heuristic (features alone), from the learned rule, and from the modes of the
policy that ships. A table of means with 95 % confidence intervals over graphs goes to stderr:
gains over the plain start.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from regal.learning.columns_environment import ColumnTask
from regal.learning.environment import strategy
from regal.learning.options import DataOptions
from regal.learning.prior_arms import ArmTask
from regal.learning.types import TaskSpec
from regal.learning.workload import by_turns, entries_of
from regal.policy.choice import DEFAULT, network_for
from regal.policy.columns import column_prior, learned_rule, plain_rule
from regal.policy.model import PRIOR, load_network
from regal.policy.prior import PriorGuide, network_says
from regal.search.devices.guided import first_progress

if TYPE_CHECKING:
    from regal.policy.model import PolicyNetwork
    from regal.search.devices.es import WeightPrior

PLAIN, COLUMNS, MODES = "plain", "columns", "modes"
OBJECTIVES = ("time", "memory", "balanced")


def main() -> None:
    """Print rows and the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("policy", type=Path)
    parser.add_argument("--split", default="valid", choices=("train", "valid"))
    parser.add_argument("--graphs", type=int, default=20)
    parser.add_argument("--most-ops", type=int, default=600)
    parser.add_argument("--devices", default="2,4")
    parser.add_argument("--evaluations", default="1,10,30,100,300,1000")
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    columns, modes = load_network(options.policy), network_for(DEFAULT, PRIOR)
    if modes is None:
        raise SystemExit("no policy ships")
    entries = by_turns(entries_of(options.split, DataOptions(most_ops=options.most_ops)))
    gains: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    for entry in entries[: options.graphs]:
        for devices in options.devices.split(","):
            for objective in OBJECTIVES:
                task = ColumnTask(TaskSpec(key=entry.key, objective=objective, devices=devices))
                starts = starts_of(task, columns, modes)
                for evaluations in map(int, options.evaluations.split(",")):
                    values = {
                        name: value_from(task, prior, evaluations, options.seeds)
                        for name, prior in starts.items()
                    }
                    row = {
                        "graph": entry.key,
                        "devices": devices,
                        "objective": objective,
                        "evaluations": evaluations,
                        "values": values,
                    }
                    print(json.dumps(row), flush=True)
                    for name in (COLUMNS, MODES):
                        gain = max(-1.0, min(1.0, values[PLAIN] - values[name]))
                        gains[objective, evaluations, name].append(gain)
    for (objective, evaluations, name), found in sorted(gains.items()):
        margin = 1.96 * np.std(found, ddof=1) / math.sqrt(len(found))
        print(
            f"{objective:<9}{evaluations:>6} {name:<8} {100 * np.mean(found):+6.2f}"
            f" +- {100 * margin:.2f} %",
            file=sys.stderr,
        )


def starts_of(
    task: ColumnTask, columns: PolicyNetwork, modes: PolicyNetwork
) -> dict[str, WeightPrior | None]:
    """Return what the strategy starts from; all draw around it in equally many dimensions or so."""
    problem, compact, objective = task.problem, task.compact, task.objective
    arm = ArmTask(problem=problem, compact=compact, objective=objective)
    guide = PriorGuide(network_says(modes), problem, compact, objective)
    rule = learned_rule(columns, problem, compact, objective)
    plain = plain_rule(problem.n_ops)
    return {
        PLAIN: column_prior(plain, problem, objective, with_plain=False),
        COLUMNS: column_prior(rule, problem, objective, with_plain=False),
        MODES: guide.prior(first_progress(arm.run(10**9, 0)).state()),
    }


def value_from(task: ColumnTask, prior: WeightPrior | None, evaluations: int, seeds: int) -> float:
    """Return the mean logarithm of what the strategy reaches."""
    values = []
    for seed in range(seeds):
        found = strategy(task.compact, task.objective, evaluations, seed, prior)
        values.append(math.log(task.cost_of(found.schedule)))
    return float(np.mean(values))


if __name__ == "__main__":
    main()
