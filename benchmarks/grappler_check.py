"""Our simulation beside TensorFlow's own: time and peak of the same placements of a graph.

    python benchmarks/grappler_check.py FILE [FILE ...] [--devices 2] [--placements 10]
           [--rows ROWS.jsonl]

A FILE may be `wide:BRANCHES`: matrix products side by side, where a placement matters.

TensorFlow still has the simulator of grappler: a virtual cluster, a cost per op, a scheduler. Each
file is placed in several ways: all on the first device, split at one place of the file order, and
at random; each is written into the graph with its order and simulated by both. The table has the
rank correlation over the placements, and the median of ours divided by theirs.

The two do not mean the same. Grappler adds computing and memory time where we take the longer of
both; it knows no launch overhead, prices few kinds of ops, and lets values between devices of one
machine arrive at once, so links are made fast here. Its peak counts every result from the end of
its op until all its readers have run, inputs as well, and no buffer twice for a copy that a view
shares with its source. So ranks are what can be compared, not numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from regal._native import complete_schedule, simulate_devices
from regal.backends.tensorflow import apply_schedule
from regal.backends.tensorflow.files import source_of
from regal.backends.tensorflow.prepare import runnable
from regal.cost.roofline import graph_cost
from regal.devices.types import Device, Link, System
from regal.errors import RegalError
from regal.frontends.tensorflow import load
from regal.frontends.tensorflow.schema import new
from regal.plan.schedule import ModelSchedule
from regal.plan.schedule_problem import schedule_problem
from regal.search.devices.packing import packed_schedule
from regal.validation.ranks import kendall, spearman

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from regal.graph.types import LoadedModel

FLOAT = 1  # DT_FLOAT
MEGAHERTZ = 10_000  # of the virtual devices: one operation per cycle
BYTES_PER_S = 20e9
NAME = "/job:localhost/replica:0/task:0/device:CPU:{}"
HEAD = (
    "| file | ops | placements | time: Spearman | Kendall | ours/theirs"
    " | peak: Spearman | Kendall | ours/theirs |"
)
RULE = "|-|-:|-:|-:|-:|-:|-:|-:|-:|"


def main() -> int:
    """Compare the files named on the command line; or simulate, as a child process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--placements", type=int, default=10)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--child", nargs=2, type=Path, metavar=("REQUEST", "RESULT"))
    arguments = parser.parse_args()
    if arguments.child:
        request, result = arguments.child
        result.write_text(json.dumps(simulated_by_grappler(json.loads(request.read_text()))))
        return 0
    print(HEAD, RULE, sep="\n")
    failed = False
    for name in arguments.files:
        try:
            with tempfile.TemporaryDirectory(prefix="regal-") as folder:
                path = wide_graph(name, Path(folder)) if name.startswith("wide:") else Path(name)
                row = compared(path, arguments.devices, arguments.placements)
        except (RegalError, subprocess.SubprocessError) as error:
            row = {"file": name, "error": " ".join(str(error).split())[:200]}
            failed = True
        print(line_of(row), flush=True)
        if arguments.rows:
            with arguments.rows.open("a") as file:
                file.write(json.dumps(row) + "\n")
    return int(failed)


def compared(path: Path, n_devices: int, n_placements: int) -> dict[str, Any]:
    """Return what both simulators say of several placements of one file."""
    model = load(path, {}, {})
    system = cpu_system(n_devices)
    schedules = [
        scheduled(model, system, placement)
        for placement in placements(len(model.graph.ops), n_devices, n_placements)
    ]
    with tempfile.TemporaryDirectory(prefix="regal-") as folder:
        theirs = asked(
            Path(folder), [applied(model, s, folder, i) for i, s in enumerate(schedules)]
        )
    ours = [(s.plans[0].figures.time_ns, s.plans[0].figures.peak) for s in schedules]
    return {
        "file": path.name,
        "ops": len(model.graph.ops),
        "ours": ours,
        "theirs": [(row["time_ns"], max(row["peaks"])) for row in theirs],
    }


def wide_graph(name: str, folder: Path) -> Path:
    """Write a graph of chains of three matrix products, the sizes growing from chain to chain."""
    graph = new("GraphDef")
    graph.versions.producer = 1395
    width = int(name.partition(":")[2])
    for i in range(width):
        size = 32 * (i + 1)
        a = graph.node.add(name=f"a{i}", op="Placeholder")
        a.attr["dtype"].type = FLOAT
        for _ in range(2):
            a.attr["shape"].shape.dim.add(size=size)
        for step, source in ((0, f"a{i}"), (1, f"b{i}_0"), (2, f"b{i}_1")):
            node = graph.node.add(name=f"b{i}_{step}", op="MatMul", input=[source, f"a{i}"])
            node.attr["T"].type = FLOAT
    path = folder / f"wide{width}.pb"
    path.write_bytes(graph.SerializeToString())
    return path


def placements(n_ops: int, n_devices: int, count: int) -> Iterator[list[int]]:
    """Yield `count` placements: one device, splits of the file order, and random ones."""
    chance = random.Random(0)
    yield [0] * n_ops
    for number in range(1, count):
        if number % 2:
            cuts = sorted(chance.randrange(n_ops + 1) for _ in range(n_devices - 1))
            yield [sum(op >= cut for cut in cuts) for op in range(n_ops)]
        else:
            share = chance.random()
            yield [int(chance.random() < share) * chance.randrange(n_devices) for _ in range(n_ops)]


def cpu_system(n_devices: int) -> System:
    """Return devices like grappler's virtual ones, with links that take no time."""
    device = Device(
        name="",
        kind="cpu",
        flops_per_s={"": MEGAHERTZ * 1e6},
        bytes_per_s=BYTES_PER_S,
        launch_ns=1,
    )
    rows = range(n_devices)
    return System(
        name="grappler",
        devices=tuple(
            Device(**{**{f: getattr(device, f) for f in device.__slots__}, "name": f"cpu{i}"})
            for i in rows
        ),
        links={(a, b): Link(latency_ns=1, bytes_per_s=1e15) for a in rows for b in rows if a != b},
        has_contention=False,
    )


def scheduled(model: LoadedModel, system: System, placement: Sequence[int]) -> ModelSchedule:
    """Return the schedule in file order with this placement, colocated ops together."""
    graph = model.graph
    cost = graph_cost(graph, system)
    problem = schedule_problem(graph, system, cost, [0] * len(graph.ops), in_place=False)
    first: dict[int, int] = {}
    row = [first.setdefault(int(g), placement[op]) for op, g in enumerate(problem.native.group)]
    found = complete_schedule(
        problem.native, np.array(row, np.int64), np.arange(len(row), dtype=np.int64)
    )
    figures = simulate_devices(problem.native, found)
    if figures is None:
        raise RegalError(f"'{graph.name}' cannot run in file order")
    plan = packed_schedule(graph, problem, found, figures, {}, time_bound_ns=0, peak_bound=0)
    return ModelSchedule(
        graph_hash="",
        system=system,
        objective="",
        method="",
        seed=0,
        evaluations=0,
        plans=(plan, *([plan] * (len(model.entries) - 1))),
    )


def applied(
    model: LoadedModel, schedule: ModelSchedule, folder: str, number: int
) -> dict[str, Any]:
    """Write the graph with a schedule in it; return what the child needs to know."""
    written = apply_schedule(model, schedule)
    path = Path(folder, f"{number}.pb")
    path.write_bytes(written.files[""])
    again = load(path, {}, {})
    devices = {f"/device:CPU:{i}": NAME.format(i) for i in range(len(schedule.system.devices))}
    what = runnable(source_of(again), source_of(again).entries[0], again.graph, devices)
    shapes = {feed.tensor.partition(":")[0]: feed.shape for feed in what.feeds}
    for node in what.graph.node:
        node.device = node.device or NAME.format(0)
        if node.op == "Placeholder" and node.name in shapes:
            del node.attr["shape"].shape.dim[:]
            node.attr["shape"].shape.unknown_rank = False
            for size in shapes[node.name]:
                node.attr["shape"].shape.dim.add(size=size)
    path.write_bytes(what.graph.SerializeToString())
    fetches = [name.partition(":")[0] for name in (*what.fetches, *what.targets)]
    return {"graph": str(path), "fetches": fetches, "devices": list(devices.values())}


def asked(folder: Path, graphs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return grappler's figures of all graphs: one child process, one virtual cluster."""
    request, result = folder / "request.json", folder / "result.json"
    request.write_text(json.dumps(graphs))
    subprocess.run(
        [sys.executable, __file__, "--child", str(request), str(result)],
        check=True,
        timeout=300,
        capture_output=True,
    )
    rows: list[dict[str, Any]] = json.loads(result.read_text())
    return rows


def simulated_by_grappler(graphs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return time and peaks of each graph. Needs a process of its own: one cluster per process."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    from tensorflow.core.framework import graph_pb2
    from tensorflow.core.protobuf import device_properties_pb2, meta_graph_pb2
    from tensorflow.python.grappler import cluster, item

    devices = []
    for name in graphs[0]["devices"]:
        device = device_properties_pb2.NamedDevice(name=name)
        device.properties.type = "CPU"
        device.properties.frequency = MEGAHERTZ
        device.properties.num_cores = 1
        device.properties.bandwidth = int(BYTES_PER_S / 1000)  # kB/s
        device.properties.memory_size = 1 << 40
        devices.append(device)
    virtual = cluster.Cluster(devices=devices)
    rows = []
    for row in graphs:
        meta = meta_graph_pb2.MetaGraphDef()
        meta.graph_def.CopyFrom(graph_pb2.GraphDef.FromString(Path(row["graph"]).read_bytes()))
        meta.collection_def["train_op"].node_list.value.extend(row["fetches"])
        wanted = item.Item(meta)
        _, seconds, _ = virtual.MeasureCosts(wanted)
        peaks = virtual.DeterminePeakMemoryUsage(wanted)
        rows.append(
            {
                "time_ns": round(seconds * 1e9),
                "peaks": [max(int(peaks[name][0]), 0) for name in row["devices"]],
            }
        )
    return rows


def line_of(row: dict[str, Any]) -> str:
    """Return a line of the table."""
    if "error" in row:
        return f"| {row['file']} | {row['error']} |"
    cells = [row["file"], str(row["ops"]), str(len(row["ours"]))]
    for k in (0, 1):
        ours, theirs = [r[k] for r in row["ours"]], [r[k] for r in row["theirs"]]
        for value in (spearman(ours, theirs), kendall(ours, theirs)):
            cells.append("-" if value is None else f"{value:.2f}")
        cells.append(f"{median(a / max(b, 1) for a, b in zip(ours, theirs, strict=True)):.2f}")
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    sys.exit(main())
