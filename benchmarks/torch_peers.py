"""Heap and time of PyTorch models beside what `torch.compile` does by default.

`python -m benchmarks.torch_peers rows.jsonl` adds the rows that are missing, one process per model
and mode; `--table` prints what the file holds. Ways, all in one process on equal weights and
inputs: eager PyTorch, `channels_last` everywhere, this backend, Inductor, and in training Inductor
with half the activation memory budget, and this backend below half of its own peak. Kernels of
Inductor take memory unseen by a dispatch mode, so all peaks are those of the heap, workspaces of
kernels included.
"""

from __future__ import annotations

import argparse
import copy
import os
import statistics
import time
from pathlib import Path
from typing import Any

from benchmarks.torch_models import made
from benchmarks.torch_runs import MODES, Heap, collect, read

TIMEOUT_S = 1500
ROUNDS = 5
MODELS = (
    "zoo/mmoe-4-2x2", "zoo/experts-4x8", "zoo/unet-3", "zoo/bifpn-4x3", "zoo/hourglass-1x3",
    "torchvision/squeezenet1_1", "transformers/bert", "transformers/gpt2", "timm/resnet18",
    "zoo/randwire-ws-10x3-0", "timm/mobilenetv3_small_100", "timm/ghostnet_100",
    "timm/hrnet_w18_small", "timm/densenet121",
)  # fmt: skip
BUDGET = 0.5


def measured(name: str, mode: str) -> dict[str, Any]:
    """Return the row of one model in one mode."""
    import torch
    from torch._functorch import config
    from torch.utils._pytree import tree_leaves

    from regal.torch.backend import regal

    torch.set_num_threads(1)
    model, inputs = made(name)
    model.train(mode == "training")
    heap = Heap()

    def tensors(result: Any) -> list[Any]:
        leaves = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        return [leaf for leaf in leaves if leaf.is_floating_point()]

    def step(call: Any, module: Any, given: Any) -> list[Any]:
        torch.manual_seed(1)
        if mode == "inference":
            with torch.no_grad():
                return tensors(call(*given))
        module.zero_grad(set_to_none=True)
        outputs = tensors(call(*given))
        sum(leaf.float().square().mean() for leaf in outputs).backward()
        return [leaf.detach() for leaf in outputs]

    def last(value: Any) -> Any:
        is_image = isinstance(value, torch.Tensor) and value.dim() == 4
        return value.contiguous(memory_format=torch.channels_last) if is_image else value

    twin = copy.deepcopy(model)
    runs: dict[str, tuple[Any, Any, Any]] = {"eager": (twin, twin, inputs)}
    if any(p.dim() == 4 for p in model.parameters()):
        twin = copy.deepcopy(model).to(memory_format=torch.channels_last)
        runs["channels_last"] = (twin, twin, tuple(map(last, inputs)))
    twin = copy.deepcopy(model)
    runs["regal"] = (torch.compile(twin, backend=regal, options={"cache": False}), twin, inputs)
    twin = copy.deepcopy(model)
    runs["inductor"] = (torch.compile(twin), twin, inputs)

    row: dict[str, Any] = {"heap": {}, "cpu_s": {}, "compile_cpu_s": {}, "difference": {}}
    expected: list[Any] = []

    def look(way: str) -> None:
        call, module, given = runs[way]
        started = time.process_time()
        found = step(call, module, given)
        row["compile_cpu_s"][way] = round(time.process_time() - started, 1)
        found += [p.grad for p in module.parameters() if p.grad is not None]
        if way == "eager":
            expected.extend(each.clone() for each in found)
        scales = [max(float(each.abs().max()), 1e-6) for each in expected]
        row["difference"][way] = max(
            float((a - b).abs().max()) / scale
            for a, b, scale in zip(expected, found, scales, strict=True)
        )
        del found
        step(call, module, given)
        module.zero_grad(set_to_none=True)
        row["heap"][way] = heap.peak_of(lambda: step(call, module, given))
        module.zero_grad(set_to_none=True)

    for way in list(runs):
        look(way)
    if mode == "training":
        twin = copy.deepcopy(model)
        with config.patch(activation_memory_budget=BUDGET):
            runs["inductor, budget"] = (torch.compile(twin), twin, inputs)
            look("inductor, budget")
        twin = copy.deepcopy(model)
        options = {"cache": False, "memory_limit": int(BUDGET * row["heap"]["regal"])}
        runs["regal, limit"] = (torch.compile(twin, backend=regal, options=options), twin, inputs)
        look("regal, limit")
    times: dict[str, list[float]] = {way: [] for way in runs}
    for _ in range(ROUNDS):
        for way, (call, module, given) in runs.items():
            started = time.process_time()
            step(call, module, given)
            times[way].append(time.process_time() - started)
    row["cpu_s"] = {way: round(statistics.median(values), 6) for way, values in times.items()}
    return row


def line_of(row: dict[str, Any]) -> str:
    head = f"{row['name']:28} {row['mode']:9}"
    if "failed" in row:
        return f"{head} FAILED {row['failed']}"
    heap, seconds = row["heap"], row["cpu_s"]
    return f"{head} eager {heap['eager'] / 1e6:8.2f} MB" + "".join(
        f"  {way} {heap[way] / heap['eager'] - 1:+.1%} {seconds[way] / seconds['eager']:.2f}x"
        for way in heap
        if way != "eager"
    )


def table(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        print(line_of(row))
    for mode in MODES:
        good = [row for row in rows if row["mode"] == mode and "failed" not in row]
        for way in dict.fromkeys(way for row in good for way in row["heap"] if way != "eager"):
            mine = [row for row in good if way in row["heap"]]
            heaps = [row["heap"][way] / row["heap"]["eager"] for row in mine]
            times = [row["cpu_s"][way] / row["cpu_s"]["eager"] for row in mine]
            print(
                f"{mode}, {way}: heap {statistics.geometric_mean(heaps) - 1:+.1%}, time"
                f" {statistics.geometric_mean(times):.2f}x eager (geometric means of {len(mine)})"
            )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", type=Path)
    parser.add_argument("--only", default="", help="part of a name")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if not arguments.table:
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
        wanted = [name for name in MODELS if arguments.only in name]
        collect("benchmarks.torch_peers", wanted, arguments.rows, measured, line_of, TIMEOUT_S)
    table(read(arguments.rows))


if __name__ == "__main__":
    main()
