"""What the backend's parts promise, one function each; prints a JSON object."""

from __future__ import annotations

import gc
import json
import logging
import random
import sys
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

import regal.torch
from regal.backends.torch.executor import Executor
from regal.backends.torch.judge import require_same_meaning
from regal.backends.torch.rewrite import decisions_of, rewritten
from regal.backends.torch.tracker import MemoryTracker
from regal.errors import PlanError, UsageError
from regal.torch.backend import Compilation
from regal.torch.backend import regal as backend
from regal.torch.cache import key_of
from regal.torch.limit import Point, first_below
from regal.torch.planning import planned
from regal.torch.settings import Settings, settings_of

if TYPE_CHECKING:
    from collections.abc import Sequence

FLOATS = 4096
BYTES = 4 * FLOATS


def traced(function: Any, *args: Any) -> torch.fx.GraphModule:
    return make_fx(function, tracing_mode="fake")(*args)


def order_of(module: torch.fx.GraphModule, *names: str) -> torch.fx.GraphModule:
    """Return a copy whose nodes `names` have changed places, as a wrong plan would have them."""
    copy = torch.fx.GraphModule(module, torch.fx.Graph())
    value: dict[Any, Any] = {}
    nodes = list(module.graph.nodes)
    rows = sorted(i for i, node in enumerate(nodes) if node.name in names)
    moved = [next(n for n in nodes if n.name == name) for name in names]
    for row, node in zip(rows, moved, strict=True):
        nodes[row] = node
    for node in nodes:
        value[node] = copy.graph.node_copy(node, lambda n: value[n])
        value[node].name = node.name
    return copy


def verdict(module: torch.fx.GraphModule, other: torch.fx.GraphModule, **over: int) -> str:
    try:
        require_same_meaning(module, other, over)
    except PlanError as error:
        return str(error)
    return ""


def judged() -> dict[str, str]:
    def writes(x: torch.Tensor, y: torch.Tensor) -> Any:
        before = x.sin()
        x.copy_(y)
        return before, x.cos()

    def draws(x: torch.Tensor) -> Any:
        return torch.rand_like(x), torch.randn_like(x)

    def chooses(x: torch.Tensor) -> Any:
        return torch.cond(x.sum() > 0, draws, draws, (x,))

    def reads(x: torch.Tensor) -> Any:
        first = x.sin()
        return first.cos(), first.exp()

    x = torch.zeros(FLOATS)
    choosing = traced(chooses, x)
    swapped = order_of(choosing)
    body = order_of(choosing.true_graph_0, "randn_like", "rand_like")
    swapped.true_graph_0, swapped.false_graph_0 = body, choosing.false_graph_0
    writing, drawing, reading = traced(writes, x, x.clone()), traced(draws, x), traced(reads, x)
    return {
        "same": verdict(reading, reading),
        "read before write": verdict(writing, order_of(writing, "copy_", "sin")),
        "random in a body": verdict(choosing, swapped),
        "random": verdict(drawing, order_of(drawing, "randn_like", "rand_like")),
        "free to move": verdict(reading, order_of(reading, "exp", "cos")),
        "argument needed later": verdict(reading, reading, cos=0),
        "input overwritten": verdict(reading, reading, sin=0),
        "result overwritten": verdict(reading, reading, exp=0),
    }


def overwrites() -> dict[str, Any]:
    """Return the peak of a chain: every result may take the memory of its argument."""

    def chain(x: torch.Tensor) -> torch.Tensor:
        return ((x + 1).relu() * 2).sigmoid().exp()

    run = regal.torch.optimize(chain, cache=False)
    x = torch.randn(FLOATS)
    with torch.no_grad():
        run(x)
        with MemoryTracker() as tracker:
            found = run(x)
    return {"peak": tracker.peak_bytes, "equal": torch.equal(found, chain(x))}


def reorders() -> dict[str, Any]:
    """Return peaks of four wide branches that are summed up: eager runs them side by side."""

    def branches(x: torch.Tensor) -> torch.Tensor:
        wide = [x.repeat(8).view(8, -1) * i for i in range(1, 5)]
        return torch.stack([w.sum(0) for w in wide])

    run = regal.torch.optimize(branches, cache=False)
    x = torch.randn(FLOATS)
    run(x)
    peaks = []
    for call in (branches, run):
        with MemoryTracker() as tracker:
            call(x)
        peaks.append(tracker.peak_bytes)
    return {"eager": peaks[0], "regal": peaks[1]}


def tracked() -> dict[str, int]:
    with MemoryTracker() as tracker:
        first = torch.zeros(FLOATS)
        second = first.view(-1)[1:]
        third = first + 1
        del first, third
        fourth = torch.zeros(FLOATS // 2)
    live = tracker.live_bytes
    del second, fourth
    return {"peak": tracker.peak_bytes, "live": live, "after": tracker.live_bytes}


class Cache(nn.Module):
    """Keys of the past, one row of which is written at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(64, 64))

    def forward(self, x: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        self.keys.index_copy_(0, row, x)
        return (self.keys.view(-1).relu() + 1).view(64, 64).sum(0) + self.keys.view(-1)[:64]


def updated() -> dict[str, Any]:
    """Return the peak of a call that writes one row of a large buffer."""
    eager, mine = Cache(), Cache()
    run = regal.torch.optimize(mine, cache=False)
    with torch.no_grad():
        for row in range(3):
            x, at = torch.randn(1, 64), torch.tensor([row])
            expected = eager(x, at)
            with MemoryTracker() as tracker:
                found = run(x, at)
    equal = torch.equal(found, expected) and torch.equal(eager.keys, mine.keys)
    return {"peak": tracker.peak_bytes, "equal": equal}


def limited() -> dict[str, Any]:
    """Return the measured peaks of a training step without and with a memory limit."""
    module = nn.Sequential(
        *(
            nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
            for _ in "1234"
        )
    )
    x = torch.randn(2, 4, 32, 32)
    peaks = []
    for limit in (None, 1):
        torch._dynamo.reset()
        run = regal.torch.optimize(module, cache=False, memory_limit=limit)
        run(x).sum().backward()
        with MemoryTracker() as tracker:
            run(x).sum().backward()
        peaks.append(tracker.peak_bytes)
    return {"free": peaks[0], "limited": peaks[1]}


def monotone() -> list[list[list[int]]]:
    """Return limit, recomputed groups and peak below rising limits, for peaks that jump."""
    found = []
    for seed in range(40):
        draw = random.Random(seed)
        n_cheap, total = sorted((draw.randrange(80), draw.randrange(1, 80)))
        peaks = [1_000 - 5 * count + draw.randrange(300) for count in range(total + 1)]

        def attempt(count: int, peaks: Sequence[int] = peaks) -> Point:
            return Point(recomputed=count, peak_bytes=peaks[count], time_ns=count)

        points = [
            (limit, first_below(limit, n_cheap, total, attempt)) for limit in range(400, 1_400, 10)
        ]
        found.append([[limit, point.recomputed, point.peak_bytes] for limit, point in points])
    return found


def frontier() -> list[list[int]]:
    """Return groups, peak and time of all that was tried for a limit that nothing meets, twice."""
    module = nn.Sequential(
        *(nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.LayerNorm(8), nn.Tanh()) for _ in range(6))
    )
    made: list[Compilation] = []

    def compile_one(module: Any, inputs: Any) -> Any:
        made.append(Compilation(Settings(cache=False, memory_limit=1)))
        return made[-1].captured(module, inputs)

    for _ in range(2):
        torch._dynamo.reset()
        torch.compile(module, backend=compile_one)(torch.randn(64, 8)).sum().backward()
    first, second = ([[p.recomputed, p.peak_bytes, p.time_ns] for p in m.frontier] for m in made)
    return first if first == second else []


def handed_over() -> dict[str, Any]:
    """Return what is alive of the gradients that the engine of autograd hands over, at the end."""
    alive: list[bool] = []
    roles: list[str] = []

    class Watched(Compilation):
        def backward(self, module: Any, inputs: Any) -> Any:
            run = super().backward(module, inputs)
            roles.extend(self.roles(module, "backward").values())

            def watched(args: list[Any]) -> Any:
                gradient = weakref.ref(args[-1].untyped_storage())
                result = run(args)
                alive.append(gradient() is not None)
                return result

            watched._boxed_call = True  # type: ignore[attr-defined]
            return watched

    def compile_one(module: Any, inputs: Any) -> Any:
        return Watched(Settings(cache=False)).captured(module, inputs)

    run = torch.compile(nn.Linear(8, 8), backend=compile_one)
    for _ in range(2):
        run(torch.randn(4, 8)).square().mean().backward()
    return {"alive": alive, "role": roles[-1]}


def released() -> list[bool]:
    """Return per objective whether the first input is alive after the caller let it go."""
    found = []
    for objective in ("memory", "balanced"):
        torch._dynamo.reset()
        run = regal.torch.optimize(nn.Linear(8, 8), cache=False, objective=objective)
        x = torch.randn(4, 8)
        run(x).sum().backward()
        memory = weakref.ref(x.untyped_storage())
        del x
        gc.collect()
        found.append(memory() is not None)
    return found


def cached(folder: Path) -> dict[str, Any]:
    def branches(x: torch.Tensor) -> Any:
        wide = [x.repeat(8).view(8, -1) * i for i in range(1, 5)]
        return torch.stack([w.sum(0) for w in wide])

    module = traced(branches, torch.zeros(FLOATS))
    settings = Settings(cache=folder)

    def again() -> Any:
        return planned(module, "g", {}, settings)

    first = again()
    (file,) = folder.iterdir()
    data = file.read_bytes()
    second = again()
    file.write_bytes(data[:20])
    broken = again()
    rewritten_after_break = file.read_bytes() == data
    document = json.loads(data)
    document["order"].reverse()
    file.write_text(json.dumps(document))
    illegal = again()
    files = len(list(folder.iterdir()))
    other = planned(module, "g", {}, Settings(cache=folder, seconds=None))
    return {
        "stored": [each.was_stored for each in (first, second, broken, illegal)],
        "peaks": [each.plan.peak_bytes for each in (first, second, broken, illegal)],
        "rewritten": [rewritten_after_break, file.read_bytes() == data],
        "files": files,
        "stored for another time": other.was_stored,
        "same key": key_of(first.graph, 1) == key_of(second.graph, 1),
        "other key": key_of(first.graph, 1) == key_of(first.graph, 2),
    }


def falls_back() -> dict[str, Any]:
    """Run a graph that cannot be planned, and one whose kernels share memory unseen."""
    records: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("regal.torch").addHandler(handler)

    def chain(x: torch.Tensor) -> torch.Tensor:
        return (x + 1).relu() * 2

    x = torch.randn(8)
    unplanned = Compilation(Settings(cache=False)).inference(torch.fx.symbolic_trace(chain), [x])
    first = torch.equal(torch.as_tensor(unplanned([x])), chain(x))

    def shared(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        return y.cos() * 2 + y

    module = traced(shared, x)
    for node in module.graph.nodes:
        if node.name == "cos":  # a kernel that shares memory, although its fake one does not
            node.target = torch.ops.aten._unsafe_view.default
            node.args = (node.args[0], [8])
    found = planned(module, "g", {}, Settings(cache=False))
    over = decisions_of(module, found.graph, found.plan).overwritten
    run = Executor(module, rewritten(module, found.graph, found.plan), over)
    results = [torch.as_tensor(run([x])) for _ in range(2)]
    second = "mul" in over and all(torch.equal(each, 3 * (x + 1)) for each in results)
    return {"equal": [first, second], "reasons": records}


def refused() -> list[str]:
    found = []
    for options in (
        {"bugdet": 1},
        {"budget": 0},
        {"objective": "speed"},
        {"cache": 3},
        {"seconds": "soon"},
        {"seed": None},
        {"cache": ""},
    ):
        try:
            settings_of(options)
        except UsageError as error:
            found.append(str(error))
    return found


def by_name() -> dict[str, Any]:
    """Compile by the name of the backend, as users do."""
    from torch._dynamo.backends.registry import list_backends, lookup_backend

    def chain(x: torch.Tensor) -> torch.Tensor:
        return (x + 1).relu() * 2

    run = torch.compile(chain, backend="regal", options={"cache": False, "budget": 10})
    x = torch.randn(8)
    return {
        "listed": "regal" in list_backends(),
        "same": lookup_backend("regal") is backend,
        "equal": torch.equal(run(x), chain(x)),
    }


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    found = {
        "judged": judged(),
        "overwrites": overwrites(),
        "reorders": reorders(),
        "tracked": tracked(),
        "updated": updated(),
        "limited": limited(),
        "monotone": monotone(),
        "frontier": frontier(),
        "handed over": handed_over(),
        "released": released(),
        "cached": cached(folder),
        "falls back": falls_back(),
        "refused": refused(),
        "by name": by_name(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
