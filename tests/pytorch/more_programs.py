"""Further programs through the backend, each beside eager PyTorch; prints a JSON object.

Every entry is True where outputs, gradients and state are bit for bit equal.
"""

from __future__ import annotations

import copy
import json
import threading
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional

from regal.torch.backend import regal
from tests.pytorch.programs import Block, compiled, equal, runs_equal, trains_equal

if TYPE_CHECKING:
    from collections.abc import Callable


class Frozen(nn.Module):
    """Some parameters learn nothing, one is not used, and an output needs no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.unused = (nn.Linear(8, 8) for _ in range(3))
        self.first.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> Any:
        y = self.first(x).relu()
        return {"main": self.second(y).sigmoid(), "side": [y, None, 3, y.argmax(1)]}


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 8)
        self.cells = nn.LSTM(8, 8, num_layers=2, batch_first=True, bidirectional=True)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        y, (h, _) = self.cells(self.embed(tokens))
        result: torch.Tensor = y.mean(1) * h[0].repeat(1, 2).tanh()
        return result


class Statistics(nn.Module):
    """Normalizations that keep an average without momentum, or statistics of instances."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(4, 4, 3),
            nn.BatchNorm2d(4, momentum=None),
            nn.InstanceNorm2d(4, affine=True, track_running_stats=True),
            nn.GroupNorm(2, 4),
            nn.SiLU(inplace=True),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.layers(x)
        return result


class Loop(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def wide(x: torch.Tensor) -> torch.Tensor:
            return (x @ self.weight).relu() + 1

        def narrow(x: torch.Tensor) -> torch.Tensor:
            return (x * 2 @ self.weight).sin()

        result: torch.Tensor = torch.cond(x.sum() > 0, wide, narrow, (x,)) * x
        return result


class Written(nn.Module):
    """Small values of parameters and buffers are kept, and then their sources are written."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8))
        self.scale = nn.Parameter(torch.randn(8))
        self.first = nn.Linear(8, 8)
        self.total: torch.Tensor
        self.register_buffer("total", torch.randn(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x) * (1 + self.weight) * (1 + self.total) * (2 + self.scale)
        self.total.add_(x.detach().sum(0))
        with torch.no_grad():
            self.scale.mul_(0.9)
        return y.sin() * self.total


def complex_numbers(x: torch.Tensor) -> Any:
    spectrum = torch.fft.rfft(x)
    shifted = (spectrum * 1j).conj()
    return shifted, shifted.real, torch.fft.irfft(shifted * spectrum, n=8), spectrum.abs()


def views_of_inputs(x: torch.Tensor) -> Any:
    y = x.view(-1)[2:10]
    y.mul_(2)
    return x, y, x.t(), x.t()[1:3].relu_() if x.shape[0] > 1 else x


def gives_back(x: torch.Tensor, y: torch.Tensor) -> Any:
    z = x + y
    return x, z, z.view(2, -1), z[0], (z * 2).relu().unbind(0)


def scatters(x: torch.Tensor) -> Any:
    index = torch.tensor([0, 2, 1, 2])
    out = torch.zeros(3, 8).index_add_(0, index, x)
    out.index_put_((index, index), x[:, 0], accumulate=True)
    return (
        out,
        torch.zeros(3, 8).scatter_add_(0, index[:, None].expand(4, 8), x),
        x.cumsum(0).sort(),
    )


def mapped(x: torch.Tensor) -> Any:
    def loss(w: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        return (w * row).sin().sum()

    return torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(x[0], x)


def samples(x: torch.Tensor) -> Any:
    p = x.sigmoid()
    noise = torch.bernoulli(p) + torch.poisson(p) + torch.empty_like(p).uniform_()
    return noise, torch.multinomial(p, 2), torch.randperm(5), functional.dropout(x, 0.2)


def with_optimizer(make: Callable[[Any], Any], *, in_graph: bool) -> bool:
    """Accumulate gradients of two parts of a batch before each of three steps."""
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.BatchNorm1d(16), nn.Linear(16, 8))
    twin = copy.deepcopy(model)
    x = torch.randn(8, 8)
    for module, call in ((model, model), (twin, compiled(twin))):
        optimizer = make(module.parameters())
        step = optimizer.step
        if in_graph and module is twin:
            step = torch.compile(optimizer.step, backend=regal, options={"cache": False})
        for _ in range(3):
            optimizer.zero_grad()
            for part in x.chunk(2):
                (call(part).square().mean() / 2).backward()
            step()
    return equal(list(model.state_dict().values()), list(twin.state_dict().values()))


def other_sizes() -> bool:
    """Call with other sizes, another type and other strides: each time it is compiled again."""

    def program(x: torch.Tensor) -> Any:
        y = (x * 2).relu()
        return y.t().reshape(-1), y.sum(0) + x.shape[0]

    run = compiled(program)
    inputs = [torch.randn(4, 8), torch.randn(5, 8), torch.randn(9, 8), torch.randn(1, 8)]
    inputs += [torch.randn(4, 8).double(), torch.randn(8, 4).t(), torch.randn(0, 8)]
    return all(equal(program(x), run(x)) for x in inputs)


def sizes_in_training() -> bool:
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)
    )
    twin = copy.deepcopy(model)
    run = compiled(twin, dynamic=True)
    for size in (8, 12, 16, 10):
        x = torch.randn(size // 4, 3, size, size)
        for call in (model, run):
            call(x).square().sum().backward()
    return equal(
        [*(p.grad for p in model.parameters()), *model.buffers()],
        [*(p.grad for p in twin.parameters()), *twin.buffers()],
    )


def channels_last() -> bool:
    """Compare results and where their bytes lie."""
    model = nn.Sequential(Block(), Block()).to(memory_format=torch.channels_last)
    twin = copy.deepcopy(model)
    x = torch.randn(2, 4, 8, 8).contiguous(memory_format=torch.channels_last)
    results = []
    for module, call in ((model, model), (twin, compiled(twin))):
        torch.manual_seed(1)
        y = call(x)
        y.square().sum().backward()
        results.append([y, *(p.grad for p in module.parameters()), *module.buffers()])
    strides = [[each.stride() for each in result] for result in results]
    return equal(*results) and strides[0] == strides[1]


def gradients_of_inputs() -> bool:
    """Inputs want gradients, one twice; hooks see them."""
    found = []

    def program(x: torch.Tensor, y: torch.Tensor) -> Any:
        return (x * y).relu().sum(1), (x + 1).sigmoid() * x

    for call in (program, compiled(program)):
        x, y = torch.arange(12.0).view(3, 4).requires_grad_(), torch.ones(3, 4, requires_grad=True)
        seen: list[torch.Tensor] = []
        x.register_hook(lambda g, seen=seen: seen.append(g.clone()))
        a, b = call(x, y)
        (a.sum() + b.square().sum()).backward(retain_graph=True)
        a.backward(torch.ones(3))
        found.append([a, b, x.grad, y.grad, *seen])
    return equal(*found)


def on_cpu_and_back() -> bool:
    """What forward saves passes hooks that copy it: it comes back as other tensors."""
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8))
    twin = copy.deepcopy(model)
    x = torch.randn(4, 8)
    for call in (model, compiled(twin)):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            loss = call(x).square().sum()
        loss.backward()
    return equal([p.grad for p in model.parameters()], [p.grad for p in twin.parameters()])


def threads() -> bool:
    """Run one compiled model in four threads at once, the first run included."""
    model = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.LayerNorm(8)).eval()
    run = compiled(copy.deepcopy(model))
    inputs = [torch.randn(4, 8) for _ in range(4)]
    found: dict[int, torch.Tensor] = {}

    def work(i: int) -> None:
        with torch.no_grad():
            for _ in range(5):
                found[i] = run(inputs[i])

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    with torch.no_grad():
        return equal([model(x) for x in inputs], [found[i] for i in range(4)])


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(4, 8)
    image = torch.randn(2, 4, 8, 8)
    half = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.LayerNorm(8)).bfloat16()
    found = {
        "frozen parameters": frozen(x),
        "recurrent cells": trains_equal(Recurrent(), torch.arange(8).view(2, 4)),
        "kinds of normalization": trains_equal(Statistics(), image),
        "a choice in training": trains_equal(Loop(), x.abs()) and trains_equal(Loop(), -x.abs()),
        "sources that are written later": trains_once_equal(Written(), x),
        "complex numbers": runs_equal(complex_numbers, x),
        "views of inputs are written": runs_equal(views_of_inputs, x),
        "inputs are returned": runs_equal(gives_back, x, x + 1),
        "scattered writes": runs_equal(scatters, x),
        "mapped gradients": runs_equal(mapped, x),
        "samples": runs_equal(samples, x),
        "accumulated gradients": with_optimizer(
            lambda p: torch.optim.AdamW(p, foreach=True), in_graph=False
        ),
        "an optimizer in the graph": with_optimizer(
            lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=True), in_graph=True
        ),
        "other sizes": other_sizes(),
        "free sizes in training": sizes_in_training(),
        "channels last": channels_last(),
        "gradients of inputs": gradients_of_inputs(),
        "hooks on saved values": on_cpu_and_back(),
        "sixteen bits": trains_equal(half, x.bfloat16()),
        "recomputation with random numbers": trains_equal(
            nn.Sequential(Block(), nn.Dropout(0.3), Block()), image, memory_limit=1
        ),
        "threads": threads(),
    }
    print(json.dumps(found))


def trains_once_equal(module: nn.Module, x: torch.Tensor) -> bool:
    """Compare three steps, each with the same error where eager refuses the backward pass."""
    found: list[list[Any]] = []
    twin = copy.deepcopy(module)
    for each, call in ((module, module), (twin, compiled(twin))):
        rows: list[Any] = []
        for _ in range(3):
            try:
                rows.append(call(x))
                rows[-1].square().sum().backward()
            except RuntimeError as error:
                rows.append(torch.tensor(len(rows)) if "inplace" in str(error) else None)
        found.append([*rows, *(p.grad for p in each.parameters()), *each.state_dict().values()])
    return equal(*found)


def frozen(x: torch.Tensor) -> bool:
    model = Frozen()
    twin = copy.deepcopy(model)
    results = []
    for module, call in ((model, model), (twin, compiled(twin))):
        output = call(x)
        output["main"].sum().backward()
        results.append([output["main"], output["side"][0], output["side"][3],
                        *(p.grad for p in module.parameters() if p.grad is not None)])  # fmt: skip
    return equal(*results)


if __name__ == "__main__":
    main()
