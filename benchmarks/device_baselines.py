"""All methods for several devices side by side: one problem, one simulator, one checker per row.

    python benchmarks/device_baselines.py PATH [PATH ...] [--devices 2 gpu-nvlink-4]
           [--objectives time memory] [--methods a b] [--evaluations 1000] [--rows ROWS.jsonl]

A PATH is a model file, a folder of them, or `FAMILY:OPS` of `synthetic.py`, as `layered:1000`. A
file that describes its own devices (task graphs) keeps them; the others run on each of `--devices`.
A method or a file that fails is a row with its reason. The tables are computed from the rows, those
of the file given with `--from` too.

Per method: the geometric mean of its value over the best one that any method found on the same
problem (time or largest peak; 1.000 is the best), on how many problems it is the best (ties count
for all), the largest ratio, how often it exceeds the memory of a device, and CPU seconds. Problems
on which a method exceeds a device's memory that another one keeps do not count in its ratios.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from search_time import read
from synthetic import FAMILIES, Sketch

from regal import _native
from regal.cost.roofline import graph_cost
from regal.devices.presets import system_named
from regal.errors import RegalError
from regal.frontends import SUFFIXES
from regal.graph.builder import GraphBuilder
from regal.plan.schedule_problem import schedule_problem
from regal.search.devices.methods import DEVICE_METHODS, device_method_named
from regal.search.devices.objectives import OBJECTIVES, Weights, objective_of
from regal.search.types import Budget

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from regal.devices.types import System
    from regal.graph.types import Graph
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.types import DeviceMethod

HEAD = "| method | mean ratio | best | worst ratio | over memory | failed | CPU s |"
RULE = "|-|-:|-:|-:|-:|-:|-:|"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One graph on one system, and what it takes with everything on the first device."""

    name: str
    system: str
    problem: ScheduleProblem
    before_time_ns: int
    before_peak_bytes: int


def main() -> int:
    """Write the rows, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--devices", nargs="*", default=["2"])
    parser.add_argument("--objectives", nargs="*", default=["time", "memory"], choices=OBJECTIVES)
    parser.add_argument("--methods", nargs="*", default=list(DEVICE_METHODS))
    parser.add_argument("--evaluations", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, help="of wall time per method")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--most-ops", type=int, default=100_000)
    parser.add_argument("--rows", type=Path, default=Path("benchmarks/out/device_baselines.jsonl"))
    parser.add_argument("--from", dest="earlier", type=Path, help="rows of an earlier run")
    arguments = parser.parse_args()
    rows = [json.loads(line) for line in arguments.earlier.open()] if arguments.earlier else []
    methods = {name: device_method_named(name) for name in arguments.methods}
    arguments.rows.parent.mkdir(parents=True, exist_ok=True)
    with arguments.rows.open("w") as stream:
        for row in measured(arguments, methods):
            rows.append(row)
            stream.write(json.dumps(row) + "\n")
            stream.flush()
    for objective in arguments.objectives:
        print(table([row for row in rows if row.get("objective") == objective], objective))
    failed = [row for row in rows if "method" not in row]
    print(f"{len(failed)} files or systems failed")
    for row in failed:
        print(f"- {row['graph']}: {row['failure']}")
    return 0


def measured(
    arguments: argparse.Namespace, methods: Mapping[str, DeviceMethod]
) -> Iterator[dict[str, Any]]:
    """Yield one row per case, objective, method and seed."""
    for name, devices, graph, own in graphs(arguments.paths, arguments.devices):
        if isinstance(graph, str):
            yield {"graph": name, "failure": graph}
            continue
        if len(graph.ops) > arguments.most_ops:
            continue
        try:
            case = case_of(name, graph, own or system_named(devices))
        except RegalError as error:
            yield {"graph": name, "devices": devices, "failure": str(error)}
            continue
        for objective in arguments.objectives:
            for method_name, method in methods.items():
                for seed in range(arguments.seeds):
                    budget = Budget(evaluations=arguments.evaluations, seconds=arguments.seconds)
                    yield run_one(case, objective, method_name, method, budget, seed)


def graphs(
    paths: Sequence[str], devices: Sequence[str]
) -> Iterator[tuple[str, str, Graph | str, System | None]]:
    """Yield name, devices, graph (or why there is none) and the system of the file itself."""
    for text in paths:
        family, _, size = text.partition(":")
        if family in FAMILIES:
            for choice in devices:
                yield text, choice, graph_of(FAMILIES[family](int(size)), text), None
            continue
        root = Path(text)
        files = sorted(root.rglob("*")) if root.is_dir() else [root]
        for path in files:
            if path.suffix.lower() not in SUFFIXES and root.is_dir():
                continue
            try:
                model = read(path)
            except RegalError as error:
                yield path.name, "", str(error), None
                continue
            for choice in devices if model.system is None else devices[:1]:
                yield path.name, choice, model.graph, model.system


def graph_of(sketch: Sketch, name: str) -> Graph:
    """Return a synthetic graph; its ops move bytes, so their times follow from the bandwidth."""
    g = GraphBuilder(name)
    made: list[int] = []
    for reads, size, workspace in zip(sketch.reads, sketch.bytes_of, sketch.workspace, strict=True):
        made += g.op("Op", [made[v] for v in reads], [size], workspace=workspace)
    read = {v for reads in sketch.reads for v in reads}
    return g.build(outputs=[made[v] for v in range(len(made)) if v not in read])


def case_of(name: str, graph: Graph, system: System) -> Case:
    """Return the problem of one graph; bodies of control flow keep the workspace of their op."""
    problem = schedule_problem(graph, system, graph_cost(graph, system))
    may_run = problem.native.may_run.reshape(-1, problem.n_devices)
    placement = may_run.argmax(axis=1)[problem.native.group].reshape(1, -1)
    order = _native.PlacementOrder.FILE
    (before,) = _native.placed_schedules(problem.native, placement, order, False, 1.0, 0.0)
    return Case(
        name=name,
        system=system.name,
        problem=problem,
        before_time_ns=before.score.time,
        before_peak_bytes=before.score.peak,
    )


def run_one(
    case: Case, objective: str, name: str, method: DeviceMethod, budget: Budget, seed: int
) -> dict[str, Any]:
    """Return the row of one run; its figures are those of the checker."""
    weights = objective_of(
        objective,
        Weights(),
        before_time_ns=case.before_time_ns,
        before_peak_bytes=case.before_peak_bytes,
    )
    row: dict[str, Any] = {
        "graph": case.name,
        "devices": case.system,
        "ops": case.problem.n_ops,
        "objective": objective,
        "method": name,
        "seed": seed,
    }
    started = time.process_time()
    try:
        outcome = method(case.problem, weights, budget, seed=seed, threads=1)
    except RegalError as error:
        return {**row, "failure": str(error)}
    seconds = time.process_time() - started
    rows = np.ascontiguousarray(outcome.figures.in_place.reshape(-1, 3))
    verdict, figures = _native.check_schedule(case.problem.native, outcome.schedule, rows)
    if verdict.fault is not _native.ScheduleFault.NONE:
        return {**row, "failure": f"illegal: {verdict.fault.name} at {verdict.first}"}
    return {
        **row,
        "time_ns": figures.time,
        "peak_bytes": figures.most,
        "overflow_bytes": figures.overflow,
        "value": weights.value(figures.time, figures.most),
        "before_time_ns": case.before_time_ns,
        "before_peak_bytes": case.before_peak_bytes,
        "evaluations": outcome.evaluations,
        "cpu_s": round(seconds, 4),
        "note": outcome.note,
    }


def table(rows: Sequence[Mapping[str, Any]], objective: str) -> str:
    """Return the Markdown table of one objective, best mean ratio first."""
    cases: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        cases[row["graph"], row["devices"]].append(row)
    ratios: dict[str, list[float]] = defaultdict(list)
    counts: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for group in cases.values():
        done = [row for row in group if "failure" not in row]
        if not done:
            continue
        least = min(row["overflow_bytes"] for row in done)
        best = min(row["value"] for row in done if row["overflow_bytes"] == least)
        for row in group:
            count = counts[row["method"]]
            count["failed"] += "failure" in row
            if "failure" in row:
                continue
            count["cpu"] += row["cpu_s"]
            count["over"] += row["overflow_bytes"] > 0
            if row["overflow_bytes"] == least:
                ratio = row["value"] / best if best > 0 else 1.0
                ratios[row["method"]].append(ratio)
                count["best"] += ratio <= 1 + 1e-12
    lines = [f"{objective}, {len(cases)} problems", "", HEAD, RULE]

    def mean(name: str) -> float:
        own = ratios[name]
        return math.exp(sum(map(math.log, own)) / len(own)) if own else math.inf

    for name in sorted(counts, key=mean):
        own, count = ratios[name], counts[name]
        lines.append(
            f"| {name} | {mean(name):.3f} | {count['best']:.0f} of {len(own)} |"
            f" {max(own, default=math.inf):.2f} | {count['over']:.0f} | {count['failed']:.0f} |"
            f" {count['cpu']:.1f} |"
        )
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    raise SystemExit(main())
