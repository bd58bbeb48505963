"""Gain on the valid side per search: off-policy learning against REINFORCE, all else equal.

Usage: python benchmarks/sample_efficiency.py CONFIG.toml OUT [--seeds 0,1] [--iterations 120]
Runs what OUT does not have yet, then prints a Markdown table of all runs in OUT.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from regal.learning.config import read_config
from regal.learning.metrics import LOG
from regal.learning.options import ALGORITHMS
from regal.learning.run import run_training
from regal.learning.trainer import CHECKPOINT

if TYPE_CHECKING:
    from regal.learning.trainer import Progress


def main() -> None:
    """Run all arms, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--iterations", type=int, default=120)
    arguments = parser.parse_args()
    for seed in arguments.seeds.split(","):
        for algorithm in ALGORITHMS:
            folder = arguments.out / f"{algorithm}-{seed}"
            overrides = [
                f"learner.algorithm={algorithm}",
                f"trainer.seed={seed}",
                f"trainer.iterations={arguments.iterations}",
                "trainer.patience=0",
            ]
            if not (folder / LOG).exists():
                config = read_config(arguments.config, overrides)
                run_training(config, folder, resume=(folder / CHECKPOINT).exists(), report=show)
    print(table(arguments.out))


def table(out: Path) -> str:
    """Return the validated gains of each run in a folder, by searches done."""
    runs = {path.parent.name: valid_rows(path) for path in sorted(out.glob(f"*/{LOG}"))}
    searches = sorted({row["searches"] for rows in runs.values() for row in rows})
    lines = [
        "| searches | " + " | ".join(runs) + " |",
        "| ---: | " + " | ".join("---:" for _ in runs) + " |",
    ]
    for count in searches:
        cells = []
        for rows in runs.values():
            found = [row for row in rows if row["searches"] == count]
            cells.append(f"{100 * found[-1]['gain']:+.2f}" if found else "")
        lines.append(f"| {count:,.0f} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def valid_rows(path: Path) -> list[dict[str, float]]:
    """Return the validations that a run logged."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [row for row in rows if row["event"] == "valid"]


def show(progress: Progress) -> None:
    """Print where a run is."""
    print(progress.iteration, f"{progress.reward:+.4f} {progress.valid:+.4f}", file=sys.stderr)


if __name__ == "__main__":
    main()
