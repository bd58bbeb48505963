"""What the objectives "time" and "balanced" promise, one function each; prints a JSON object."""

from __future__ import annotations

import copy
import json
import logging
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

import regal.torch
import regal.torch.region_times
from regal.backends.torch.agreement import disagreement
from regal.backends.torch.executor import boxed
from regal.backends.torch.fuse import Wishes, built, written_storages
from regal.backends.torch.fused_executor import FusedExecutor, Link, Way
from regal.backends.torch.packed import MOST_CHANGES, PackedWeights, Packing, packed_convolution
from regal.backends.torch.regions import compiled_call
from regal.backends.torch.trial import drawn_inputs
from regal.errors import BackendError
from regal.frontends.torch.fx import graph_of
from regal.fusion.types import CHANNELS_LAST, CONTIGUOUS, Kernel
from regal.torch.backend import compilation_of
from regal.torch.legality import fuse_class_of, layout_rule_of
from regal.torch.times import Times, times_at


class Net(nn.Module):
    """Two convolutions with all that usually stands between them, and a view at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(16)
        self.second = nn.Conv2d(16, 16, 1)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.norm(self.first(x)).relu()
        z = self.drop(torch.sigmoid(self.second(y)) * y + y)
        return z, z.mean((2, 3)).flatten(1)


def compiled(module: Any, cache: str, objective: str = "time", **options: Any) -> Any:
    """Return the compiled module; `options` are those of the backend."""
    given = {"objective": objective, "cache": cache, **options}
    return torch.compile(module, backend=regal.torch.backend.regal, options=given)


def net(*, training: bool) -> tuple[Net, torch.Tensor]:
    torch.manual_seed(0)
    module = Net().train(training)
    return module, torch.randn(4, 3, 16, 16)


def inference(cache: str) -> dict[str, Any]:
    """Compare outputs and their strides, in both objectives."""
    module, x = net(training=False)
    found: dict[str, Any] = {}
    with torch.no_grad():
        expected = module(x)
        for objective in ("time", "balanced"):
            run = compiled(copy.deepcopy(module), cache, objective)
            for _ in range(2):
                result = run(x)
            found[objective] = disagreement(expected, result)
            found[f"{objective} strides"] = [t.stride() for t in expected] == [
                t.stride() for t in result
            ]
    return found


def training(cache: str) -> dict[str, Any]:
    """Compare gradients and buffers after two steps; random numbers are those of eager code."""
    module, x = net(training=True)
    twin = copy.deepcopy(module)
    run = compiled(twin, cache)
    for call in (module, run):
        torch.manual_seed(3)
        for _ in range(2):
            sum(each.square().mean() for each in call(x)).backward()
    return {
        "gradients": disagreement(
            [p.grad for p in module.parameters()], [p.grad for p in twin.parameters()]
        ),
        "buffers": disagreement(list(module.buffers()), list(twin.buffers())),
        "gradient strides": [p.grad.stride() for p in module.parameters()]
        == [p.grad.stride() for p in twin.parameters()],
    }


def traced(function: Any, *args: Any) -> Any:
    module = make_fx(function, tracing_mode="fake")(*args)
    module.graph.eliminate_dead_code()
    module.recompile()
    return module


def way_of(function: Any, *args: Any) -> Any:
    """Return a traced function, or, where that raises, a graph that calls it."""
    try:
        return traced(function, *args)
    except RuntimeError:
        module = traced(torch.add, *args)
        (node,) = [each for each in module.graph.nodes if each.op == "call_function"]
        node.target = function
        module.recompile()
        return module


def by_hand() -> dict[str, Any]:
    """Write a grouping by hand: a group with a view that leaves it, channels last."""

    def function(x: torch.Tensor, w: torch.Tensor) -> Any:
        y = torch.conv2d(x, w, padding=1)
        z = y.relu()
        part = z[:, 1:]
        return torch.tanh(z) + 1, part.sin(), part

    x, w = torch.randn(2, 3, 8, 8), torch.randn(8, 3, 3, 3)
    module = traced(function, x, w)
    graph = graph_of(module, "hand")
    names = [op.kind.split(".")[1] for op in graph.ops]
    at = {name: i for i, name in enumerate(names)}
    inside = tuple(i for i, name in enumerate(names) if name in ("relu", "slice", "tanh", "add"))
    kernels = [
        Kernel(ops=(at["convolution"],), layout=CHANNELS_LAST),
        Kernel(ops=inside, layout=CHANNELS_LAST),
        Kernel(ops=(at["sin"],), layout=CONTIGUOUS),
    ]
    made = built(module, graph, kernels, Wishes())
    (name,) = made.region_of.values()
    region = made.regions[name]
    before = boxed(made.module)([x, w])
    for each in made.regions.values():
        each.use(compiled_call(each))
    after = boxed(made.module)([x, w])
    expected = function(x, w)
    return {
        "node by node": disagreement(expected, before),
        "compiled": disagreement(expected, after),
        "strides": [t.stride() for t in expected[:2]] == [t.stride() for t in after[:2]],
        "outputs": len(region.values),
        "conversions": made.conversions > 0,
    }


def shared() -> list[int]:
    """Return, for results that lie in one memory, which memory each lies in as planned."""

    def function(x: torch.Tensor, w: torch.Tensor) -> Any:
        y = torch.conv2d(x, w, padding=1)
        return y, y[:, 1:3], y.view(-1), y + 1

    x, w = torch.randn(2, 3, 8, 8), torch.randn(8, 3, 3, 3)
    module = traced(function, x, w)
    graph = graph_of(module, "shared")
    kernels = [Kernel(ops=(i,), layout=CHANNELS_LAST) for i in range(len(graph.ops))]
    results = boxed(built(module, graph, kernels, Wishes()).module)([x, w])
    if disagreement(function(x, w), results):
        return []
    memory = [each.untyped_storage().data_ptr() for each in results]
    return [memory.index(each) for each in memory]


def bound_to_strides() -> list[str]:
    """Compare what takes strides for granted, behind views of a value in another layout."""

    def attention(x: torch.Tensor) -> Any:
        each = (x * 2).select(0, 1).view(6, 8, 8).transpose(0, 1).view(2, 4, 6, 8)
        return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default(each, each, each)

    def dropout(x: torch.Tensor) -> Any:
        return torch.ops.aten.native_dropout.default((x * 2).select(0, 1), 0.5, True)

    x = torch.randn(3, 6, 2, 32).bfloat16()
    found = []
    for function in (attention, dropout):
        module = traced(function, x)
        graph = graph_of(module, "bound")
        kernels = [Kernel(ops=(i,), layout=CHANNELS_LAST) for i in range(len(graph.ops))]
        made = built(module, graph, kernels, Wishes())
        results = []
        for run in (function, lambda x, made=made: boxed(made.module)([x])):
            torch.manual_seed(0)
            results.append(run(x))
        expected, result = results
        found.append(disagreement(expected, result) or f"{made.conversions} copies")
    return found


def classes() -> dict[str, list[str]]:
    """Say what some operators are to fusion and to layouts."""

    def function(x: torch.Tensor, w: torch.Tensor, state: torch.Tensor) -> Any:
        y = torch.conv2d(x, w)
        torch.ops.aten.copy_(state, y)
        kept = state * 2
        z = (y + 1).view(2, -1)
        return torch.rand_like(y), torch.softmax(z, -1), kept, torch.topk(z, 2)[0]

    args = torch.randn(2, 3, 4, 4), torch.randn(4, 3, 1, 1), torch.randn(2, 4, 4, 4)
    module = traced(function, *args)
    written = written_storages(module)
    return {
        str(node.target).split(".")[1]: [
            str(fuse_class_of(node, written)),
            str(layout_rule_of(node, written)),
        ]
        for node in module.graph.nodes
        if node.op == "call_function" and "getitem" not in str(node.target)
    }


def fallbacks(cache: str) -> dict[str, Any]:
    """See what happens where something is wrong, or cannot be done."""
    messages: list[str] = []
    log = logging.getLogger("regal.torch")
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    log.addHandler(handler)
    x = torch.randn(4)
    state = torch.zeros(4)

    def right(x: torch.Tensor, state: torch.Tensor) -> Any:
        torch.ops.aten.copy_(state, x + 1)
        return (x * 2 + torch.rand_like(x),)

    def wrong(x: torch.Tensor, state: torch.Tensor) -> Any:
        torch.ops.aten.copy_(state, x + 3)
        return (x * 2.1 + torch.rand_like(x),)

    def far(x: torch.Tensor, state: torch.Tensor) -> Any:
        state.fill_(7)
        raise RuntimeError("too far")

    found: dict[str, Any] = {}
    ways = {"wrong": wrong, "right": right, "far": far}
    for names in (["wrong"], ["wrong", "right"], ["far", "wrong", "right"]):
        settled: list[str] = []
        executor = FusedExecutor(
            traced(right, x, state),
            [Way(name, way_of(ways[name], x, state)) for name in names],
            Link(),
            name="wrong",
            settled=settled.append,
        )
        torch.manual_seed(1)
        expected = right(x, other := torch.zeros(4))[0], right(x, other)[0]
        torch.manual_seed(1)
        state.zero_()
        result = executor([x, state])[0], executor([x, state])[0]
        is_right = all(map(torch.equal, expected, result)) and torch.equal(state, other)
        found[" ".join(names)] = [is_right, *settled]

    def broken(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("no kernel\nCPU: registered\nMeta: registered")

    fused = traced(right, x, state)
    next(node for node in fused.graph.nodes if "rand_like" in node.name).target = broken
    original = traced(right, x, state)
    FusedExecutor(original, [Way("joint", fused)], Link(), name="broken")([x, state])
    found["empty"] = [tuple(each.shape) for each in drawn_inputs(traced(torch.neg, x[:0, None]))]

    def refuse(region: Any) -> Any:
        raise BackendError("there is no compiler")

    torch._dynamo.reset()
    module, image = net(training=False)
    kept = compiled_call
    setattr(regal.torch.region_times, "compiled_call", refuse)  # noqa: B010
    with torch.no_grad():
        result = compiled(copy.deepcopy(module), cache)(image)
        found["no compiler"] = disagreement(module(image), result)
        setattr(regal.torch.region_times, "compiled_call", kept)  # noqa: B010
        torch._dynamo.reset()
        run = torch.compile(
            copy.deepcopy(module),
            backend=regal.torch.backend.regal,
            options={"objective": "time", "cache": cache},
            dynamic=True,
        )
        found["symbols"] = disagreement(module(image), run(image))
    log.removeHandler(handler)
    found["said"] = [
        any(part in message for message in messages)
        for part in ("the wrong graph runs as traced", "there is no compiler")
    ]
    found["lines"] = [message for message in messages if "broken" in message]
    return found


def weights() -> dict[str, Any]:
    """Change weights in every way that there is, and convolve with their blocked forms."""
    x, weight = torch.randn(2, 8, 6, 6), nn.Parameter(torch.randn(8, 8, 3, 3))
    kept = PackedWeights([Packing((1, 1), (1, 1), (1, 1), 1, (2, 8, 6, 6))])
    rest = (None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)

    def is_right() -> bool:
        with torch.no_grad():
            (packed,) = kept(weight)
            result = packed_convolution(x, packed, *rest)
            return not disagreement(torch.conv2d(x, weight, padding=1), result)

    found = {"first": is_right(), "kept": kept(weight)[0] is kept(weight)[0]}
    weight.data[7, 7, 2, 2] += 1
    found["one element through .data"] = is_right()
    weight.data.neg_()
    found["all signs"] = is_right()
    weight.data = torch.randn(8, 8, 3, 3)
    found["other memory"] = is_right()
    for _ in range(MOST_CHANGES + 2):
        with torch.no_grad():
            weight.add_(1)
        found["every time"] = is_right()
    found["given up"] = kept(weight)[0] is weight
    return found


def remembered(folder: Path) -> dict[str, Any]:
    """Write times, break the file, and read it again."""
    times = times_at(folder)
    times.add("a", 5)
    times.add("b", 7)
    path = times.path
    assert path is not None
    with path.open("a") as file:
        file.write('["c"]\n{"d": 1}\n["e", "x"]\nnonsense\n')
    return {"known": times_at(folder).known, "none": times_at(None) == Times(path=None)}


def plan_of(cache: str) -> dict[str, Any]:
    """Return what was tried for a graph."""
    module, x = net(training=False)
    seen: dict[str, Any] = {}
    torch._dynamo.reset()  # else sizes are free

    def backend(graph: Any, inputs: Any) -> Any:
        compilation, run = compilation_of(graph, inputs, {"objective": "time", "cache": cache})
        (choice,) = compilation.faster.done.values()
        seen.update(role=choice.role, chosen=choice.chosen in choice.ns, ways=sorted(choice.ns))
        seen["better"] = choice.predicted_ns <= choice.before_ns
        return run

    with torch.no_grad():
        torch.compile(module, backend=backend)(x)
    return seen


def main() -> None:
    torch.set_num_threads(1)
    cache = sys.argv[1]
    found = {
        "inference": inference(cache),
        "training": training(cache),
        "by hand": by_hand(),
        "shared": shared(),
        "classes": classes(),
        "bound to strides": bound_to_strides(),
        "fallbacks": fallbacks(cache),
        "weights": weights(),
        "remembered": remembered(Path(cache, "times")),
        "plan": plan_of(cache),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
