"""Running times beside published and proven ones on the graphs of msr-fiddle/dnn-partitioning.

    python benchmarks/placement_anchors.py FOLDER [--seconds 2] [--seeds 3]

FOLDER holds files of that repository, named as in `ANCHORS` (the folders of a path joined by "_").
The cost model is theirs, simplified: equal accelerators, twice the edge's cost between two, no
contention, node sizes against each one's memory. Anchors are the best known running times, in ms;
"proven" ones are optima. Colocation of training graphs is left out: their anchors have none.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import dataclass, replace
from pathlib import Path

from regal.devices.types import copies_of
from regal.frontends import load
from regal.options import Options
from regal.scheduling import costs_of, schedule_before, search_schedule

MS = 1e-6  # per ns


@dataclass(frozen=True, slots=True)
class Anchor:
    file: str
    devices: int
    ms: float
    is_proven: bool


ANCHORS = (
    Anchor("latency-inputs_LayerGraphs_bert24_inference.json", 5, 100.218, True),
    Anchor("latency-inputs_LayerGraphs_gnmt_inference.json", 6, 219.056, True),
    Anchor("latency-inputs_LayerGraphs_inceptionv3_inference.json", 12, 1742.0, False),
    Anchor("latency-inputs_OperatorGraphs_bert_l-3_inference.json", 4, 397.758, True),
    Anchor("latency-inputs_OperatorGraphs_bert_l-6_inference.json", 6, 425.4, False),
    Anchor("latency-inputs_OperatorGraphs_bert_l-12_inference.json", 8, 629.3, False),
    Anchor("latency-inputs_OperatorGraphs_resnet50_inference.json", 9, 360.1, True),
    Anchor("throughput-inputs_OperatorGraphs_resnet50_training.json", 6, 598.1, True),
    Anchor("throughput-inputs_OperatorGraphs_bert_L-12_training.json", 6, 1579.9, False),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    print("| graph | devices | anchor ms | ours, median | worst | gap | fits |")
    print("|---|---|---|---|---|---|---|")
    for anchor in ANCHORS:
        path = arguments.folder / anchor.file
        if not path.exists():
            continue
        found, fits = times_of(path, anchor, arguments.seconds, arguments.seeds)
        median = statistics.median(found)
        what = "proven" if anchor.is_proven else "best known"
        print(
            f"| {path.stem} | {anchor.devices} | {anchor.ms} ({what}) | {median:.3f} |"
            f" {max(found):.3f} | {100 * (median / anchor.ms - 1):+.2f} % | {fits} |",
            flush=True,
        )


def times_of(path: Path, anchor: Anchor, seconds: float, seeds: int) -> tuple[list[float], bool]:
    """Return the running times in ms, one per seed, and whether all schedules fit."""
    model = load(path)
    free = tuple(replace(op, colocation="") for op in model.graph.ops)
    model = replace(model, entries=(replace(model.graph, ops=free),))
    if model.system is None:
        raise SystemExit(f"'{path}' describes no devices")
    system = copies_of(model.system, anchor.devices)
    costs = costs_of(model, system)
    before = schedule_before(model, system, costs)
    found, fits = [], True
    for seed in range(seeds):
        options = Options(objective="time", seconds=seconds, seed=seed)
        plan = search_schedule(model, system, costs, before, options)
        found.append(plan.plans[0].figures.time_ns * MS)
        fits = fits and plan.plans[0].figures.overflow_bytes == 0
    return found, fits


if __name__ == "__main__":
    main()
