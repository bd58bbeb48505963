"""Run the benchmarks that need nothing but this repository: `make bench`.

    python benchmarks/run.py [--corpus FOLDER] [--only NAME]

Each runs in a process of its own; one that fails does not stop the others, but the status
tells. `benchmarks/README.md` says what each one shows.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
# Name and arguments; a script that takes a corpus gets its folder as last argument.
BENCHMARKS: dict[str, list[str]] = {
    "kernel_speed": ["kernel_speed.py", "--quick"],
    "peers_order": ["peers.py", "order", "--seconds", "5"],
    "peers_offsets": ["peers.py", "offsets", "--seconds", "5", "--vela-iterations", "500"],
}
ON_A_CORPUS: dict[str, list[str]] = {"corpus": ["corpus.py"]}


def main() -> int:
    """Run them one after the other; return 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", default=os.environ.get("REGAL_CORPUS", ""))
    parser.add_argument("--only", default="", help="part of a name")
    arguments = parser.parse_args()
    commands = dict(BENCHMARKS)
    if arguments.corpus:
        for name, command in ON_A_CORPUS.items():
            commands[name] = [*command, arguments.corpus]
    failed = []
    for name, (script, *rest) in commands.items():
        if arguments.only not in name:
            continue
        print(f"== {name}", flush=True)
        started = time.perf_counter()
        done = subprocess.run([sys.executable, str(HERE / script), *rest], check=False)
        print(f"== {name}: status {done.returncode}, {time.perf_counter() - started:.0f} s\n")
        if done.returncode:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
