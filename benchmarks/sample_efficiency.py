"""Off-policy learning against REINFORCE: same graphs, same number of searches, several seeds.

Usage: python -m benchmarks.sample_efficiency FOLDER [--seeds 0,1,2] [--iterations 12]
       python -m benchmarks.sample_efficiency --table

Trains what FOLDER does not have yet, as `ablation_policies` does and in its folders; rows go to
benchmarks/results/training.jsonl. Then, and with --table alone, makes the tables of
docs/policy_training.md and its picture from all rows there.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from benchmarks.training_rows import ARMS, ROWS, read_rows, regenerate


def main() -> None:
    """Train both arms, and make the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--iterations", default="12")
    parser.add_argument("--table", action="store_true", help="train nothing")
    arguments = parser.parse_args()
    if not arguments.table:
        if arguments.folder is None:
            parser.error("give a FOLDER, or --table")
        # In a process of its own: tables need no torch.
        train = [sys.executable, "-m", "benchmarks.ablation_policies", arguments.folder]
        train += ["--only", ",".join(ARMS), "--seeds", arguments.seeds]
        subprocess.run([*train, "--iterations", arguments.iterations], check=True)
    regenerate(read_rows(ROWS))


if __name__ == "__main__":
    main()
