"""What plans on disk promise; prints a JSON object.

`python -m tests.pytorch.remembered_checks FOLDER` is run twice: what the first process chose is
read by the second one, which then damages the files in every way that it can think of.
"""

from __future__ import annotations

import copy
import json
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import torch
from torch import nn

import regal.backends.torch.fused_executor
import regal.torch.faster
import regal.torch.fusing
from regal.backends.torch.agreement import disagreement
from regal.backends.torch.fuse import Wishes
from regal.frontends.torch.fx import graph_of
from regal.torch.backend import compilation_of
from regal.torch.fusing import quick_ns
from regal.torch.remembered import path_of
from regal.torch.settings import Settings
from tests.pytorch.fused_checks import net, traced

if TYPE_CHECKING:
    from collections.abc import Callable

    from regal.torch.faster import Choice

messages: list[str] = []


class Images(nn.Module):
    """Large enough that no layout throughout and no graph as traced is the fastest."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(8, 32, 3, padding=1)
        self.second = nn.Conv2d(32, 32, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x)
        y = (y.sigmoid() * y + 1).tanh() * y.exp()
        return (self.second(y).sigmoid() * y).softmax(1)


def compiled(
    module: nn.Module, folder: Path, inputs: tuple[Any, ...], **options: Any
) -> tuple[list[Choice], Any]:
    """Return what was chosen for the graphs of a module, and what a call returns."""
    torch._dynamo.reset()
    made: list[Any] = []
    given = {"objective": "time", "cache": str(folder), "compile_seconds": 600, **options}

    def backend(graph: Any, inputs: Any) -> Any:
        compilation, run = compilation_of(graph, inputs, given)
        made.append(compilation)
        return run

    result = torch.compile(module, backend=backend)(*inputs)
    if isinstance(result, tuple):
        sum(each.square().mean() for each in result).backward()
    return [choice for each in made for choice in each.faster.done.values()], result


def images() -> tuple[Images, torch.Tensor]:
    torch.manual_seed(0)
    return Images().eval(), torch.randn(2, 8, 24, 24)


def chosen(folder: Path) -> dict[str, Any]:
    """Compile for inference and training, and say whether plans were read from files."""
    module, x = images()
    with torch.no_grad():
        choices, result = compiled(module, folder / "inference", (x,))
        found = {"inference": disagreement(module(x), result)}
    trained, image = net(training=True)
    twin = copy.deepcopy(trained)
    torch.manual_seed(3)
    more, _ = compiled(twin, folder / "training", (image,))
    torch.manual_seed(3)
    sum(each.square().mean() for each in trained(image)).backward()
    expected, gradients = ([p.grad for p in each.parameters()] for each in (trained, twin))
    found["training"] = disagreement(expected, gradients)
    choices += more
    return {
        **found,
        "stored": [choice.was_stored for choice in choices],
        "roles": [choice.role for choice in choices],
        "chosen": [choice.chosen for choice in choices],
        "ns": [dict(choice.ns) for choice in choices],
        "groups": [choice.groups for choice in choices],
        "files": sorted(path.name for path in folder.rglob("plan-*.json")),
    }


def _steps(change: Callable[[list[Any]], Any]) -> Callable[[Any], Any]:
    def changed(document: Any) -> Any:
        change(document["steps"])
        return document

    return changed


def _joined(steps: list[Any]) -> None:
    for step in steps:
        step["ops"] = [name for name in step["ops"] if name != "sigmoid"]
        step["ops"] += ["sigmoid"] if "convolution" in step["ops"] else []
    steps[:] = [step for step in steps if step["ops"]]


def _strides(document: Any) -> Any:
    document["strides"] = [
        {"op": "convolution", "layout": layout, "strides": [[1, 2, 3, 4]]}
        for layout in ("contiguous", "channels last")
    ]
    return document


DAMAGES: dict[str, Callable[[Any], Any]] = {
    "no object": lambda document: [document],
    "empty": lambda document: {},
    "another schema": lambda document: {**document, "schema": "regal.torch-order/1"},
    "another PyTorch": lambda d: {**d, "made by": {**d["made by"], "torch": "2.12.0"}},
    "another processor": lambda d: {**d, "made by": {**d["made by"], "processor": "abacus"}},
    "no time": lambda document: {**document, "ns": {}},
    "time that is no number": lambda d: {**d, "ns": dict.fromkeys(d["ns"], "soon")},
    "an op too few": _steps(lambda steps: steps.pop()),
    "an op twice": _steps(lambda steps: steps.append(steps[0])),
    "an unknown op": _steps(lambda steps: steps[0].update(ops=["convolution_77"])),
    "a step without ops": _steps(lambda steps: steps[0].update(ops=[])),
    "the order reversed": _steps(lambda steps: steps.reverse()),
    "a convolution in a group": _steps(_joined),
    "an unknown kernel": _steps(lambda steps: steps[0].update(kernels={"convolution": "magic"})),
    "a layout that is none": _steps(lambda steps: steps[0].update(layout="sideways")),
    "strides that are none": lambda document: {**document, "strides": [{"op": "convolution"}]},
}
# Strides are seen in a run: wrong ones are put right.
HARMLESS: dict[str, Callable[[Any], Any]] = {"wrong strides": _strides}


def damaged(folder: Path) -> dict[str, Any]:
    """Damage the file of a graph, compile again, and say what came of it."""
    module, x = images()
    with torch.no_grad():
        expected = module(x)
    (path,) = folder.glob("plan-*.json")
    whole = path.read_bytes()
    broken = {"half a file": whole[: len(whole) // 2], "noise": bytes(range(256))}
    for name, change in {**DAMAGES, **HARMLESS}.items():
        broken[name] = json.dumps(change(json.loads(whole))).encode()
    found = {}
    for name, data in broken.items():
        path.write_bytes(data)
        messages.clear()
        with torch.no_grad():
            (choice,), result = compiled(module, folder, (x,), budget=20)
        found[name] = {
            "difference": disagreement(expected, result),
            "stored": choice.was_stored,
            "said": [each.replace(str(path), "P") for each in messages if "is ignored" in each],
            "written anew": path.read_bytes() != data,
        }
        path.write_bytes(whole)
    return found


def given_up(folder: Path) -> dict[str, Any]:
    """Compile with a plan whose results are said to be wrong: it is forgotten."""
    module, x = images()
    (path,) = folder.glob("plan-*.json")
    kept = disagreement
    name = "disagreement"
    setattr(regal.backends.torch.fused_executor, name, lambda *given: "made up")
    with torch.no_grad():
        (choice,), result = compiled(module, folder, (x,), budget=20)
        difference = kept(module(x), result)
    setattr(regal.backends.torch.fused_executor, name, kept)
    return {"stored": choice.was_stored, "difference": difference, "is left": path.exists()}


def cut_short(folder: Path) -> bool:
    """Return whether a plan is written for which there was no time to compile."""
    module, x = images()
    with torch.no_grad():
        compiled(module, folder, (x,), budget=20, compile_seconds=1e-9)
    return any(folder.glob("plan-*.json"))


def cut_short_behind(folder: Path) -> list[str]:
    """Return the roles of what is written where time was short for the backward graph's trial."""
    trained, image = net(training=True)
    short = patch.object(
        regal.torch.faster, "quick_ns", lambda *given: (quick_ns(*given)[0], False)
    )
    with short:
        compiled(trained, folder, (image,), budget=20)
    return [json.loads(path.read_bytes())["graph"] for path in folder.glob("plan-*.json")]


def names(folder: Path) -> dict[str, bool]:
    """Say whether graphs that differ in one thing have other files."""

    def path(
        function: Any, x: torch.Tensor, wishes: Wishes, behind: Any = None, **options: Any
    ) -> Path | None:
        module = traced(function, x)
        settings = Settings(objective="time", **options)
        return path_of(folder, module, graph_of(module, "any"), wishes, settings, behind)

    x = torch.randn(4, 6)
    plain = Wishes()
    first = path(lambda x: x * 2 + 1, x, plain)
    ones = [traced(function, x) for function in (lambda g: g * 2, lambda g: g * 3)]
    backward = [path(lambda x: x * 2 + 1, x, plain, each) for each in ones]
    with torch.backends.mkldnn.flags(enabled=False):
        without_onednn = path(lambda x: x * 2 + 1, x, plain)
    torch.use_deterministic_algorithms(True)
    deterministic = path(lambda x: x * 2 + 1, x, plain)
    torch.use_deterministic_algorithms(False)
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"
    less_precise = path(lambda x: x * 2 + 1, x, plain)
    torch.backends.mkldnn.matmul.fp32_precision = "none"
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    more_threads = path(lambda x: x * 2 + 1, x, plain)
    torch.set_num_threads(threads)
    return {
        "afterwards": path(lambda x: x * 2 + 1, x, plain) == first,
        "backward graph": len({first, *backward}) == 3,
        "oneDNN": without_onednn != first,
        "deterministic": deterministic != first,
        "precision": less_precise != first,
        "threads": more_threads != first,
        "equal": path(lambda x: x * 2 + 1, x, plain) == first,
        "constant": path(lambda x: x * 3 + 1, x, plain) != first,
        "strides": path(lambda x: x * 2 + 1, torch.randn(6, 4).t(), plain) != first,
        "dtype": path(lambda x: x * 2 + 1, x.int(), plain) != first,
        "seed": path(lambda x: x * 2 + 1, x, plain, seed=1) != first,
        "free outputs": path(lambda x: x * 2 + 1, x, Wishes(free_outputs=frozenset({0}))) != first,
    }


def decide_without_a_clock() -> None:
    """Have the searched plan chosen with all its groups, however busy the machine is."""
    setattr(regal.torch.faster, "better_ways", lambda *given: ["joint"])  # noqa: B010
    setattr(regal.torch.fusing, "slow_regions", lambda *given: set())  # noqa: B010
    setattr(regal.torch.fusing, "MEASURE_SECONDS", 600.0)  # noqa: B010


def main() -> None:
    torch.set_num_threads(1)
    decide_without_a_clock()
    folder = Path(sys.argv[1])
    log = logging.getLogger("regal.torch")
    log.setLevel(logging.INFO)
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    log.addHandler(handler)
    is_second = folder.exists() and any(folder.rglob("plan-*.json"))
    found: dict[str, Any] = {"plans": chosen(folder)}
    if is_second:
        one = folder / "damaged"
        module, x = images()
        with torch.no_grad():
            compiled(module, one, (x,), budget=20)
        found["damaged"] = damaged(one)
        found["given up"] = given_up(one)
        found["cut short"] = cut_short(folder / "cut")
        found["cut short behind"] = cut_short_behind(folder / "behind")
        found["names"] = names(folder)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
