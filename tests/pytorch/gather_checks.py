"""Gathers in groups, and gradients of enlarged images; prints a JSON object."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.functional import interpolate

from regal.backends.torch.agreement import disagreement
from regal.backends.torch.executor import boxed
from regal.backends.torch.fuse import Wishes, built, written_storages
from regal.frontends.torch.fx import graph_of
from regal.fusion.types import CHANNELS_LAST, Kernel
from regal.torch.backend import compilation_of
from regal.torch.legality import fuse_class_of
from regal.torch.measured import measured, problem_of
from regal.torch.region_times import compile_regions
from regal.torch.resizing import restore_resizing_gradients
from regal.torch.times import Times
from tests.pytorch.fused_checks import traced


class Experts(nn.Module):
    """Each token takes the matrix of its expert: gathered, then multiplied by a vector."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.randn(4, 32, 16))
        self.enlarged = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x: torch.Tensor, expert: torch.Tensor, image: torch.Tensor) -> Any:
        y = torch.bmm(self.weights[expert], x.unsqueeze(-1)).squeeze(-1)
        small = self.enlarged(image).relu()
        return y.tanh(), interpolate(small, scale_factor=2.0) + 1


def gathers() -> dict[str, Any]:
    """Say what gathers and products with vectors are to fusion, and what may be fused."""

    def function(w: torch.Tensor, at: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> Any:
        index = at + 1 - 1
        rows = (w * 2)[index]
        return torch.bmm(rows, x), torch.bmm(rows, y)

    args = (
        torch.randn(4, 8, 16),
        torch.randint(0, 4, (6,)),
        torch.randn(6, 16, 1),
        torch.randn(6, 16, 3),
    )
    module = traced(function, *args)
    written = written_storages(module)
    graph = graph_of(module, "gathers")
    found = measured(module, graph, Wishes(), list(args), Times(path=None))
    names = [op.name for op in graph.ops]
    pairs = problem_of(module, graph, found).pairs
    return {
        "classes": {
            node.name: str(fuse_class_of(node, written))
            for node in module.graph.nodes
            if node.op == "call_function"
        },
        "pairs": sorted(f"{names[a]}-{names[b]}" for a, b in pairs),
    }


def compiled(cache: str) -> dict[str, str]:
    """Compare outputs, and gradients of a training step, with those of eager code."""
    torch.manual_seed(0)
    module = Experts()
    args = torch.randn(12, 16), torch.randint(0, 4, (12,)), torch.randn(2, 3, 8, 8)

    def backend(graph: Any, inputs: Any) -> Any:
        return compilation_of(graph, inputs, {"objective": "time", "cache": cache})[1]

    run = torch.compile(module, backend=backend)
    found = {}
    with torch.no_grad():
        expected = module(*args)
        run(*args)
        found["inference"] = disagreement(expected, run(*args))
    sum(each.square().sum() for each in module(*args)).backward()
    gradients = [each.grad for each in module.parameters()]
    module.zero_grad(set_to_none=True)
    sum(each.square().sum() for each in run(*args)).backward()
    found["gradients"] = disagreement(gradients, [each.grad for each in module.parameters()])
    return found


def laid_out() -> dict[str, Any]:
    """Gather from an image channels last in a group, and return what is gathered, too."""

    def function(
        x: torch.Tensor, w: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor
    ) -> Any:
        image = torch.conv2d(x, w, padding=1)
        large = torch.ops.aten._unsafe_index.Tensor(image, [None, None, rows, columns])
        return large, large * 2 + 1

    halved = torch.arange(8) // 2
    args = torch.randn(2, 3, 4, 4), torch.randn(5, 3, 3, 3), halved[:, None], halved
    module = traced(function, *args)
    graph = graph_of(module, "gathers")
    first, *others = range(len(graph.ops))
    kernels = [
        Kernel(ops=(first,), layout=CHANNELS_LAST),
        Kernel(ops=tuple(others), layout=CHANNELS_LAST),
    ]
    made = built(module, graph, kernels, Wishes(free_outputs=frozenset({0, 1})))
    expected = function(*args)
    found = {"node by node": disagreement(expected, boxed(made.module)(list(args)))}
    calls: dict[str, Any] = {}
    compile_regions(made.regions.values(), calls, time.monotonic() + 60)
    results = boxed(made.module)(list(args))
    found["compiled"] = disagreement(expected, results)
    last = [each.is_contiguous(memory_format=torch.channels_last) for each in results]
    return {**found, "channels last": last, "groups": len(made.region_of)}


def scatter_of(
    scale: float, *, shift: int = 0, accumulate: bool = True, device: str = "cpu"
) -> Any:
    """Return the gradient of enlarging to 8 x 12 pixels as PyTorch traces it."""

    def scatter(gradient: torch.Tensor) -> torch.Tensor:
        rows = ((torch.arange(8, dtype=torch.float32, device=device) + 0.0) * scale).to(torch.int64)
        across = torch.arange(12, dtype=torch.float32, device=device) + 0.0
        columns = (across * scale).to(torch.int64)
        rows = (rows + shift).clamp(max=int(8 * scale) - 1)
        zeros = gradient.new_zeros([2, 3, int(8 * scale), int(12 * scale)])
        return torch.ops.aten._unsafe_index_put.default(
            zeros, [None, None, rows.unsqueeze(-1), columns], gradient, accumulate
        )

    return scatter


def resizing() -> dict[str, Any]:
    """Count scatters that are replaced, and compare what then comes out."""
    gradient = torch.randn(2, 3, 8, 12)
    found: dict[str, Any] = {}
    for name, scatter in {
        "half": scatter_of(0.5),
        "quarter": scatter_of(0.25),
        "shifted": scatter_of(0.5, shift=1),
        "not added": scatter_of(0.5, accumulate=False),
    }.items():
        module = traced(scatter, gradient)
        expected = scatter(gradient)
        found[name] = [
            restore_resizing_gradients(module),
            disagreement([expected], [boxed(module)([gradient])]),
        ]

    def given(gradient: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten._unsafe_index_put.default(
            gradient.new_zeros([2, 3, 4, 12]), [None, None, rows, rows[:1]], gradient, True
        )

    module = traced(given, gradient, torch.arange(8).unsqueeze(-1) // 2)
    found["positions given"] = [restore_resizing_gradients(module), ""]

    def wrapped(gradient: torch.Tensor) -> torch.Tensor:
        """Read a row below, and a column counted from the right: the number is the same."""
        rows = ((torch.arange(8, dtype=torch.float32) + 0.0) * 0.5).to(torch.int64).unsqueeze(-1)
        columns = ((torch.arange(12, dtype=torch.float32) + 0.0) * 0.5).to(torch.int64)
        below, right = (rows + 1).clamp(max=3), torch.where(rows < 3, columns - 6, columns)
        return torch.ops.aten._unsafe_index_put.default(
            gradient.new_zeros([2, 3, 4, 6]), [None, None, below, right], gradient, True
        )

    module = traced(wrapped, gradient)
    expected = wrapped(gradient)
    found["counted from the right"] = [
        restore_resizing_gradients(module),
        disagreement([expected], [boxed(module)([gradient])]),
    ]
    with FakeTensorMode():
        elsewhere = make_fx(scatter_of(0.5, device="meta"))(torch.empty(2, 3, 8, 12, device="meta"))
    found["another device"] = [restore_resizing_gradients(elsewhere), ""]
    return found


def free_sizes(cache: str) -> str:
    """Compare the gradients of an enlarged image, compiled for any number of images."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Upsample(scale_factor=2), nn.Conv2d(4, 2, 3))

    def backend(graph: Any, inputs: Any) -> Any:
        return compilation_of(graph, inputs, {"objective": "time", "cache": cache})[1]

    run = torch.compile(module, backend=backend, dynamic=True)
    found = []
    for call in (module, run):
        module.zero_grad(set_to_none=True)
        for count in (3, 5):
            torch.manual_seed(count)
            call(torch.randn(count, 3, 8, 8)).square().mean().backward()
        found.append([each.grad for each in module.parameters()])
    expected, planned = found
    return disagreement(expected, planned)


def main() -> None:
    torch.set_num_threads(1)
    found = {
        "gathers": gathers(),
        "compiled": {**compiled(sys.argv[1]), "free sizes": free_sizes(sys.argv[1])},
        "resizing": resizing(),
        "laid out": laid_out(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
