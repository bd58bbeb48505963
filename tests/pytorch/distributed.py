"""Train in two processes, compiled and eagerly; prints a JSON object: whether they agree.

`python -m tests.pytorch.distributed FOLDER` starts the two; with a rank it is one of them.
"""

from __future__ import annotations

import copy
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from regal.torch.backend import regal

RANKS = 2
STEPS = 3
WIDTH = 320  # 0.4 MB of weights per layer: buckets of 1 MB hold two


def model() -> nn.Module:
    torch.manual_seed(0)
    layers = [
        nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH), nn.GELU()) for _ in range(4)
    ]
    return nn.Sequential(*layers, nn.Linear(WIDTH, 8))


def trained(module: nn.Module, rank: int, *, bucket_mb: float, compiles: str) -> list[Any]:
    """Return gradients, parameters and buffers after some steps.

    Args:
        module: of this process.
        rank: draws the batches: each process has its own.
        bucket_mb: of gradients that are sent at once; Dynamo cuts the graph at the buckets.
        compiles: "", "inside" (the module before it is wrapped) or "outside".
    """
    torch._dynamo.reset()
    options = {"cache": False}
    inner = (
        torch.compile(module, backend=regal, options=options) if compiles == "inside" else module
    )
    run: Any = DistributedDataParallel(inner, bucket_cap_mb=bucket_mb)
    if compiles == "outside":
        run = torch.compile(run, backend=regal, options=options)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    draw = torch.Generator().manual_seed(rank)
    for _ in range(STEPS):
        optimizer.zero_grad()
        run(torch.randn(16, WIDTH, generator=draw)).square().mean().backward()
        optimizer.step()
    state = [*module.parameters(), *module.buffers()]
    return [each.detach().clone() for each in (*state, *(p.grad for p in module.parameters()))]


def one(rank: int, store: str) -> None:
    """Be one of the processes."""
    torch.set_num_threads(1)
    warnings: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: warnings.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("regal.torch").addHandler(handler)
    distributed.init_process_group("gloo", f"file://{store}", rank=rank, world_size=RANKS)
    first = model()
    found: dict[str, Any] = {}
    for bucket_mb in (25.0, 1.0):
        expected = trained(copy.deepcopy(first), rank, bucket_mb=bucket_mb, compiles="")
        for compiles in ("inside", "outside"):
            mine = trained(copy.deepcopy(first), rank, bucket_mb=bucket_mb, compiles=compiles)
            found[f"{compiles}, buckets of {bucket_mb} MB"] = all(map(torch.equal, expected, mine))
    distributed.destroy_process_group()
    print(json.dumps({"equal": found, "warnings": warnings}))


def main() -> None:
    if len(sys.argv) > 2:
        one(int(sys.argv[2]), sys.argv[1])
        return
    store = Path(sys.argv[1]) / "store"
    command = [sys.executable, "-W", "ignore", "-m", "tests.pytorch.distributed", str(store)]
    runs = [
        subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, text=True)
        for rank in range(RANKS)
    ]
    lines = [run.communicate(timeout=500)[0].splitlines() for run in runs]
    print(json.dumps({"ranks": [json.loads(each[-1]) if each else {} for each in lines]}))


if __name__ == "__main__":
    main()
