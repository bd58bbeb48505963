"""Compile the groups of a plan, each kind once, and find those that do not pay."""

from __future__ import annotations

import logging
import subprocess
import time
from typing import TYPE_CHECKING, Any

from regal.backends.torch.regions import compiled_call
from regal.backends.torch.trial import clock_ns
from regal.errors import RegalError, summary_of
from regal.torch.probing import mean_times

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from regal.backends.torch.fuse import Built
    from regal.backends.torch.regions import Call, Region
    from regal.fusion.types import Kernel
    from regal.torch.measured import Measured
    from regal.torch.times import Times

log = logging.getLogger("regal.torch")

SECONDS = 1.0  # for the groups of a graph, of which each is timed once at any rate
# What Inductor and the C++ compiler raise where they cannot compile a group, or are not there.
NOT_COMPILED = (
    RegalError,
    RuntimeError,
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    TypeError,
    ValueError,
    OSError,
    subprocess.SubprocessError,
)


def compile_regions(
    regions: Iterable[Region], calls: dict[str, Call | None], deadline: float
) -> int:
    """Return how many regions were not reached; the others run as compiled code from now on.

    Those that are not reached, or cannot be compiled, go node by node.

    Regions of one key are compiled once; PyTorch keeps the code on disk.

    Args:
        regions: of a graph.
        calls: key of a region -> its call, or None where it cannot be compiled; grows.
        deadline: time.monotonic() after which nothing more is compiled.
    """
    late = 0
    for region in regions:
        if region.key not in calls:
            if time.monotonic() >= deadline:
                late += 1
                continue
            calls[region.key] = _compiled(region)
        call = calls[region.key]
        if call is not None:
            region.use(call)
    if late:
        log.info("no time is left to compile %d groups or copies: they run op by op", late)
    return late


def slow_regions(
    built: Built, kernels: Sequence[Kernel], found: Measured, times: Times
) -> set[tuple[int, ...]]:
    """Return the groups that take longer as one region than their ops one by one.

    Those that could not be compiled are among them.

    Args:
        built: a graph whose groups were timed, see `time_groups`.
        kernels: of it.
        found: what ops take alone.
        times: known ones.
    """
    slow = set()
    for kernel in kernels:
        if len(kernel.ops) < 2:
            continue
        name = built.region_of.get(kernel.ops)
        if name is None:
            continue
        region = built.regions[name]
        apart = sum(found.alone_ns[op][kernel.layout] for op in kernel.ops)
        if not region.is_compiled or times.known[key_of(region)] >= apart:
            slow.add(kernel.ops)
    return slow


def time_groups(built: Built, args: list[Any], times: Times) -> None:
    """Note what compiled groups take where they stand, if that was never measured.

    Args:
        built: a graph.
        args: real ones, like the placeholders.
        times: known ones; new ones are added.
    """
    groups = set(built.region_of.values())
    calls = {}
    for node in built.module.graph.nodes:
        if node.name not in groups:
            continue
        region = built.regions[node.name]
        if region.is_compiled and key_of(region) not in times.known:
            calls[node] = key_of(region), region
    if not calls:
        return
    stop = clock_ns() + int(SECONDS * 1e9)
    found, _ = mean_times(built.module, calls, args, lambda: clock_ns() >= stop, least=2)
    for key, ns in found.items():
        times.add(key, ns)


def key_of(region: Region) -> str:
    """Return under which key the time of a region is known."""
    return f"region-{region.key[:24]}"


def _compiled(region: Region) -> Call | None:
    try:
        return compiled_call(region)
    except NOT_COMPILED as error:
        log.warning("a group runs op by op: %s", summary_of(error))
        return None
