"""Known optima and records of public placement graphs, against the default method and CP-SAT.

    python benchmarks/placement_anchors.py FOLDER [--seconds 2 10] [--only gnmt,ffnn] [--json FILE]

FOLDER holds copies of the public repositories msr-fiddle/dnn-partitioning and xinyuyao/Doppler
(any depth; missing files are left out of the table). Each method gets the wall time of the column,
with the given threads; CP-SAT starts from the best heuristic and has the longest of the times.
A gap is to the anchor: negative is below a record. "proven" anchors are optima.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from regal.baselines.devices.cp_sat import CpSat
from regal.cost.roofline import graph_cost
from regal.devices.types import copies_of
from regal.frontends import load
from regal.plan.schedule_problem import schedule_problem
from regal.search.devices.methods import device_method_named
from regal.search.devices.types import Objective
from regal.search.types import Budget

if TYPE_CHECKING:
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.types import DeviceMethod

TIME = Objective(name="time", per_ns=1.0, per_byte=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    name: str
    file: str  # the end of its path
    devices: int
    ms: float
    is_proven: bool


LATENCY, TRAINING = "latency-inputs", "throughput-inputs/OperatorGraphs"
ANCHORS = tuple(
    Anchor(name=name, file=file, devices=devices, ms=ms, is_proven=is_proven)
    for name, file, devices, ms, is_proven in (
        ("bert_l-3", f"{LATENCY}/OperatorGraphs/bert_l-3_inference.json", 4, 397.758, True),
        ("gnmt", f"{LATENCY}/LayerGraphs/gnmt_inference.json", 6, 219.056, True),
        ("inceptionv3", f"{LATENCY}/LayerGraphs/inceptionv3_inference.json", 12, 1742.0, False),
        ("bert_l-6", f"{LATENCY}/OperatorGraphs/bert_l-6_inference.json", 6, 425.397, True),
        ("resnet50", f"{LATENCY}/OperatorGraphs/resnet50_inference.json", 9, 360.114, True),
        ("bert_l-12", f"{LATENCY}/OperatorGraphs/bert_l-12_inference.json", 8, 629.3, False),
        ("bert24", f"{LATENCY}/LayerGraphs/bert24_inference.json", 5, 100.218, True),
        ("bert_L-12 training", f"{TRAINING}/bert_L-12_training.json", 6, 1579.9, False),
        ("resnet50 training", f"{TRAINING}/resnet50_training.json", 6, 598.332, True),
        ("chain_mm", "compute_graph/chain_mm_112nodes.txt", 4, 1200.0, True),
        ("ffnn", "compute_graph/ffnn_192nodes.txt", 4, 56.8, True),
        ("transformer_block", "compute_graph/transformer_block_215nodes.txt", 4, 142.1, True),
        ("transformer_layer", "compute_graph/full_transformer_layer_261nodes.txt", 4, 116.4, True),
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    anchor: Anchor
    method: str
    seconds: float  # allowed
    seed: int
    ms: float
    bound_ms: float
    overflow_bytes: int
    evaluations: int
    wall_s: float
    cpu_s: float

    @property
    def gap(self) -> float:
        return self.ms / self.anchor.ms - 1


def main() -> int:
    arguments = parsed()
    rows = []
    for anchor in ANCHORS:
        if arguments.only and anchor.name not in arguments.only:
            continue
        found = sorted(arguments.folder.rglob(f"*{Path(anchor.file).name}"))
        path = next((p for p in found if p.as_posix().endswith(anchor.file)), None)
        if path is None:
            print(f"{anchor.name}: no file {anchor.file} below {arguments.folder}", file=sys.stderr)
            continue
        problem = problem_of(path, anchor)
        for seconds in arguments.seconds:
            for seed in range(arguments.seeds):
                method = device_method_named(arguments.method)
                rows.append(
                    measured(
                        anchor, arguments.method, method, problem, seconds, seed, arguments.threads
                    )
                )
        if arguments.cp_sat:
            seconds = max(arguments.seconds)
            rows.append(measured(anchor, "cp-sat", CpSat(), problem, seconds, 0, arguments.threads))
        print_anchor(anchor, problem, rows)
    if arguments.json is not None:
        lines = [json.dumps({**asdict(row), "gap": row.gap}) for row in rows]
        arguments.json.write_text("\n".join(lines) + "\n")
    return 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, nargs="+", default=[2.0, 10.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--method", default="regal")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    parser.add_argument("--cp-sat", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def problem_of(path: Path, anchor: Anchor) -> ScheduleProblem:
    model = load(path)
    if model.system is None:
        raise SystemExit(f"{path} describes no devices")
    system = copies_of(model.system, anchor.devices)
    return schedule_problem(model.graph, system, graph_cost(model.graph, system))


def measured(
    anchor: Anchor,
    name: str,
    method: DeviceMethod,
    problem: ScheduleProblem,
    seconds: float,
    seed: int,
    threads: int,
) -> Row:
    started, cpu = time.perf_counter(), time.process_time()
    outcome = method(problem, TIME, Budget(seconds=seconds), seed=seed, threads=threads)
    return Row(
        anchor=anchor,
        method=name,
        seconds=seconds,
        seed=seed,
        ms=outcome.figures.time / 1e6,
        bound_ms=outcome.time_bound_ns / 1e6,
        overflow_bytes=outcome.figures.overflow,
        evaluations=outcome.evaluations,
        wall_s=time.perf_counter() - started,
        cpu_s=time.process_time() - cpu,
    )


def print_anchor(anchor: Anchor, problem: ScheduleProblem, rows: list[Row]) -> None:
    own = [row for row in rows if row.anchor == anchor]
    kind = "proven" if anchor.is_proven else "record"
    print(
        f"{anchor.name} ({problem.n_ops} ops, {anchor.devices} devices): {kind} {anchor.ms:.3f} ms"
    )
    for method, seconds in dict.fromkeys((row.method, row.seconds) for row in own):
        same = [row for row in own if (row.method, row.seconds) == (method, seconds)]
        worst = max(same, key=lambda row: (row.overflow_bytes, row.ms))
        best = min(same, key=lambda row: (row.overflow_bytes, row.ms))
        fits = "" if worst.overflow_bytes == 0 else f"  {worst.overflow_bytes} bytes too much"
        print(
            f"  {method:8} {seconds:5g} s  best {best.ms:9.3f} ({best.gap:+.3%})  worst of"
            f" {len(same)} {worst.ms:9.3f} ({worst.gap:+.3%})  bound {best.bound_ms:9.3f} "
            f" {worst.wall_s:.2f} s wall, {worst.cpu_s:.2f} s CPU,"
            f" {worst.evaluations} evaluations{fits}",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
