"""What `torch.compile(backend="regal")` takes for time and balanced, beside its peers.

`python -m benchmarks.torch_time rows.jsonl` adds the rows that are missing, one child process per
model and mode; `--table` prints what the file holds. Peers run in the same process in turns:
eager PyTorch, channels last everywhere, Inductor by default, and, in training, Inductor with half
of its activation memory, and ours on the model that is channels last (a backend cannot change how
the caller's parameters lie, and gradients have to lie as they do).
`python -m benchmarks.torch_time ranks.jsonl --ranks` measures several plans of some graphs beside
what was predicted for them.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import os
import statistics
import sys
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.ranking import APART, ranking
from benchmarks.torch_models import made
from benchmarks.torch_runs import Heap, add, read, run_child

TIMEOUT_S = 1200
COMPILE_SECONDS = 120  # as long as Inductor takes for the larger models
TURNS = 7  # at several depths of the stack; in each, every peer runs once, then TIMED times timed
TIMED = 3
SECONDS = 12  # for all turns; at least 3 take place
RANKED = (
    "zoo/unet-3", "timm/resnet18", "torchvision/squeezenet1_1", "zoo/bifpn-4x3",
    "timm/mobilenetv3_small_100", "zoo/hourglass-1x3", "timm/regnety_002", "timm/densenet121",
)  # fmt: skip
INFERENCE = (
    "timm/mobilenetv3_small_100", "timm/resnet18", "zoo/unet-3", "transformers/bert",
    "transformers/gpt2", "torchvision/squeezenet1_1", "zoo/bifpn-4x3", "transformers/llama",
    "torchvision/shufflenet_v2_x0_5", "transformers/mixtral", "timm/regnety_002", "zoo/experts-4x8",
    "timm/vit_tiny_patch16_224", "timm/mnasnet_100", "timm/repvgg_a0", "zoo/hourglass-1x3",
    "timm/convnext_atto", "timm/ghostnet_100", "zoo/cells-8x4-0", "timm/densenet121",
    "timm/hrnet_w18_small", "timm/efficientnet_b0", "timm/mobilevit_xxs", "timm/rexnet_100",
    "timm/nasnetalarge",
)  # fmt: skip
TRAINING = (
    "transformers/gpt2", "transformers/bert", "torchvision/squeezenet1_1", "transformers/llama",
    "timm/resnet18", "zoo/bifpn-4x3", "timm/mobilenetv3_small_100", "zoo/unet-3",
    "zoo/experts-4x8", "timm/regnety_002",
)  # fmt: skip
PEERS = ("eager", "channels last", "inductor", "inductor, half memory")
OURS = ("time", "balanced")
ON_LAST = "time on channels last"


def jobs() -> list[tuple[str, str]]:
    """Return (model, mode), what takes long last."""
    short, long = INFERENCE[:16], INFERENCE[16:]
    rows = [(name, "inference") for name in short]
    rows += [(name, "training") for name in TRAINING[:6]]
    rows += [(name, "inference") for name in long]
    return rows + [(name, "training") for name in TRAINING[6:]]


def step_of(call: Any, module: Any, inputs: Any, mode: str) -> list[Any]:
    """Run one call or one training step, and return its outputs."""
    import torch
    from torch.utils._pytree import tree_leaves

    if mode == "inference":
        with torch.no_grad():
            return [leaf for leaf in tree_leaves(call(*inputs)) if isinstance(leaf, torch.Tensor)]
    module.zero_grad(set_to_none=True)
    outputs = [
        leaf
        for leaf in tree_leaves(call(*inputs))
        if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()
    ]
    sum(leaf.float().square().mean() for leaf in outputs).backward()  # type: ignore[union-attr]
    return [leaf.detach() for leaf in outputs]


def measured(name: str, mode: str) -> dict[str, Any]:
    """Return the row of one model in one mode."""
    import torch
    from torch.utils._pytree import tree_map

    from regal.backends.torch.tracker import MemoryTracker
    from regal.backends.torch.trial import at_depth

    torch.set_num_threads(1)
    model, inputs = made(name)
    model.train(mode == "training")
    for each in model.modules():
        if isinstance(each, torch.nn.Dropout):
            each.p = 0.0  # Inductor draws other numbers: only then results can be compared

    def last(value: Any) -> Any:
        is_image = isinstance(value, torch.Tensor) and value.dim() == 4
        return value.contiguous(memory_format=torch.channels_last) if is_image else value

    twins = {peer: copy.deepcopy(model) for peer in (*PEERS[1:], *OURS, ON_LAST)}
    has_images = any(isinstance(each, torch.nn.Conv2d) for each in model.modules())
    if mode == "inference":
        del twins["inductor, half memory"]
    if mode == "inference" or not has_images:
        del twins[ON_LAST]
    for peer in set(twins) & {"channels last", ON_LAST}:
        twins[peer] = twins[peer].to(memory_format=torch.channels_last)
    runs = {"eager": (model, model, inputs)}
    row: dict[str, Any] = {"name": name, "mode": mode, "torch": torch.__version__}
    row["load"] = round(os.getloadavg()[0], 1)  # of the machine, when the model began
    row |= {"first_s": {}, "difference": {}, "graphs": {}}
    reference = step_of(model, model, inputs, mode)
    gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    for peer, twin in twins.items():
        started = time.perf_counter()
        call, context, compilations = twin, nullcontext(), []
        if peer.startswith("inductor"):
            if peer != "inductor":
                context = torch._functorch.config.patch(activation_memory_budget=0.5)
            call = torch.compile(twin, backend=inductor(), dynamic=False)
        elif peer != "channels last":
            call, compilations = ours(twin, "time" if peer == ON_LAST else peer)
        is_last = peer in ("channels last", ON_LAST)
        given = tree_map(last, inputs) if is_last else inputs
        with context:
            found = step_of(call, twin, given, mode)
            step_of(call, twin, given, mode)
        runs[peer] = (call, twin, given)
        row["first_s"][peer] = round(time.perf_counter() - started, 1)
        other = [p.grad for p in twin.parameters() if p.grad is not None]
        row["difference"][peer] = max(distance(reference, found), distance(gradients, other))
        if compilations:
            row["graphs"][peer] = graphs_of(compilations)
        print(peer, row["first_s"][peer], row["difference"][peer], file=sys.stderr, flush=True)
    heap = Heap()
    row["peak"], row["heap"] = {}, {}
    for peer, run in runs.items():
        run[1].zero_grad(set_to_none=True)
        if not peer.startswith("inductor"):  # its allocations pass the dispatcher by
            with MemoryTracker() as tracker:
                step_of(*run, mode)
            row["peak"][peer] = tracker.peak_bytes
        if heap.library is not None:
            run[1].zero_grad(set_to_none=True)
            row["heap"][peer] = heap.peak_of(partial(step_of, *run, mode))
    times: dict[str, list[int]] = {peer: [] for peer in runs}
    started = time.monotonic()
    for turn in range(TURNS):
        at_depth(turn, partial(add_turn, runs, mode, times))
        if turn >= 2 and time.monotonic() - started > SECONDS:
            break
    row["ms"] = {peer: round(statistics.median(ns) / 1e6, 4) for peer, ns in times.items()}
    row["runs"] = len(times["eager"])
    return row


def add_turn(runs: dict[str, Any], mode: str, times: dict[str, list[int]]) -> None:
    """Run every peer once to warm up and `TIMED` times to be timed; add its times in ns."""
    for peer, run in runs.items():
        step_of(*run, mode)
        for _ in range(TIMED):
            begun = time.thread_time_ns()
            step_of(*run, mode)
            times[peer].append(time.thread_time_ns() - begun)


def distance(reference: list[Any], found: list[Any]) -> float:
    """Return the length of the difference of all tensors together, as a share of their length.

    Gradients that cancel out are rounding alone, one by one; together they do not count.
    """
    pairs = [
        (a.double(), b.double())
        for a, b in zip(reference, found, strict=True)
        if a.is_floating_point()
    ]
    length = math.sqrt(sum(float((a * a).sum()) for a, _ in pairs))
    return math.sqrt(sum(float(((a - b) ** 2).sum()) for a, b in pairs)) / (length or 1.0)


def ours(module: Any, objective: str) -> tuple[Any, list[Any]]:
    """Return a compiled module, and a list that is filled with what was decided about it."""
    import torch

    from regal.torch.backend import compilation_of

    compilations: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        options = {"objective": objective, "compile_seconds": COMPILE_SECONDS}
        compilation, compiled = compilation_of(graph, inputs, options)
        compilations.append(compilation)
        return compiled

    # Twins differ in strides: Dynamo would take those for free ones.
    return torch.compile(module, backend=backend, dynamic=False), compilations


def graphs_of(compilations: list[Any]) -> list[dict[str, Any]]:
    """Return what was chosen per graph, and what each way took; times in ms."""
    return [
        {
            "role": choice.role,
            "chosen": choice.chosen,
            "ms": {each: round(ns / 1e6, 4) for each, ns in choice.ns.items()},
            "predicted": round(choice.predicted_ns / 1e6, 4),
            "before": round(choice.before_ns / 1e6, 4),
            "groups": choice.groups,
            "copies": choice.copies,
        }
        for each in compilations
        for choice in each.faster.done.values()
    ]


def inductor() -> Any:
    """Return Inductor as a backend that shares no compiled code with any other one."""
    from torch._inductor.compile_fx import compile_fx

    def backend(graph: Any, inputs: Any) -> Any:
        return compile_fx(graph, inputs)

    return backend


def ranks(name: str) -> dict[str, Any]:
    """Return predicted and measured times of several plans of one graph, and how they rank."""
    import torch
    from benchmarks.torch_plans import measured_plans

    torch.set_num_threads(1)
    model, inputs = made(name)
    row: dict[str, Any] = {"name": name, "load": round(os.getloadavg()[0], 1)}
    row["plans"] = measured_plans(model.eval(), inputs)
    return row | ranking(row["plans"])


def line_of(row: dict[str, Any]) -> str:
    if "failed" in row:
        return f"{row['name']:34} {row.get('mode', ''):9} FAILED {row['failed']}"
    if "plans" in row:
        return (
            f"{row['name']:34} {len(row['plans'])} plans, Kendall {row['kendall']:.2f}, halves of"
            f" the runs {row['kendall_halves']:.2f}; {row['share_apart']:.0%} of pairs more than"
            f" {APART:.0%} apart: {row['kendall_apart']:.2f}"
        )
    eager = row["ms"]["eager"]
    speeds = "  ".join(f"{peer} {eager / ms:.2f}" for peer, ms in row["ms"].items())
    return f"{row['name']:34} {row['mode']:9} {eager:8.2f} ms  {speeds}"


def table(rows: list[dict[str, Any]]) -> None:
    """Print all rows, and geometric means per mode."""
    for row in rows:
        print(line_of(row))
    for mode in ("inference", "training"):
        good = [row for row in rows if row.get("mode") == mode and "failed" not in row]
        if not good:
            continue
        print(f"{mode}: {len(good)} models")
        for peer in dict.fromkeys(peer for row in good for peer in row["ms"]):
            those = [row["ms"] for row in good if peer in row["ms"]]
            mean = statistics.geometric_mean([ms["eager"] / ms[peer] for ms in those])
            print(f"  {peer}: {mean:.3f} x as fast as eager ({len(those)} models)")
        for ours_ in (*OURS, "best of ours"):
            for row in good:
                row["ms"]["best of ours"] = min(
                    row["ms"][each] for each in (OURS[0], ON_LAST) if each in row["ms"]
                )
            over = [
                row["ms"][ours_] / min(row["ms"]["eager"], row["ms"]["channels last"])
                for row in good
            ]
            inductor = [row["ms"]["inductor"] / row["ms"][ours_] for row in good]
            heap = [
                row["heap"][ours_] / row["heap"]["eager"] for row in good if ours_ in row["heap"]
            ]
            print(
                f"  {ours_}: against the better of eager and channels last"
                f" {statistics.geometric_mean(over):.3f}, at worst {max(over):.3f}"
                f" (above 1.02: {sum(each > 1.02 for each in over)}); as fast as Inductor"
                f" {statistics.geometric_mean(inductor):.3f} x"
                + (f"; heap {statistics.geometric_mean(heap) - 1:+.1%}" if heap else "")
            )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", type=Path, nargs="?")
    parser.add_argument("--only", default="", help="part of a name")
    parser.add_argument("--ranks", action="store_true", help="plans of one graph")
    parser.add_argument("--one", nargs=2, metavar=("NAME", "MODE"))
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if arguments.one:
        name, mode = arguments.one
        print(json.dumps(ranks(name) if mode == "ranks" else measured(name, mode)))
        return
    if not arguments.table:
        collect(arguments.rows, arguments.only, is_ranks=arguments.ranks)
    table(read(arguments.rows))


def collect(rows: Path, only: str, *, is_ranks: bool) -> None:
    """Add the rows that are missing, one child process each."""
    done = {(row["name"], row.get("mode", "ranks")) for row in read(rows)}
    wanted = [(name, "ranks") for name in RANKED] if is_ranks else jobs()
    for name, mode in wanted:
        if (name, mode) in done or only not in name:
            continue
        found = run_child("benchmarks.torch_time", name, mode, timeout_s=TIMEOUT_S)
        row = {"mode": mode, **found}
        add(rows, row, line_of(row))


if __name__ == "__main__":
    main()
