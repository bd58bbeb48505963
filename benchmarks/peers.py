"""Peers side by side in one run: same inputs, same liveness, ratios and seconds.

    python benchmarks/peers.py order   [FILE_OR_FOLDER ...] [--seconds 10]
    python benchmarks/peers.py offsets [FILE_OR_FOLDER ...] [--seconds 10] [--minimalloc BINARY]

Without files: the models that ship. `order` compares rules and solvers for the order of the
ops, nothing in place. `offsets` compares planners for the offsets of buffers in file order;
it takes CSV files `id,lower,upper,size` as well. Every answer is checked here before it
counts. Peers that are packages are optional: an absent one is skipped, with the reason.
Rows go to benchmarks/out/peers_<what>.jsonl, a table to the standard output.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
MODEL_SUFFIXES = (".tflite", ".onnx")
OURS = "regal"
Row = dict[str, Any]


def main() -> int:
    """Run one of the two comparisons; return 1 if a planner gave an illegal answer."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("order", "offsets"))
    parser.add_argument("paths", nargs="*", type=Path, default=[ROOT / "examples" / "models"])
    parser.add_argument("--seconds", type=float, default=10.0, help="limit per solver and file")
    parser.add_argument("--only", default="", help="planners, comma-separated; default all")
    parser.add_argument("--smallest", type=int, default=10, help="skip graphs with fewer ops")
    parser.add_argument("--minimalloc", type=Path, help="binary of google/minimalloc")
    parser.add_argument("--vela-iterations", type=int, default=2000)
    parser.add_argument("--no-runtimes", action="store_true", help="measure no real runtime")
    arguments = parser.parse_args()
    run = run_order if arguments.what == "order" else run_offsets
    target = ROOT / "benchmarks" / "out" / f"peers_{arguments.what}.jsonl"
    target.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    with target.open("w") as stream:
        for row in run(arguments):
            rows.append(row)
            stream.write(json.dumps(row) + "\n")
            stream.flush()
            print(_progress(row), file=sys.stderr)
    print(matrix(rows))
    print()
    print(summary(rows))
    return 1 if any(row.get("illegal") for row in rows) else 0


def run_order(arguments: argparse.Namespace) -> Iterator[Row]:
    """Yield one row per graph and orderer."""
    from benchmarks.peer_offsets import Skipped
    from benchmarks.peer_orders import (
        ORDERERS,
        OrderCase,
        best_bound,
        peak_by_definition,
    )

    from regal.errors import RegalError
    from regal.frontends import load
    from regal.plan.problem import order_problem
    from regal.search.exact import lower_bound

    chosen = _chosen(ORDERERS, arguments.only)
    for path in _files(arguments.paths, MODEL_SUFFIXES):
        try:
            graph = load(path).graph
            problem = order_problem(graph, in_place=False).native
        except RegalError as error:
            print(f"{path.name}: {error}", file=sys.stderr)
            continue
        if problem.n_ops < arguments.smallest:
            continue
        case = OrderCase(name=path.name, graph=graph, problem=problem, bound=lower_bound(problem))
        proven = best_bound(case)
        for name, order_by in chosen.items():
            row: Row = {
                "file": path.name, "items": problem.n_ops, "bound": proven, "peer": name
            }  # fmt: skip
            started = time.perf_counter()
            try:
                order = order_by(case, arguments.seconds)
            except (Skipped, RegalError) as reason:
                yield {**row, "skipped": str(reason)}
                continue
            row["seconds"] = round(time.perf_counter() - started, 6)
            try:
                yield {**row, "bytes": peak_by_definition(problem, order)}
            except ValueError as error:
                yield {**row, "illegal": str(error)}


def run_offsets(arguments: argparse.Namespace) -> Iterator[Row]:
    """Yield one row per file and planner, then what the real runtimes need."""
    from benchmarks.peer_boxes import boxes_of_file, overlap
    from benchmarks.peer_offsets import PLANNERS, Limits, Skipped

    from regal.errors import RegalError

    limits = Limits(
        seconds=arguments.seconds,
        vela_iterations=arguments.vela_iterations,
        minimalloc=arguments.minimalloc,
    )
    chosen = _chosen(PLANNERS, arguments.only)
    for path in _files(arguments.paths, (*MODEL_SUFFIXES, ".csv")):
        try:
            boxes = boxes_of_file(path)
        except RegalError as error:
            print(f"{path.name}: {error}", file=sys.stderr)
            continue
        if len(boxes.size) < arguments.smallest:
            continue
        common: Row = {"file": path.name, "items": len(boxes.size), "bound": boxes.max_live}
        for name, place in chosen.items():
            row: Row = {**common, "peer": name}
            started = time.perf_counter()
            try:
                offsets = place(boxes, limits)
            except Skipped as reason:
                yield {**row, "skipped": str(reason)}
                continue
            row["seconds"] = round(time.perf_counter() - started, 6)
            clash = overlap(boxes, offsets)
            if clash:
                yield {**row, "illegal": f"boxes {clash[0]} and {clash[1]} overlap"}
            else:
                yield {**row, "bytes": int((offsets + boxes.size).max(initial=0))}
        if not arguments.no_runtimes:
            measure = {".tflite": _measured, ".onnx": _planned_by_onnxsim}.get(path.suffix)
            yield from ({**common, **row} for row in (measure(path) if measure else ()))


def matrix(rows: list[Row]) -> str:
    """Return the table file x peer: bytes over the bound; "-" where there is no answer."""
    peers = list(dict.fromkeys(row["peer"] for row in rows))
    files = list(dict.fromkeys(row["file"] for row in rows))
    by_key = {(row["file"], row["peer"]): row for row in rows}
    lines = [_line("file", "items", "bound", *peers)]
    lines.append(_line(*["-"] * (3 + len(peers))))
    for file in files:
        found = [by_key.get((file, peer), {}) for peer in peers]
        any_row = next(row for row in found if row)
        cells = [
            f"{row['bytes'] / row['bound']:.3f}" if row.get("bytes") and row["bound"] else "-"
            for row in found
        ]
        lines.append(_line(file, any_row["items"], f"{any_row['bound']:,}", *cells))
    return "\n".join(lines)


def summary(rows: list[Row]) -> str:
    """Return per peer: files answered, geometric mean against ours, better/equal/worse.

    Means are over the files that both answered; "better" counts files on which the peer
    needs less than ours.
    """
    ours = {row["file"]: row["bytes"] for row in rows if row["peer"] == OURS and "bytes" in row}
    files = {row["file"] for row in rows}
    lines = [_line("peer", "answered", "bytes / ours", "better", "equal", "worse", "seconds")]
    lines.append(_line(*["-"] * 7))
    for peer in dict.fromkeys(row["peer"] for row in rows):
        mine = [row for row in rows if row["peer"] == peer and "bytes" in row]
        pairs = [(r["bytes"], ours[r["file"]]) for r in mine if r["file"] in ours]
        logs = [math.log(a / b) for a, b in pairs if a and b]
        mean = f"{math.exp(sum(logs) / len(logs)):.4f}" if logs else "-"
        signs = [
            sum(a < b for a, b in pairs),
            sum(a == b for a, b in pairs),
            sum(a > b for a, b in pairs),
        ]
        seconds = sum(row.get("seconds", 0.0) for row in mine)
        lines.append(_line(peer, f"{len(mine)} of {len(files)}", mean, *signs, f"{seconds:.2f}"))
    reasons = {row["peer"]: row["skipped"] for row in rows if "skipped" in row}
    lines += ["", *(f"{peer}: skipped: {reason}" for peer, reason in reasons.items())]
    return "\n".join(lines)


def _measured(path: Path) -> Iterator[Row]:
    """Yield what TFLM's head and LiteRT's arena really are, in file order."""
    from regal.backends.tflite.measure import LITERT, TFLM, run_model
    from regal.frontends import load

    figures = {TFLM: ("tflm, measured", "head_bytes"), LITERT: ("litert, measured", "span_bytes")}
    source = load(path).source
    for runtime, (name, figure) in figures.items():
        run = run_model(source, path.read_bytes(), runtime, seed=0, invocations=1, timeout_s=60.0)
        if figure in run.numbers:
            yield {"peer": name, "bytes": run.numbers[figure]}
        else:
            yield {"peer": name, "skipped": run.error or "no figure"}


def _planned_by_onnxsim(path: Path) -> Iterator[Row]:
    """Yield the arena of onnxsim's plan for the file itself, with its own in-place rule."""
    try:
        import onnx
        import onnxsim
    except ImportError as error:
        yield {"peer": "onnxsim, own", "skipped": str(error)}
        return
    plan = onnxsim.plan_activation_memory(onnx.load(path))
    if plan.unplanned:
        yield {"peer": "onnxsim, own", "skipped": f"{len(plan.unplanned)} tensors unplanned"}
    else:
        yield {"peer": "onnxsim, own", "bytes": plan.arena_bytes}


def _chosen(all_of_them: dict[str, Any], only: str) -> dict[str, Any]:
    names = [name for name in only.split(",") if name] or list(all_of_them)
    unknown = set(names) - set(all_of_them)
    if unknown:
        raise SystemExit(f"unknown planners {sorted(unknown)}; known: {', '.join(all_of_them)}")
    return {name: all_of_them[name] for name in names}


def _files(paths: list[Path], suffixes: tuple[str, ...]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(p for p in path.rglob("*") if p.suffix in suffixes)
        else:
            found.append(path)
    return found


def _line(*cells: object) -> str:
    return "|" + "|".join(str(cell) for cell in cells) + "|"


def _progress(row: Row) -> str:
    answer = row.get("bytes") or row.get("skipped") or row.get("illegal")
    return f"{row['file']} {row['peer']}: {answer}"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))  # run as a file, python looks only beside it
    sys.exit(main())
