"""Memory against time of training steps: our memory limit beside PyTorch's activation budget.

`python -m benchmarks.torch_frontier NAME...` prints one JSON row per model and setting. Peaks are
measured (live bytes made by a step), times are CPU seconds of one thread, the fastest of some.
"torch" rows are PyTorch's min-cut partitioner at a budget, its graphs run as they are, with every
value freed after its last use; "regal" rows are this backend below a limit.
"""

from __future__ import annotations

import copy
import json
import sys
import time
from typing import Any

import torch
from benchmarks.torch_models import made
from torch._dynamo.backends.common import aot_autograd
from torch._functorch import config
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.utils._pytree import tree_leaves

from regal.backends.torch.executor import Executor, callable_of
from regal.backends.torch.tracker import MemoryTracker
from regal.torch.backend import Compilation
from regal.torch.settings import Settings

BUDGETS = (1.0, 0.75, 0.5, 0.25, 0.0)
SHARES = (None, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4)  # of the peak that is planned without a limit
REPEATS = 3


def with_budget(module: Any, inputs: Any) -> Any:
    def plain(graph: Any, _: Any) -> Any:
        return callable_of(Executor(graph, None, {}))

    return aot_autograd(
        fw_compiler=plain,
        bw_compiler=plain,
        inference_compiler=plain,
        partition_fn=min_cut_rematerialization_partition,
        keep_inference_input_mutations=True,
    )(module, inputs)


def with_limit(limit: int | None, seen: list[Compilation]) -> Any:
    def backend(module: Any, inputs: Any) -> Any:
        seen.append(Compilation(Settings(cache=False, memory_limit=limit)))
        return seen[-1].captured(module, inputs)

    return backend


def step(call: Any, module: Any, inputs: Any) -> None:
    torch.manual_seed(1)
    module.zero_grad(set_to_none=True)
    outputs = [leaf for leaf in tree_leaves(call(*inputs)) if isinstance(leaf, torch.Tensor)]
    sum(leaf.square().mean() for leaf in outputs if leaf.is_floating_point()).backward()


def row_of(call: Any, module: Any, inputs: Any, expected: list[Any] | None) -> dict[str, Any]:
    step(call, module, inputs)
    gradients = [p.grad.clone() for p in module.parameters() if p.grad is not None]
    step(call, module, inputs)
    module.zero_grad(set_to_none=True)
    with MemoryTracker() as tracker:
        step(call, module, inputs)
    seconds = []
    for _ in range(REPEATS):
        started = time.process_time()
        step(call, module, inputs)
        seconds.append(time.process_time() - started)
    row: dict[str, Any] = {"peak": tracker.peak_bytes, "cpu_s": round(min(seconds), 4)}
    if expected is not None:
        row["equal"] = all(map(torch.equal, expected, gradients))
    return {**row, "gradients": gradients}


def show(name: str) -> None:
    """Print the rows of one model."""
    model, inputs = made(name)
    model.train()

    def report(kind: str, setting: object, call: Any, module: Any, known: Any) -> Any:
        row = row_of(call, module, inputs, known)
        found = row.pop("gradients")
        print(json.dumps({"name": name, "kind": kind, "setting": setting, **row}), flush=True)
        return found

    twin = copy.deepcopy(model)
    expected = report("eager", None, twin, twin, None)
    free = 0
    for share in SHARES:
        torch._dynamo.reset()
        twin, seen = copy.deepcopy(model), []
        limit = None if share is None else int(share * free)
        report("regal", limit, torch.compile(twin, backend=with_limit(limit, seen)), twin, expected)
        if share is None:
            free = max(each.plan.peak_bytes for c in seen for each in c.done)
    for budget in BUDGETS:
        torch._dynamo.reset()
        twin = copy.deepcopy(model)
        with config.patch(activation_memory_budget=budget):
            report("torch", budget, torch.compile(twin, backend=with_budget), twin, expected)


def main() -> None:
    torch.set_num_threads(1)
    for name in sys.argv[1:]:
        show(name)


if __name__ == "__main__":
    main()
