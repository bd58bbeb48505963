"""Every graph file of a folder, through the command line, for several systems and objectives.

    python benchmarks/device_corpus.py PATH... [--devices 2 4] [--objectives time memory balanced]
           [--evaluations 200] [--limit 180] [--rows ROWS.jsonl]

Each run is `regal optimize FILE --devices N --objective O --json --plan PLAN` in a process of its
own, then `regal check FILE PLAN`. A row has the exit codes (1: a plan, but no device memory that
holds it), the wall time, the figures before and after, and the message of a refusal. The table
counts them and lists the refused files. `--from ROWS` adds rows of an earlier run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regal.frontends import SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

OBJECTIVES = ("time", "memory", "balanced")
# What a file needs to be read at all: a free dimension has no size until it is given one.
ARGUMENTS = {"mtcnn_frozen.pb": ("--shape", "input=320,320,3")}


def main() -> int:
    """Write the rows and print the tables; return 1 if a plan failed its check."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--devices", nargs="*", default=["2", "4"])
    parser.add_argument("--objectives", nargs="*", default=OBJECTIVES, choices=OBJECTIVES)
    parser.add_argument("--evaluations", type=int, default=200)
    parser.add_argument("--limit", type=float, default=180, help="seconds of wall time per run")
    parser.add_argument("--rows", type=Path, default=Path("benchmarks/out/device_corpus.jsonl"))
    parser.add_argument("--from", dest="earlier", type=Path, help="rows of an earlier run")
    arguments = parser.parse_args()
    arguments.rows.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in arguments.earlier.open()] if arguments.earlier else []
    with arguments.rows.open("w") as stream, tempfile.TemporaryDirectory() as folder:
        for row in measured(arguments, Path(folder) / "plan.json"):
            rows.append(row)
            stream.write(json.dumps(row) + "\n")
            stream.flush()
    print_tables(rows)
    return int(any(row.get("check", 0) != 0 for row in rows))


def measured(arguments: argparse.Namespace, plan: Path) -> Iterator[dict[str, Any]]:
    """Yield one row per file, system and objective."""
    files = sorted(
        path
        for root in arguments.paths
        for path in ([root] if root.is_file() else root.rglob("*"))
        if path.suffix.lower() in SUFFIXES or path.name == "saved_model.pb"
    )
    for path in files:
        for devices in arguments.devices:
            for objective in arguments.objectives:
                yield run_one(path, devices, objective, arguments, plan)


def run_one(
    path: Path, devices: str, objective: str, arguments: argparse.Namespace, plan: Path
) -> dict[str, Any]:
    """Return the row of one run."""
    row: dict[str, Any] = {"file": path.name, "devices": devices, "objective": objective}
    extra = ARGUMENTS.get(path.name, ())
    command = ["optimize", str(path), "--devices", devices, "--objective", objective, "--json"]
    command += ["--evaluations", str(arguments.evaluations), "--plan", str(plan), *extra]
    plan.unlink(missing_ok=True)
    started = time.perf_counter()
    try:
        done = regal(command, arguments.limit)
        row |= {"exit": done.returncode, "seconds": round(time.perf_counter() - started, 2)}
        if done.returncode in {0, 1} and done.stdout:
            result = json.loads(done.stdout)
            row |= {"ops": result["ops"], "before": result["before"], "after": result["after"]}
            row["check"] = regal(
                ["check", str(path), str(plan), *extra], arguments.limit
            ).returncode
        else:
            row["message"] = done.stderr.strip()
    except subprocess.TimeoutExpired:
        row |= {"exit": None, "message": f"not done in {arguments.limit:g} s"}
    return row


def regal(command: Sequence[str], limit: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "regal", *command],
        capture_output=True,
        text=True,
        timeout=limit,
        check=False,
    )


def print_tables(rows: Sequence[dict[str, Any]]) -> None:
    """Print runs per system and objective, and what was refused why."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["devices"], row["objective"]].append(row)
    print("| devices | objective | files | planned | too large | checked | median s | most s |")
    print("|-|-|-:|-:|-:|-:|-:|-:|")
    for (devices, objective), group in groups.items():
        planned = [row for row in group if "check" in row]
        seconds = [row["seconds"] for row in planned] or [0.0]
        print(
            f"| {devices} | {objective} | {len(group)} | {len(planned)} |"
            f" {sum(row['exit'] == 1 for row in planned)} |"
            f" {sum(row['check'] == 0 for row in planned)} | {statistics.median(seconds):.1f} |"
            f" {max(seconds):.1f} |"
        )
    for name in sorted({row["file"] for row in rows if "check" not in row}):
        refused = [row for row in rows if row["file"] == name and "check" not in row]
        lines = {row["message"] for row in refused}
        print(f"- {name}, {len(refused)} runs: {'; '.join(sorted(lines))}")


if __name__ == "__main__":
    raise SystemExit(main())
