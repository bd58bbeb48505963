"""Time the kernels of a graph where they stand: with the caches as their neighbors leave them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from regal.backends.torch.fuse import TRACED, written_inputs
from regal.backends.torch.kernels import (
    KERNELS,
    PACKED,
    PRODUCT,
    can_pack,
    kernels_of,
    target_of,
)
from regal.backends.torch.layouts import has_two_layouts
from regal.backends.torch.packed import check_ns, packing_of
from regal.backends.torch.trial import Probe, at_depth, clock_ns, written_copied
from regal.fusion.types import CHANNELS_LAST
from regal.torch.times import key_of_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from torch.fx import GraphModule, Node

    from regal.backends.torch.fuse import Wishes
    from regal.torch.times import Times

    Run = Callable[..., Any]

PASSES = 3  # through the graph per kernel; the best one of a call counts
LONG_NS = 300_000_000  # a pass that takes longer is the only one behind that which warms up


def kernel_times(
    module: GraphModule,
    nodes: Mapping[str, Node],
    wishes: Wishes,
    args: list[Any],
    times: Times,
) -> Iterator[tuple[str, int, dict[str, int]]]:
    """Yield node, layout and kernel -> ns for all that is known after measuring.

    A kernel that runs again and again on the same tensors finds them in the caches; in a graph it
    does not. So the graph runs as a whole, PASSES times per kind of kernel, and each call is
    timed once in a pass.

    Args:
        module: as built, every op alone; its nodes say which node of the trace they compute.
        nodes: of the trace, by name.
        wishes: which placeholders hold parameters.
        args: real ones, like the placeholders.
        times: known ones; new ones are added until its time is up.
    """
    rows = [(node, nodes[node.meta[TRACED][0]]) for node in _traced(module)]
    keys: dict[tuple[Node, str], str] = {}
    for kernel in KERNELS:
        asked = {new: old for new, old in rows if _has(new, old, kernel, wishes)}
        keys |= {
            (new, kernel): key_of_call(old, kernel, new.args, new.kwargs)
            for new, old in asked.items()
        }
        unknown = {new: old for new, old in asked.items() if keys[new, kernel] not in times.known}
        if unknown and times.is_over:
            times.was_cut = True
        elif unknown:
            found = _passes(module, kernel, unknown, keys, args, times)
            for key, ns in found.items():
                times.add(key, ns)
    for new, old in rows:
        calls = {}
        for kernel in KERNELS:
            known = times.known.get(keys.get((new, kernel), ""))
            if known is not None:
                calls[kernel] = known
        if PACKED in calls:
            calls[PACKED] += check_ns(old.args[1].meta["val"])
        yield *new.meta[TRACED], calls


def _passes(
    module: GraphModule,
    kernel: str,
    wanted: Mapping[Node, Node],
    keys: Mapping[tuple[Node, str], str],
    args: list[Any],
    times: Times,
) -> dict[str, int]:
    """Return key of a call -> its time in ns."""
    given = [node for node in module.graph.nodes if node.op == "placeholder"]
    real = dict(zip(given, args, strict=True))
    calls: dict[Node, tuple[str, Run]] = {}
    for new, old in wanted.items():
        run = target_of(old, kernel)
        if kernel == PACKED:
            packing = packing_of(old.args, old.args[0].meta["val"].shape)
            run = partial(_on_blocked, run, packing.packed(real[new.args[1]]))
        calls[new] = keys[new, kernel], run
    found, was_cut = mean_times(module, calls, args, lambda: times.is_over)
    times.was_cut = times.was_cut or was_cut
    return found


def _on_blocked(run: Run, blocked: torch.Tensor, *values: Any, **named: Any) -> Any:
    return run(values[0], blocked, *values[2:], **named)


def mean_times(
    module: GraphModule,
    calls: Mapping[Node, tuple[str, Run]],
    args: list[Any],
    is_over: Callable[[], bool],
    least: int = 1,
) -> tuple[dict[str, int], bool]:
    """Return key of a call -> its time in ns where it stands, and whether time was up.

    That is the mean of the calls with this key in a pass through the graph, in the pass where it
    is the least: equal calls take longer here than there, by what lies in the caches and by the
    numbers that they get.

    Args:
        module: as built.
        calls: node -> key, and what to run and time before it.
        args: real ones, like the placeholders.
        is_over: tells whether time is up.
        least: passes that take place at any rate; the first one warms up, and counts if no other
            one follows.
    """
    spent: dict[str, list[int]] = {}

    def timed(node: Node, values: tuple[Any, ...], named: dict[str, Any]) -> None:
        if node not in calls:
            return
        key, run = calls[node]
        started = clock_ns()
        run(*values, **named)
        spent.setdefault(key, []).append(clock_ns() - started)

    best: dict[str, int] = {}
    written = written_inputs(module)
    with torch.no_grad():
        for number in range(PASSES + 1):
            if number >= least and is_over():
                return best, True
            if number == 1:
                best.clear()  # the first pass warms up: code that is loaded, primitives made
            spent.clear()
            started = clock_ns()
            given = written_copied(args, written)
            at_depth(number, partial(Probe(module, timed).run, *given))
            for key, ns in spent.items():
                mean = sum(ns) // len(ns)
                best[key] = min(best.get(key, mean), mean)
            is_long = clock_ns() - started > LONG_NS
            if number and is_long:
                break
    return best, False


def _traced(module: GraphModule) -> list[Node]:
    return [node for node in module.graph.nodes if TRACED in node.meta]


def _has(new: Node, old: Node, kernel: str, wishes: Wishes) -> bool:
    if kernel not in (PACKED, PRODUCT):
        return kernel in kernels_of(old)
    if kernel == PRODUCT and kernel not in kernels_of(old):
        return False
    if kernel == PACKED and not can_pack(old, wishes.held):
        return False
    _, layout = new.meta[TRACED]
    return layout == CHANNELS_LAST or not has_two_layouts(new.meta.get("val"))
