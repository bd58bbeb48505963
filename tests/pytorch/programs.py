"""Programs of many kinds through the backend, each beside eager PyTorch; prints a JSON object.

Every entry is True where outputs, gradients and state are bit for bit equal.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch._higher_order_ops import scan, while_loop
from torch.nn import functional
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

import regal.torch

if TYPE_CHECKING:
    from collections.abc import Callable


def compiled(function: Any, **options: Any) -> Any:
    torch._dynamo.reset()
    return regal.torch.optimize(function, cache=False, **options)


def equal(first: Any, second: Any) -> bool:
    left, right = tree_leaves(first), tree_leaves(second)
    return len(left) == len(right) and all(map(torch.equal, left, right))


def runs_equal(function: Callable[..., Any], *args: Any) -> bool:
    """Compare results and what became of the arguments, from equal random states."""
    mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
    torch.manual_seed(1)
    expected = function(*theirs)
    run = compiled(function)
    torch.manual_seed(1)
    found = run(*mine)
    return equal(expected, found) and equal(theirs, mine)


def trains_equal(module: nn.Module, *args: Any, **options: Any) -> bool:
    """Compare outputs, gradients and buffers of two training steps."""
    twin = copy.deepcopy(module)
    run = compiled(twin, **options)
    found = []
    for each, call in ((module, module), (twin, run)):
        torch.manual_seed(1)
        outputs = []
        for _ in range(2):
            output = call(*args)
            output.float().square().sum().backward()
            outputs.append(output)
        gradients = [p.grad for p in each.parameters()]
        found.append((outputs, gradients, list(each.buffers())))
    return equal(found[0], found[1])


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(4, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.relu(self.norm(self.convolution(x)), inplace=True)
        return functional.gelu(y + functional.dropout(x, 0.3, self.training)) + x


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 8)
        self.out = nn.Linear(8, 10, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.out(functional.gelu(self.embed(tokens)))
        return result


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Dropout(0.2), nn.Linear(8, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = checkpoint(self.layers, x, use_reentrant=False)
        return result.relu()


def mutates(x: torch.Tensor) -> Any:
    y = x.relu()
    x.add_(1)
    z = x * y
    return z, z.view(-1), x


def aliases(x: torch.Tensor) -> Any:
    return x.view(-1), x[0], (x + 1).t()


def draws(x: torch.Tensor) -> Any:
    return functional.dropout(x, 0.5) + torch.rand_like(x), torch.randn(3), torch.rand(2)


def chooses(x: torch.Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda x: (x.relu() + 1) * 2, lambda x: x.sin() - 1, (x,)) + x


def loops(x: torch.Tensor) -> Any:
    start = (torch.tensor(0), x)
    return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, (x * 2).relu() + x), start)


def scans(x: torch.Tensor) -> Any:
    def step(carry: torch.Tensor, y: torch.Tensor) -> Any:
        return (carry + y).tanh(), (carry * y).relu()

    return scan(step, torch.zeros(8), x)


def depends_on_data(x: torch.Tensor) -> Any:
    return x.nonzero(), x[x > 0].relu() * 2


def sized(x: torch.Tensor) -> torch.Tensor:
    y = functional.relu(x * 2)
    return torch.cat([y, x], 0).view(-1, y.shape[0] * 2).t().contiguous() + y.shape[0]


def retained() -> bool:
    """Run the backward pass twice: what forward saved must not have been overwritten."""
    x = torch.randn(4, 8)
    module = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.LayerNorm(8), nn.GELU())
    twin = copy.deepcopy(module)
    for call in (module, compiled(twin)):
        loss = call(x).square().sum()
        loss.backward(retain_graph=True)
        loss.backward()
    return equal([p.grad for p in module.parameters()], [p.grad for p in twin.parameters()])


def dynamic() -> bool:
    run = compiled(sized, dynamic=True)
    inputs = [torch.randn(size, 8) for size in (5, 7, 12)]
    return all(equal(sized(x), run(x)) for x in inputs)


def autocast() -> bool:
    module = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.LayerNorm(8))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return trains_equal(module, torch.randn(4, 8))


def without_gradients() -> bool:
    module, x = Block().eval(), torch.randn(2, 4, 8, 8)
    run = compiled(copy.deepcopy(module))
    with torch.no_grad():
        first = equal(module(x), run(x))
    with torch.inference_mode():
        return first and equal(module(x), run(x))


def keeps_global_state() -> bool:
    """Compile and run; what belongs to the user's process must be as it was."""
    before = (torch.get_num_threads(), torch.is_grad_enabled(), torch.get_rng_state().tolist())
    compiled(sized)(torch.randn(4, 8, generator=torch.Generator().manual_seed(0)))
    after = (torch.get_num_threads(), torch.is_grad_enabled(), torch.get_rng_state().tolist())
    return before == after


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch._dynamo.config.capture_dynamic_output_shape_ops = True
    x = torch.randn(4, 8)
    image = torch.randn(2, 4, 8, 8)
    found = {
        "mutated inputs": runs_equal(mutates, x),
        "aliased outputs": runs_equal(aliases, x),
        "random numbers": runs_equal(draws, x),
        "a choice": runs_equal(chooses, x) and runs_equal(chooses, -x.abs()),
        "a loop": runs_equal(loops, x),
        "a scan": runs_equal(scans, x),
        "sizes that data decide": runs_equal(depends_on_data, x),
        "free sizes": dynamic(),
        "a training step": trains_equal(nn.Sequential(Block(), Block()), image),
        "tied weights": trains_equal(Tied(), torch.arange(6)),
        "a checkpoint": trains_equal(Checkpointed(), x),
        "a retained graph": retained(),
        "autocast": autocast(),
        "no gradients": without_gradients(),
        "recomputation": trains_equal(nn.Sequential(Block(), Block()), image, memory_limit=1),
        "global state": keeps_global_state(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
