"""Planned memory of ExecuTorch programs: its naive and greedy algorithms, and ours.

`python -m benchmarks.executorch_memory rows.jsonl` adds the rows that are missing, one child
process per model; `--table` prints what the file holds. Programs run in ExecuTorch's runtime with
its portable kernels; outputs of the same program with greedy's memory and with ours are compared
bit for bit, those of greedy's with eager PyTorch by their largest difference.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import time
from pathlib import Path
from typing import Any

from benchmarks.torch_runs import add, read, run_child

TIMEOUT_S = 900
ZOO = ("mmoe-4-2x2", "randwire-ws-10x3-0", "treelstm-4", "experts-4x8", "bilstm-2x16",
       "wavenet-1x8", "cells-4x4-0", "unetpp-3", "hourglass-1x3")  # fmt: skip
TIMM = {"ghostnet_100": 32, "mobilenetv3_small_100": 32, "densenet121": 32, "hrnet_w18_small": 32,
        "nasnetalarge": 96}  # fmt: skip
PLANS = ("naive", "greedy", "offsets", "greedy, our order", "order and offsets")


def made(name: str) -> tuple[Any, tuple[Any, ...]]:
    """Return a model for inference and its inputs, one sample each; weights from seed 0."""
    from regal.data.tracers.torch_common import import_torchvision

    import_torchvision()
    import torch
    from torch.utils._pytree import tree_leaves

    torch.manual_seed(0)
    source, _, kind = name.partition("/")
    if source == "timm":
        import timm

        return timm.create_model(kind).eval(), (torch.randn(1, 3, TIMM[kind], TIMM[kind]),)
    from regal.data.tracers.torch_zoo import RECIPES

    _, make, inputs = RECIPES[kind]
    return make().eval(), tuple(tree_leaves(inputs(1)))


def measured(name: str) -> dict[str, Any]:
    """Return the row of one model."""
    import torch
    from executorch.exir import ExecutorchBackendConfig, to_edge
    from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite, greedy, naive
    from executorch.exir.passes import MemoryPlanningPass
    from executorch.runtime import Runtime
    from torch.utils._pytree import tree_leaves

    from regal.executorch import memory_planning_algorithm, memory_planning_pass

    torch.set_num_threads(1)
    model, inputs = made(name)
    with torch.no_grad():
        expected = tree_leaves(model(*inputs))
    edge = to_edge(torch.export.export(model, inputs, strict=False))
    ways: dict[str, Any] = {
        "naive": MemoryPlanningPass(MemoryPlanningAlgorithmSuite([naive])),
        "greedy": MemoryPlanningPass(MemoryPlanningAlgorithmSuite([greedy])),
        "offsets": MemoryPlanningPass(MemoryPlanningAlgorithmSuite([memory_planning_algorithm()])),
        "greedy, our order": memory_planning_pass(algorithms=[greedy]),
        "order and offsets": memory_planning_pass(),
    }
    arenas, results, seconds = {}, {}, {}
    for way, each in ways.items():
        program = copy.deepcopy(edge)
        started = time.process_time()
        done = program.to_executorch(ExecutorchBackendConfig(memory_planning_pass=each))
        seconds[way] = round(time.process_time() - started, 2)
        arenas[way] = sum(done.executorch_program.execution_plan[0].non_const_buffer_sizes)
        if way in ("greedy", "order and offsets"):
            method = Runtime.get().load_program(done.buffer).load_method("forward")
            results[way] = [leaf.clone() for leaf in method.execute(list(inputs))]
    pairs = list(zip(results["greedy"], results["order and offsets"], strict=True))
    return {
        "name": name,
        "nodes": len(edge.exported_program().graph.nodes),
        "arenas": arenas,
        "to_executorch_cpu_s": seconds,
        "equal": all(torch.equal(a, b) for a, b in pairs),
        "eager_difference": max(
            float((a - b).abs().max() / a.abs().max().clamp(min=1e-30))
            for a, b in zip(expected, results["greedy"], strict=True)
        ),
    }


def collect(rows: Path, only: str) -> None:
    done = {row["name"] for row in read(rows)}
    for name in [*(f"zoo/{kind}" for kind in ZOO), *(f"timm/{kind}" for kind in TIMM)]:
        if name in done or only not in name:
            continue
        row = run_child("benchmarks.executorch_memory", name, timeout_s=TIMEOUT_S)
        add(rows, row, line_of(row))


def line_of(row: dict[str, Any]) -> str:
    if "failed" in row:
        return f"{row['name']:28} FAILED {row['failed']}"
    sizes = "  ".join(f"{way} {row['arenas'][way]:>10,}" for way in PLANS)
    change = row["arenas"]["order and offsets"] / row["arenas"]["greedy"] - 1
    return (
        f"{row['name']:28} {row['nodes']:5} nodes  {sizes} ({change:+.1%})"
        f"  {'equal' if row['equal'] else 'DIFFERS'}"
    )


def table(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        print(line_of(row))
    good = [row for row in rows if "failed" not in row]
    if not good:
        return
    for way in PLANS[2:]:
        ratios = [row["arenas"][way] / row["arenas"]["greedy"] for row in good]
        print(
            f"{way}: {statistics.geometric_mean(ratios) - 1:+.1%} against greedy (geometric mean"
            f" of {len(good)}), best {min(ratios) - 1:+.1%}, above it: {sum(r > 1 for r in ratios)}"
        )
    print(f"outputs bit for bit equal: {sum(row['equal'] for row in good)} of {len(good)}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", type=Path, nargs="?")
    parser.add_argument("--only", default="", help="part of a name")
    parser.add_argument("--one", metavar="NAME")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measured(arguments.one)))
        return
    if not arguments.table:
        collect(arguments.rows, arguments.only)
    table(read(arguments.rows))


if __name__ == "__main__":
    main()
