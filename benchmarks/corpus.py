"""Optimize, apply and verify every .tflite and .onnx file of a folder; write rows and a table.

    python benchmarks/corpus.py FOLDER [--rows ROWS.jsonl] [--table docs/results.md]

A file that fails is a row with its reason; the summary states n of N. `--table` replaces the part
of a Markdown file between the lines `<!-- corpus -->` and `<!-- end -->`. A `manifest.csv` in the
folder with the columns `file` and `max_width` tells which models branch widely.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SUFFIXES = (".tflite", ".onnx", ".textproto")
MARKS = ("<!-- corpus -->", "<!-- end -->")
# Bindings that a file cannot do without: its inputs have free dimensions besides the batch.
BINDINGS = {
    "ort_gpt2_past.onnx": ["--dim", "seq_len=4"],
    "ort_gpt2_past_mask_layer.onnx": [
        *("--dim", "seq_len=2", "--dim", "past_seq_len=3", "--dim", "past_seq_len+seq_len=5"),
    ],
    "ort_bert_toy_optimized.onnx": ["--dim", "max_seq_len_in_batch=8"],
    "ort_fns_candy_freedim.onnx": ["--shape", "inputImage=1,3,64,64"],
    "ort_fp16model_loop.onnx": ["--shape", "data=1,8"],
    "ort_gh_issue_11717.onnx": ["--dim", "y1=4"],
    "ort_tiny_gpt2_beam_2dec.onnx": ["--dim", "sequence_length=4"],
    "tract_bidi_lstm.onnx": ["--dim", "length=8"],
}
LONGEST_REASON = 200
SMALL_OPS, WIDE = 200, 4
FIGURES = ("head_bytes", "heap_peak_bytes", "span_bytes")


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=Path, default=Path("benchmarks/out/corpus.jsonl"))
    parser.add_argument("--table", type=Path)
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--only", default="", help="substring of the file name")
    arguments = parser.parse_args()
    files = sorted(
        path
        for path in arguments.folder.rglob("*")
        if path.suffix in SUFFIXES and arguments.only in path.name
    )
    widths = read_widths(arguments.folder / "manifest.csv")
    arguments.rows.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    with arguments.rows.open("w") as stream:
        for path in files:
            row = run_one(path, arguments.timeout)
            row["max_width"] = widths.get(path.name, 0)
            rows.append(row)
            stream.write(json.dumps(row) + "\n")
            stream.flush()
            print(table_row(row), flush=True)
    print(summary(rows))
    if arguments.table:
        replace_part(arguments.table, table(rows))
    return 0


def run_one(path: Path, timeout: float) -> dict[str, Any]:
    """Return the result row of one file: `regal optimize -o` in a process of its own."""
    row: dict[str, Any] = {"file": path.name, "folder": f"{path.parent}/"}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / f"out{path.suffix}"
        command = [sys.executable, "-m", "regal", "optimize", str(path), "-o", str(out), "--json"]
        started = time.perf_counter()
        try:
            done = subprocess.run(
                [*command, *BINDINGS.get(path.name, [])],
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {**row, "status": "timeout", "reason": f"no result in {timeout:.0f} s"}
        row["total_seconds"] = round(time.perf_counter() - started, 2)
    if done.returncode in (0, 1) and done.stdout.startswith("{"):
        row["status"] = "done" if done.returncode == 0 else "failed"
        return {**row, **json.loads(done.stdout)}
    lines = done.stderr.strip().splitlines() or ["no message"]
    status = "refused" if done.returncode == 2 and len(lines) == 1 else "crashed"
    reason = lines[-1].removeprefix("regal: error: ").replace(f"{path.parent}/", "")
    return {**row, "status": status, "reason": reason}


def read_widths(path: Path) -> dict[str, int]:
    """Return file name -> the most ops that no edge orders; nothing without the manifest."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {Path(row["file"]).name: int(row["max_width"]) for row in rows if row["max_width"]}


def table(rows: list[dict[str, Any]]) -> str:
    """Return the summary and the Markdown table of all rows."""
    head = (
        "| file | ops | peak before | peak after | arena before | arena after | bound | proven |"
        " search s | runtime: before -> after | outputs |\n"
        "| --- | --: | --: | --: | --: | --: | --: | --- | --: | --- | --- |\n"
    )
    return f"{summary(rows)}\n\n{head}" + "\n".join(table_row(row) for row in rows)


def table_row(row: dict[str, Any]) -> str:
    """Return one row of the table."""
    if "after" not in row:
        return f"| {row['file']} | | | | | | | | | {row['status']}: {row['reason']} | |"
    proven = ("order" if row["optimal"]["order"] else "") + (
        "+arena" if row["optimal"]["arena"] else ""
    )
    cells = [
        row["file"],
        row["ops"],
        f"{row['before']['peak_bytes']:,}",
        f"{row['after']['peak_bytes']:,}",
        f"{row['before']['arena_bytes']:,}",
        f"{row['after']['arena_bytes']:,}",
        f"{row['lower_bound']['peak_bytes']:,}",
        proven.strip("+") or "no",
        f"{row['seconds']:.2f}",
        runtime_text(row),
        outputs_text(row),
    ]
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def runtime_text(row: dict[str, Any]) -> str:
    """Return what the first runtime measured."""
    verified = row["verified"]
    if verified is None:
        reason = " ".join(row["verify_skipped"].replace(row["folder"], "").split())
        return f"not run: {reason[:LONGEST_REASON]}"
    for name in FIGURES:
        if name in verified["before"] and name in verified["after"]:
            before, after = verified["before"][name], verified["after"][name]
            change = f" ({100 * (after / before - 1):+.1f} %)" if before else ""
            return f"{verified['runtime'].split()[0]} {before:,} -> {after:,}{change}"
    return str(verified["runtime"])


def outputs_text(row: dict[str, Any]) -> str:
    """Return whether the outputs were equal."""
    if row["verified"] is None:
        return "-"
    return "equal" if row["verified"]["outputs_equal"] else "DIFFER"


def summary(rows: list[dict[str, Any]]) -> str:
    """Return the counts, as a Markdown list."""
    done = [row for row in rows if "after" in row]
    verified = [row for row in done if row["verified"]]
    lines = [
        f"{len(done)} of {len(rows)} files planned and applied;"
        f" {len(rows) - len(done)} refused or failed.",
        f"Peak proven optimal: {share(done)}; up to {SMALL_OPS} ops"
        f" {share([row for row in done if row['ops'] <= SMALL_OPS])}; at least {WIDE} ops side by"
        f" side {share([row for row in done if row['max_width'] >= WIDE])}.",
        f"Arena at its bound: {sum(row['optimal']['arena'] for row in done)} of {len(done)}.",
        *(change(done, figure) for figure in ("peak_bytes", "arena_bytes")),
        f"Run and compared in a runtime: {len(verified)};"
        f" outputs equal on {sum(row['verified']['outputs_equal'] for row in verified)}.",
        *(measured_change(verified, figure) for figure in FIGURES),
    ]
    return "\n".join(f"- {line}" for line in lines)


def share(rows: list[dict[str, Any]]) -> str:
    """Return on how many of the rows the peak is proven optimal."""
    proven = sum(row["optimal"]["order"] for row in rows)
    return f"{proven} of {len(rows)}" + (f" ({100 * proven / len(rows):.0f} %)" if rows else "")


def change(rows: list[dict[str, Any]], figure: str) -> str:
    """Return how a figure of the plans changed: files, and the geometric mean."""
    pairs = [(row["before"][figure], row["after"][figure]) for row in rows]
    return f"Planned {figure}: {compared(pairs)}."


def measured_change(rows: list[dict[str, Any]], figure: str) -> str:
    """Return how a figure that the first runtime of each file measured changed."""
    pairs = [
        (row["verified"]["before"][figure], row["verified"]["after"][figure])
        for row in rows
        if next((name for name in FIGURES if name in row["verified"]["after"]), "") == figure
    ]
    rise = max((after - before for before, after in pairs), default=0)
    return f"Measured {figure}: {compared(pairs)}; the largest rise is {max(rise, 0):,} bytes."


def compared(pairs: list[tuple[int, int]]) -> str:
    """Return less, equal, more, and the geometric mean of after / before."""
    logs = [math.log(after / before) for before, after in pairs if before and after]
    mean = math.exp(sum(logs) / len(logs)) if logs else 1.0
    return (
        f"less on {sum(after < before for before, after in pairs)},"
        f" equal on {sum(after == before for before, after in pairs)},"
        f" more on {sum(after > before for before, after in pairs)} files,"
        f" {100 * (mean - 1):+.1f} % by geometric mean"
    )


def replace_part(path: Path, text: str) -> None:
    """Replace what stands between the marks in the file at `path`."""
    before, _, rest = path.read_text().partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    path.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}")


if __name__ == "__main__":
    sys.exit(main())
