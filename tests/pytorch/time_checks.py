"""How calls are timed where they stand in a graph, one function each; prints a JSON object."""

from __future__ import annotations

import inspect
import json
import platform
import resource
from typing import Any
from unittest.mock import patch

import torch

from regal.backends.torch.fuse import Wishes, built
from regal.backends.torch.trial import at_depth, drawn_inputs, keep_freed_memory
from regal.frontends.torch.fx import graph_of
from regal.fusion.types import CHANNELS_LAST, CONTIGUOUS, FuseClass, Kernel, LayoutRule
from regal.torch.measured import Measured
from regal.torch.probing import LONG_NS, mean_times
from regal.torch.region_times import compile_regions, key_of, slow_regions, time_groups
from regal.torch.times import Times
from tests.pytorch.fused_checks import traced


def means() -> dict[str, Any]:
    """Time two equal calls by a clock that says what they take."""
    module = traced(lambda x: x.relu().relu(), torch.randn(2))
    args = drawn_inputs(module)
    calls = {
        node: ("relu", node.target) for node in module.graph.nodes if node.op == "call_function"
    }

    def timed(took: list[int], *, is_over: bool, least: int) -> Any:
        passes = zip(took[::2], took[1::2], strict=True)
        clock = iter([now for a, b in passes for now in (0, 0, a, a, a + b, a + b)])
        with patch("regal.torch.probing.clock_ns", lambda: next(clock)):
            return mean_times(module, calls, args, lambda: is_over, least)

    return {
        "all passes": timed([1, 1, 10, 30, 5, 39, 20, 26], is_over=False, least=1),
        "long ones": timed([1, 1, LONG_NS, 2], is_over=False, least=1),
        "no time": timed([7, 9], is_over=True, least=1),
        "one at any rate": timed([1, 1, 10, 30], is_over=True, least=2),
    }


def regions() -> dict[str, Any]:
    """Time a group where it stands, between copies of layouts."""

    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.tanh(torch.conv2d(x, w, padding=1).relu())

    module = traced(function, torch.randn(2, 3, 8, 8), torch.randn(8, 3, 3, 3))
    graph = graph_of(module, "regions")
    kernels = [
        Kernel(ops=(0,), layout=CHANNELS_LAST),
        Kernel(ops=(1, 2), layout=CONTIGUOUS),
    ]
    made = built(module, graph, kernels, Wishes())
    args = drawn_inputs(module)
    times = Times(path=None)
    time_groups(made, args, times)
    none = dict(times.known)
    compile_regions(made.regions.values(), {}, float("inf"))
    time_groups(made, args, times)
    (group,) = made.region_of.values()
    key = key_of(made.regions[group])
    known = dict.fromkeys(times.known, 10)
    chosen = [slow_regions(made, kernels, _alone(ns), Times(path=None, known=known))
              for ns in (4, 6)]  # fmt: skip
    before = dict(times.known)
    time_groups(made, args, times)
    return {
        "before they are compiled": none,
        "copies": made.conversions,
        "keys": list(before) == [key],
        "positive": before[key] > 0,
        "known ones": times.known == before,
        "slow": [sorted(each) for each in chosen],
    }


def _alone(ns: int) -> Any:
    """Return what is known of three ops that take so long each."""
    return Measured(
        alone_ns=((ns, ns),) * 3,
        wishes=Wishes(),
        classes=(FuseClass.OPAQUE, FuseClass.POINTWISE, FuseClass.POINTWISE),
        rules=(LayoutRule.AGNOSTIC,) * 3,
    )


def new_pages() -> list[int]:
    """Return how many pages some runs get anew after memory was asked to be kept."""
    keep_freed_memory()
    found = []
    for _ in range(4):
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
        first, second = torch.ones(2 << 20), torch.ones(3 << 20)
        del first, second
        found.append(resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before)
    return found


def depths() -> list[int]:
    """Return how many frames some trials add."""

    def frames() -> int:
        return len(inspect.stack(0))

    found = [at_depth(number, frames) for number in range(4)]
    return [each - found[0] for each in found]


def main() -> None:
    torch.set_num_threads(1)
    found = {
        "means": means(),
        "regions": regions(),
        "has glibc": platform.libc_ver()[0] == "glibc",
        "new pages": new_pages(),
        "depths": depths(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
