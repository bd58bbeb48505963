"""Run graphs on drawn inputs: what their kernels take, and which strides they really yield."""

from __future__ import annotations

import time
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import Interpreter, Node
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from regal.backends.torch.fuse import TRACED, built, written_inputs
from regal.backends.torch.layouts import same_strides, with_strides
from regal.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from torch.fx import GraphModule

    from regal.backends.torch.fuse import Built, Wishes
    from regal.fusion.types import Kernel
    from regal.graph.types import Graph

    Strides = tuple[int, ...]
    Before = Callable[[Node, tuple[Any, ...], dict[str, Any]], None]

BLOCK_BYTES = 31 << 20
DEPTHS, DEPTH_STEP = 128, 37  # frames of about 128 bytes: a chunk of the stack in all
ROUNDS = 8  # a stride that was not foreseen changes what follows


def drawn_inputs(module: GraphModule, examples: Sequence[Any] = ()) -> list[Any]:
    """Return tensors like the placeholders of a graph: numbers that no kernel chokes on.

    Integers and truths are those of the examples: what they index or mask is as usual then.
    Elsewhere integers are 0, which is an index of everything, and truths are true. Floats keep
    their size through layers.

    Args:
        module: its placeholders have fake tensors.
        examples: what the graph was captured with, one per placeholder; others are not looked at.
    """
    generator = torch.Generator().manual_seed(0)
    given = [node for node in module.graph.nodes if node.op == "placeholder"]
    rows = examples if len(examples) == len(given) else [None] * len(given)
    return [
        copied_tensor(example)
        if _is_like(example, node.meta.get("val"))
        else drawn(node.meta.get("val"), generator)
        for node, example in zip(given, rows, strict=True)
    ]


def _is_like(example: object, value: object) -> bool:
    """Return whether an example is a real tensor of integers of the size of a fake one."""
    return (
        isinstance(example, torch.Tensor)
        and not isinstance(example, FakeTensor)
        and isinstance(value, torch.Tensor)
        and not value.is_floating_point()
        and (example.shape, example.stride(), example.dtype)
        == (value.shape, value.stride(), value.dtype)
    )


def drawn(value: Any, generator: torch.Generator) -> Any:
    """Return a real tensor for a fake one; anything else as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    flat = torch.empty(extent_of(value), dtype=value.dtype, device=value.device)
    if not value.is_floating_point():
        flat.fill_(value.dtype is torch.bool)
    elif value.dim() < 2:
        flat.uniform_(0.5, 1.5, generator=generator)
    else:
        width = max(1, prod(value.shape[1:]))
        flat.normal_(0, min(1.0, width**-0.5), generator=generator)
    return flat.as_strided(value.shape, value.stride())


def extent_of(value: torch.Tensor) -> int:
    """Return how many elements lie between the first and the last one of a tensor."""
    if not value.numel():
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(value.shape, value.stride(), strict=True))


class Probe(Interpreter):
    """Runs a graph node by node, and notes strides that were not foreseen."""

    def __init__(self, module: GraphModule, before: Before | None = None) -> None:
        """Take a graph, and who is told of every call before it runs: node, arguments."""
        super().__init__(module, garbage_collect_values=True)
        self.extra_traceback = False
        self.strides: dict[tuple[str, int], tuple[Strides | None, ...]] = {}
        self._before = before

    def run_node(self, n: Node) -> Any:
        """Run a node.

        Raises:
            BackendError: its result has another dtype than was foreseen.
        """
        if n.op != "call_function":
            return super().run_node(n)
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        if self._before is not None:
            self._before(n, args, kwargs)
        result = n.target(*args, **kwargs)
        return self._as_foreseen(n, result) if TRACED in n.meta else result

    def _as_foreseen(self, node: Node, result: Any) -> Any:
        """Return a result with the strides that were foreseen, and note where it had others.

        What follows was built for those: a view of the real ones may be refused.
        """
        reals, spec = tree_flatten(result)
        fakes = tree_leaves(node.meta.get("val"))
        differs = False
        found: list[Strides | None] = []
        for real, fake in zip(reals, fakes, strict=False):
            if not isinstance(real, torch.Tensor) or not isinstance(fake, torch.Tensor):
                found.append(None)
                continue
            if real.dtype is not fake.dtype and real.numel():  # generated code would read past it
                raise BackendError(f"node '{node.name}' yields {real.dtype}, not {fake.dtype}")
            found.append(tuple(real.stride()))
            differs = differs or not same_strides(real, fake.stride())
        if not differs:
            return result
        self.strides[node.meta[TRACED]] = tuple(found)
        wanted = [
            None if strides is None else fake.stride()
            for strides, fake in zip(found, fakes, strict=False)
        ]
        wanted += [None] * (len(reals) - len(wanted))
        return tree_unflatten(with_strides(reals, wanted), spec)


def settled(
    module: GraphModule, graph: Graph, kernels: Sequence[Kernel], wishes: Wishes, args: list[Any]
) -> tuple[Built, Wishes]:
    """Return a graph as `built` returns it, whose kernels yield the strides that it foresees.

    Some kernels yield other strides than their fake ones; then it is built again, knowing that.

    Args:
        module: as traced.
        graph: was read from it.
        kernels: of a plan.
        wishes: what was seen so far; the second result knows more.
        args: real ones, see `drawn_inputs`; they are not changed.

    Raises:
        BackendError: the graph cannot be built, its strides do not settle, or its dtypes are wrong.
    """
    written = written_inputs(module)
    for _ in range(ROUNDS):
        made = built(module, graph, kernels, wishes)
        probe = Probe(made.module)
        with torch.no_grad():
            probe.run(*written_copied(args, written))
        if not probe.strides:
            return made, wishes
        wishes = replace(wishes, observed={**wishes.observed, **probe.strides})
    raise BackendError("the strides of results do not settle")


def written_copied(args: list[Any], written: Collection[int]) -> list[Any]:
    """Return the arguments of a graph; those that it writes to are copies.

    Args:
        args: one per placeholder.
        written: positions of those, see `written_inputs`.
    """
    return [copied_tensor(arg) if i in written else arg for i, arg in enumerate(args)]


def copied_tensor(value: Any) -> Any:
    """Return a copy of a tensor with its strides; anything else as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    made = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
    return made.copy_(value.detach())


def keep_freed_memory() -> None:
    """Make the C library keep memory that is freed, up to 64 MiB, instead of giving it back.

    Writing to new pages takes up to 30 times as long as writing to kept ones, and whether a run
    gets new ones depends on all that the process freed before: equal runs differed by a third.
    glibc keeps twice as much as the largest block of less than 32 MiB that was freed; other
    libraries are not changed. The block is never touched.
    """
    torch.empty(BLOCK_BYTES, dtype=torch.uint8)


def at_depth(number: int, run: Callable[[], Any]) -> Any:
    """Return what `run` returns behind more frames of the Python stack, by the number of a trial.

    CPython keeps frames in chunks of 16 KiB. Where the calls of a graph cross from one to the next,
    each of them gets a new chunk and gives it back: 7 us a call where that was measured, a quarter
    of what RegNetY takes. Who calls decides that, and how many values a graph has. Trials at
    several depths tell what a graph takes elsewhere.
    """

    def behind(frames: int) -> Any:
        return behind(frames - 1) if frames else run()

    return behind(DEPTH_STEP * number % DEPTHS)


def clock_ns() -> int:
    """Return the time in ns: of this thread where kernels run on it alone, else of the wall.

    The time of a thread leaves out what other processes take from it.
    """
    alone = torch.get_num_threads() == 1
    return time.thread_time_ns() if alone else time.perf_counter_ns()


def best_ns(run: Callable[[], object], repeats: int) -> int:
    """Return the shortest of some runs."""
    best = 1 << 62
    for _ in range(repeats):
        started = clock_ns()
        run()
        best = min(best, clock_ns() - started)
    return best
