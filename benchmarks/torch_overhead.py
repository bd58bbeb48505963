"""What the backend of `torch.compile` costs: planning once, and every run after it.

`python -m benchmarks.torch_overhead` prints, for graphs of about 2,000 and 4,500 operators, the CPU
seconds of planning (reading, searching, writing and judging) without and with a remembered order;
then, per model, the CPU seconds of a step beside PyTorch's own `aot_eager`, which runs the same
graphs as they were traced. Both run in one process in turns; medians, and the median of the ratios
of neighbors.

`--first` prints what the first call takes with objective "time": in a process that plans, in a
second one that finds its plan and Inductor's code on disk, and beside them Inductor itself and
`aot_eager`, which traces the same graphs and does no more. CPU seconds, those of compilers
included, and seconds of the wall.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import resource
import statistics
import tempfile
import time
from typing import Any

import torch
from benchmarks.torch_models import made
from benchmarks.torch_runs import run_child
from torch import nn
from torch.utils._pytree import tree_leaves

from regal.torch.backend import Compilation
from regal.torch.settings import Settings

MODELS = (
    "zoo/mmoe-4-2x2",
    "transformers/distilbert",
    "timm/ghostnet_100",
    "torchvision/densenet121",
)
FIRST = ("timm/resnet18", "torchvision/squeezenet1_1", "transformers/gpt2", "zoo/unet-3")
FIRST_TIMEOUT_S = 900
ROUNDS = 40
SECONDS = 20.0  # per model and mode


class Branches(nn.Module):
    """About 25 operators per layer, four branches each, on small tensors."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(16, 16) for _ in range(4 * layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for first in range(0, len(self.parts), 4):
            branches = [part(x.sin()).tanh() * x for part in self.parts[first : first + 4]]
            x = torch.stack(branches).mean(0) + x
        return x


class Timed(Compilation):
    """Notes how long each graph took."""

    def compiled(self, module: Any, name: str) -> Any:
        started = time.process_time()
        run = super().compiled(module, name)
        ops = len(self.done[-1].graph.ops)
        stored = self.done[-1].was_stored
        print(json.dumps({"graph": name, "ops": ops, "remembered": stored,
                          "planning_cpu_s": round(time.process_time() - started, 3)}))  # fmt: skip
        return run


def backend(kind: type[Compilation], settings: Settings) -> Any:
    def compile_one(module: Any, inputs: Any) -> Any:
        return kind(settings).captured(module, inputs)

    return compile_one


def plan_a_large_graph() -> None:
    module, x = Branches(65), torch.randn(4, 16)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            torch._dynamo.reset()
            run = torch.compile(module, backend=backend(Timed, Settings(cache=folder)))
            run(x).sum().backward()


def step(call: Any, inputs: Any, *, trains: bool) -> None:
    if not trains:
        with torch.no_grad():
            call(*inputs)
        return
    outputs = [leaf for leaf in tree_leaves(call(*inputs)) if isinstance(leaf, torch.Tensor)]
    sum(leaf.float().mean() for leaf in outputs if leaf.is_floating_point()).backward()


def cost_of_a_step(name: str, *, trains: bool) -> dict[str, Any]:
    """Return the medians of both, after a step that compiles and one that looks at memory."""
    torch._dynamo.reset()
    model, inputs = made(name)
    model.train(trains)
    calls = {
        "regal": torch.compile(
            copy.deepcopy(model), backend=backend(Compilation, Settings(cache=False))
        ),
        "aot_eager": torch.compile(copy.deepcopy(model), backend="aot_eager"),
    }
    for call in calls.values():
        for _ in range(2):
            step(call, inputs, trains=trains)
    times: dict[str, list[float]] = {key: [] for key in calls}
    end = time.process_time() + SECONDS
    for turn in range(ROUNDS):
        for key in sorted(calls, reverse=turn % 2 == 0):
            started = time.process_time()
            step(calls[key], inputs, trains=trains)
            times[key].append(time.process_time() - started)
        if time.process_time() > end:
            break
    ratios = [a / b for a, b in zip(times["regal"], times["aot_eager"], strict=True)]
    return {
        "name": name,
        "mode": "training" if trains else "inference",
        "steps": len(ratios),
        **{f"{key}_ms": round(1e3 * statistics.median(t), 3) for key, t in times.items()},
        "ratio": round(statistics.median(ratios), 4),
    }


def first_call(name: str, mode: str, peer: str) -> dict[str, Any]:
    """Return what the first call takes in this process, and whether plans were remembered.

    Args:
        name: of a model.
        mode: "inference" or "training".
        peer: "regal", "inductor" or "aot_eager".
    """
    model, inputs = made(name)
    model.train(mode == "training")
    made_: list[Compilation] = []
    given: Any = peer
    if peer == "regal":
        folder = os.path.join(os.environ["TORCHINDUCTOR_CACHE_DIR"], "regal")
        settings = Settings(objective="time", cache=folder, compile_seconds=120)

        def given(module: Any, inputs: Any) -> Any:
            made_.append(Compilation(settings))
            made_[-1].faster.examples.extend(inputs)
            return made_[-1].captured(module, inputs)

    call = torch.compile(model, backend=given)
    started, cpu = time.perf_counter(), cpu_seconds()
    step(call, inputs, trains=mode == "training")
    row: dict[str, Any] = {
        "cpu_s": round(cpu_seconds() - cpu, 2),
        "wall_s": round(time.perf_counter() - started, 2),
    }
    if made_:
        choices = [choice for each in made_ for choice in each.faster.done.values()]
        row["remembered"] = [choice.was_stored for choice in choices]
    return row


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(sum(resource.getrusage(each)[:2]) for each in who)


def first_calls(name: str, mode: str) -> dict[str, Any]:
    """Return what first calls take in new processes; each peer begins with an empty folder."""
    row: dict[str, Any] = {"name": name, "mode": mode}
    for peer in ("regal", "inductor", "aot_eager"):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
            row[peer] = [
                run_child("benchmarks.torch_overhead", name, mode, peer, timeout_s=FIRST_TIMEOUT_S)
                for _ in range(1 if peer == "aot_eager" else 2)
            ]
    return row


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--first", action="store_true", help="first calls in new processes")
    parser.add_argument("--training", action="store_true", help="first calls of training steps")
    parser.add_argument("--one", nargs=3, metavar=("NAME", "MODE", "PEER"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.one:
        print(json.dumps(first_call(*arguments.one)))
        return
    if arguments.first:
        for name in arguments.names or FIRST:
            mode = "training" if arguments.training else "inference"
            print(json.dumps(first_calls(name, mode)), flush=True)
        return
    if not arguments.names:
        plan_a_large_graph()
    for name in arguments.names or MODELS:
        for trains in (False, True):
            print(json.dumps(cost_of_a_step(name, trains=trains)), flush=True)


if __name__ == "__main__":
    main()
