"""Run graphs on drawn inputs: what their kernels take, and which strides they really yield."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Interpreter, Node
from torch.utils._pytree import tree_leaves, tree_map

from regal.backends.torch.fuse import TRACED
from regal.backends.torch.layouts import same_strides

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch.fx import GraphModule

    Strides = tuple[int, ...]


def drawn_inputs(module: GraphModule) -> list[Any]:
    """Return tensors like the placeholders of a graph: numbers that no kernel chokes on.

    Integers are 0, which is an index of everything; floats keep their size through layers.
    """
    generator = torch.Generator().manual_seed(0)
    return [
        drawn(node.meta.get("val"), generator)
        for node in module.graph.nodes
        if node.op == "placeholder"
    ]


def drawn(value: Any, generator: torch.Generator) -> Any:
    """Return a real tensor for a fake one; anything else as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    made = torch.empty_strided(
        value.shape, value.stride(), dtype=value.dtype, device=value.device
    )
    if not value.is_floating_point():
        return made.zero_()
    if value.dim() < 2:
        return made.uniform_(0.5, 1.5, generator=generator)
    width = max(1, value[0].numel())
    return made.normal_(0, min(1.0, width**-0.5), generator=generator)


class Probe(Interpreter):
    """Runs a graph node by node, times every call, and notes strides that were not foreseen."""

    def __init__(self, module: GraphModule, seen: Callable[[Node, int], None] | None) -> None:
        """Take a graph, and who is told what a node took, in ns; None: nothing is timed."""
        super().__init__(module, garbage_collect_values=True)
        self.extra_traceback = False
        self.strides: dict[str, tuple[Strides | None, ...]] = {}
        self._seen = seen

    def run_node(self, n: Node) -> Any:
        """Run a node."""
        if n.op != "call_function":
            return super().run_node(n)
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        result = self._timed(n, args, kwargs) if self._seen else n.target(*args, **kwargs)  # type: ignore[operator]
        if TRACED in n.meta:
            self._compare(n, result)
        return result

    def _timed(self, node: Node, args: Any, kwargs: Any) -> Any:
        started = time.perf_counter_ns()
        result = node.target(*args, **kwargs)  # type: ignore[operator]  # a call
        if self._seen is not None:
            self._seen(node, time.perf_counter_ns() - started)
        return result

    def _compare(self, node: Node, result: Any) -> None:
        reals, fakes = tree_leaves(result), tree_leaves(node.meta.get("val"))
        differs = False
        found: list[Strides | None] = []
        for real, fake in zip(reals, fakes, strict=False):
            if not isinstance(real, torch.Tensor) or not isinstance(fake, torch.Tensor):
                found.append(None)
                continue
            found.append(tuple(real.stride()))
            differs = differs or not same_strides(real, fake.stride())
        if differs:
            self.strides[node.meta[TRACED]] = tuple(found)


def copied(args: list[Any]) -> list[Any]:
    """Return copies of tensors, with their strides, in memory of their own."""
    return tree_map(lambda e: e.detach().clone() if isinstance(e, torch.Tensor) else e, args)  # type: ignore[no-any-return]


def best_ns(run: Callable[[], object], repeats: int) -> int:
    """Return the shortest of some runs."""
    best = 1 << 62
    for _ in range(repeats):
        started = time.perf_counter_ns()
        run()
        best = min(best, time.perf_counter_ns() - started)
    return best
