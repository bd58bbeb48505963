"""How runs of fused graphs are judged, beside threads, dtypes, sizes; prints a JSON object."""

from __future__ import annotations

import copy
import itertools
import json
import logging
import sys
import threading
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import regal.backends.torch.fused_executor
import regal.torch.backend
import regal.torch.faster
from regal.backends.torch.agreement import disagreement
from regal.backends.torch.exact import InDouble, wide_args
from regal.backends.torch.executor import boxed
from regal.backends.torch.fuse import TRACED, Wishes, built
from regal.backends.torch.fused_executor import FusedExecutor, Link, Way
from regal.backends.torch.regions import Region, compiled_call
from regal.backends.torch.statistics import with_real_dtypes
from regal.backends.torch.trial import Probe, settled
from regal.errors import BackendError
from regal.frontends.torch.fx import graph_of
from regal.fusion.types import CONTIGUOUS, Kernel
from regal.torch.backend import compilation_of
from regal.torch.sizes import MOST, BySize
from tests.pytorch.agreement_checks import agreements, means, sums
from tests.pytorch.fused_checks import net, traced


def autocast(cache: str) -> dict[str, Any]:
    """Train with 16-bit numbers inside: 32-bit gradients are as far from exact as eager's."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    module = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    twin = copy.deepcopy(module)
    made: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        compilation, run = compilation_of(graph, inputs, {"objective": "time", "cache": cache})
        made.append(compilation.faster)
        return run

    x = torch.randn(2, 6, 32)
    with patch.object(regal.torch.faster, "better_ways", lambda *_: ["joint"]):
        for call in (module, torch.compile(twin, backend=backend)):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                result = call(x)
            result.float().square().mean().backward()
    pairs = zip(module.parameters(), twin.parameters(), strict=True)
    return {
        "chosen": [choice.chosen for choice in made[0].done.values()],
        "gradients": max(float((p.grad - q.grad).norm() / p.grad.norm()) for p, q in pairs),
    }


def doubled() -> list[bool]:
    """Compute with other precisions inside, and compare with plain doubles."""

    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = (x.half() @ w.half()).float() + torch.tensor([0.1])
        return torch.softmax(y.bfloat16(), -1, dtype=torch.float32) * torch.ones(3)

    x, w = torch.randn(2, 4), torch.randn(4, 3)
    result = InDouble(traced(function, x, w)).run(*wide_args([x, w]))
    expected = torch.softmax(x.double() @ w.double() + torch.tensor([0.1]).double(), -1)
    return [result.dtype is torch.float64, torch.allclose(result, expected, rtol=1e-12)]


def refused() -> dict[str, Any]:
    """Refuse ways of a training step on their first run; the backward graph has to follow."""
    found = {}
    name = "disagreement"
    for count in range(4):
        torch._dynamo.reset()
        left = [count]

        def some(*given: Any, left: list[int] = left) -> str:
            left[0] -= 1
            return "made up" if left[0] >= 0 else disagreement(*given)

        module, x = net(training=True)
        twin = copy.deepcopy(module)
        made: list[Any] = []

        def backend(graph: Any, inputs: Any, made: list[Any] = made) -> Any:
            options = {"objective": "time", "cache": False, "budget": 20}
            compilation, run = compilation_of(graph, inputs, options)
            made.append(compilation.faster)
            return run

        with (
            patch.object(regal.torch.faster, "better_ways", lambda *_: ["channels last", "joint"]),
            patch.object(regal.backends.torch.fused_executor, name, some),
        ):
            for call in (module, torch.compile(twin, backend=backend)):
                torch.manual_seed(3)
                for _ in range(2):
                    sum(each.square().mean() for each in call(x)).backward()
        gradients = [[p.grad for p in each.parameters()] for each in (module, twin)]
        found[str(count)] = {
            "gradients": disagreement(*gradients),  # type: ignore[arg-type]
            "buffers": disagreement(list(module.buffers()), list(twin.buffers())),
            "chosen": [choice.chosen for choice in made[0].done.values()],
            "as traced": made[0].link.has_failed,
        }
    return found


def drawn() -> bool:
    """Return whether random numbers like an image that is channels last are those of the trace."""

    def function(x: torch.Tensor) -> Any:
        return (torch.rand_like(x),)

    x = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    module = traced(function, x)
    graph = graph_of(module, "drawn")
    kernels = [Kernel(ops=(i,), layout=CONTIGUOUS) for i in range(len(graph.ops))]
    run = boxed(built(module, graph, kernels, Wishes()).module)
    torch.manual_seed(0)
    (expected,) = function(x)
    torch.manual_seed(0)
    return torch.equal(expected, run([x])[0])


def threads() -> list[str]:
    """Call from a second thread while the first run is judged."""
    x = torch.randn(4)
    right = traced(torch.sin, x)
    said: list[str] = []
    others: list[threading.Thread] = []

    def call() -> None:
        try:
            said.append(disagreement(x.sin(), executor([x])))
        except IndexError as error:
            said.append(str(error))

    def slow(*given: Any) -> str:
        if not others:
            others.append(threading.Thread(target=call))
            others[0].start()
            others[0].join(0.2)
        return disagreement(*given)

    executor = FusedExecutor(right, [Way("right", right)], Link())
    with patch.object(regal.backends.torch.fused_executor, "disagreement", slow):
        call()
        others[0].join()
    return said


def under_autocast() -> dict[str, Any]:
    """Train normalization under autocast: its statistics have the dtype of its parameters."""
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten(1), nn.Linear(288, 64), nn.LayerNorm(64)
    )
    twin = copy.deepcopy(module)
    x = torch.randn(8, 3, 8, 8)
    options = {"objective": "time", "cache": False, "compile_seconds": 0}
    torch._dynamo.reset()
    with patch.object(logging.getLogger("regal.torch"), "warning") as warning:
        for call in (
            module,
            torch.compile(twin, backend=regal.torch.backend.regal, options=options),
        ):
            for _ in range(2):
                with torch.autocast("cpu", torch.bfloat16):
                    result = call(x)
                (result.float() * x[:, 0].flatten(1)).sum().backward()
    said = [call.args[0] for call in warning.call_args_list]
    gradients = [[p.grad for p in list(each.parameters())[2:]] for each in (module, twin)]
    return {"unfused": [line for line in said if "fused" in line], "off": _largest(*gradients)}


def statistics() -> dict[str, bool]:
    """Return whether fake normalization yields the dtypes of the real one, by its dtypes."""
    aten = torch.ops.aten
    found = {}
    for half, given in itertools.product(
        (torch.float32, torch.bfloat16), (torch.float32, torch.bfloat16, None)
    ):
        x = torch.randn(4, 8, 6, 6, dtype=half)
        dtype = given or torch.float32
        w = None if given is None else torch.ones(8, dtype=dtype)
        last = None if given is None else torch.ones(6, dtype=dtype)
        state = torch.zeros(8, dtype=dtype), torch.ones(8, dtype=dtype)
        calls = {
            aten.native_layer_norm.default: (x, [6], last, last, 1e-5),
            aten.native_group_norm.default: (x, w, w, 4, 8, 36, 2, 1e-5),
            aten._native_batch_norm_legit_functional.default: (x, w, w, *state, True, 0.1, 1e-5),
            aten._native_batch_norm_legit.no_stats: (x, w, w, True, 0.1, 1e-5),
        }
        for target, args in calls.items():
            try:
                real = target(*args)
            except RuntimeError:  # parameters of half precision beside an image of 32 bits
                continue
            with FakeTensorMode(allow_non_fake_inputs=True):
                fake = with_real_dtypes(target, args, target(*args))
            name = f"{target} {half} {given}"
            found[name] = [t.dtype for t in fake] == [t.dtype for t in real]
    return found


def _largest(left: list[Any], right: list[Any]) -> float:
    """Return the largest difference of two lists of tensors, as a share of the largest element."""
    pairs = zip(left, right, strict=True)
    return max(float((a - b).abs().max() / a.abs().max()) for a, b in pairs)


def other_dtype() -> str:
    """Return what is said of a kernel that yields another dtype than its fake one."""

    def function(gradient: torch.Tensor, x: torch.Tensor, *given: torch.Tensor) -> Any:
        target = torch.ops.aten.native_group_norm_backward.default
        return target(gradient, x, *given, 4, 8, 36, 2, [True, True, True])[0]

    x = torch.randn(4, 8, 6, 6, dtype=torch.bfloat16)
    args = [x, x, torch.zeros(4, 2), torch.ones(4, 2), torch.ones(8)]
    module = traced(function, *args)
    graph = graph_of(module, "other")
    kernels = [Kernel(ops=(i,), layout=CONTIGUOUS) for i in range(len(graph.ops))]
    try:
        settled(module, graph, kernels, Wishes(), args)
    except BackendError as error:
        return str(error)
    return ""


def other_strides() -> dict[str, Any]:
    """Run a kernel that yields other strides than its fake one, and a view that they forbid."""

    def turned(x: torch.Tensor) -> torch.Tensor:
        return (x + 1).t().contiguous().t()

    x = torch.randn(4, 3)
    module = traced(lambda x: (x + 1).view(12), x)
    first, second = (node for node in module.graph.nodes if node.op == "call_function")
    for node in (first, second):
        node.meta[TRACED] = (node.name, CONTIGUOUS)
    first.target, first.args = turned, (first.args[0],)
    module.recompile()
    probe = Probe(module)
    result = probe.run(x)
    noted = {name: strides for (name, _), strides in probe.strides.items()}
    return {"noted": noted, "first": first.name, "right": result.equal((x + 1).view(12))}


def other_group() -> str:
    """Return what is said of a group whose code yields other strides than were foreseen."""
    module = traced(lambda x: (torch.relu(x),), torch.randn(2, 8, 4, 4))
    (relu,) = (node for node in module.graph.nodes if node.op == "call_function")
    value = relu.meta["val"]
    with value.fake_mode:
        last = value.contiguous(memory_format=torch.channels_last)
    try:
        compiled_call(Region(module, (last,), "other"))
    except BackendError as error:
        return str(error)
    return ""


def no_exact_result() -> str:
    """Return what is said of a graph that cannot run in double precision."""

    def right(x: torch.Tensor) -> Any:
        return x * 2, torch.mm(x, x)

    def wrong(x: torch.Tensor) -> Any:
        return x * 2, torch.mm(x, x) * 1.01

    x = torch.eye(4) + 1
    module, other = traced(right, x), traced(wrong, x)
    no_kernel = patch.object(InDouble, "run", side_effect=RuntimeError("no kernel"))
    with no_kernel, patch.object(logging.getLogger("regal.torch"), "warning") as warning:
        FusedExecutor(module, [Way("wrong", other)], Link())([x])
    return str(warning.call_args_list[0].args[-1])


def sizes(cache: str) -> dict[str, Any]:
    """Train with batches of several sizes: those that come back get a plan of their own."""
    module, _ = net(training=True)
    twin = copy.deepcopy(module)
    planned: list[int] = []

    def backend(graph: Any, inputs: Any) -> Any:
        options = {"objective": "time", "cache": cache, "budget": 20}
        _, run = compilation_of(graph, inputs, options)
        if isinstance(run, BySize):
            plan = run.planned

            def noted(args: Any) -> Any:
                planned.append(next(arg for arg in args if type(arg) is int))
                return plan(args)

            run.planned = noted
        return run

    torch._dynamo.reset()
    run = torch.compile(twin, backend=backend)
    found: dict[str, Any] = {"differences": []}
    for count in (4, 4, 2, 2, 3, 2, 4, 4):
        results = []
        for call, each in ((module, module), (run, twin)):
            torch.manual_seed(count)
            each.zero_grad()
            outputs = call(torch.randn(count, 3, 16, 16))
            sum(output.square().mean() for output in outputs).backward()
            gradients = [parameter.grad for parameter in each.parameters()]
            results.append([*outputs, *gradients, *each.buffers(), torch.rand(2)])
        expected, other = results
        found["differences"].append(disagreement(expected, other))
    found["planned"] = planned
    return found


def many_sizes() -> list[str]:
    """Call with more sizes than may have plans of their own."""
    told: list[str] = []
    run = BySize([0], lambda n: told.append(f"any {n}"), lambda args: lambda n: told.append(f"{n}"))
    for n in [*range(MOST + 1)] * 3:
        run(n)
    return told


def main() -> None:
    torch.set_num_threads(1)
    cache = sys.argv[1]
    found = {
        "drawn": drawn(),
        "autocast": autocast(cache),
        "doubled": doubled(),
        "refused": refused(),
        "threads": threads(),
        "under autocast": under_autocast(),
        "statistics": statistics(),
        "other dtype": other_dtype(),
        "other strides": other_strides(),
        "other group": other_group(),
        "no exact result": no_exact_result(),
        "sizes": sizes(cache),
        "many sizes": many_sizes(),
        "agreements": agreements(),
        "means": means(),
        "sums": sums(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
