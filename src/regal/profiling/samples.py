"""From samples of running times to the numbers of a profile."""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING

from regal.cost.keys import op_key
from regal.cost.profile import OpTime, Profile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from regal.graph.types import Graph, Op

# The samples of one op, in ns, the warm-up left out; with the graph or body that it belongs to.
OpSamples = tuple["Op", "Graph", "Sequence[int]"]


def middle(samples: Sequence[int]) -> int:
    """Return the mean of the middle half of the samples, rounded; at least 1.

    As robust as the median against what else the machine does, and finer than the clock where
    that counts in whole microseconds, as ONNX Runtime's and LiteRT's do.

    Args:
        samples: one or more.
    """
    ordered = sorted(samples)
    quarter = len(ordered) // 4
    half = ordered[quarter : len(ordered) - quarter]
    return max(round(sum(half) / len(half)), 1)


def spread(samples: Sequence[int]) -> int:
    """Return the distance between the quartiles of one or more samples."""
    ordered = sorted(samples)
    last = len(ordered) - 1
    return ordered[round(0.75 * last)] - ordered[round(0.25 * last)]


def without_warmup(samples: Sequence[int], warmup: int, invocations: int) -> Sequence[int]:
    """Return the samples of all but the first `warmup` of the invocations; bodies run often."""
    return samples[len(samples) * warmup // invocations :]


def profile_of(
    rows: Iterable[OpSamples],
    graphs: Sequence[Graph],
    *,
    model: str,
    runtime: str,
    threads: int,
    runs: int,
    warmup: int,
    total_ns: int,
) -> Profile:
    """Return the profile of one model on this machine's CPU.

    Op times and overhead together add up to a run without the profiler: what such a run takes
    beyond its kernels is spread over the ops of the main graph as overhead; where the kernels
    alone took longer, the profiler slowed them down, and they are scaled.

    Args:
        rows: the samples of each op that ran; of the main graph and of bodies.
        graphs: the entries of the model, the one that ran first.
        model: name of its file.
        runtime: name and version.
        threads: that ran it.
        runs: that count.
        warmup: runs before those.
        total_ns: of the fastest run without the profiler: whatever else the machine does can only
            add to it, and what it adds is no overhead of the runtime.
    """
    samples: dict[str, list[int]] = {}
    main_ns = main_ops = 0
    measured: set[int] = set()
    for op, graph, row in rows:
        samples.setdefault(op_key(op, graph), []).extend(row)
        measured.add(id(op))
        if graph is graphs[0]:
            main_ns += middle(row)
            main_ops += 1
    slowdown = max(main_ns / total_ns, 1.0) if total_ns else 1.0
    ops = [op for graph in graphs for op in _all_ops(graph)]
    missing: dict[str, int] = {}
    for op in ops:
        if id(op) not in measured:
            missing[op.kind] = missing.get(op.kind, 0) + 1
    return Profile(
        model=model,
        framework=graphs[0].framework,
        runtime=runtime,
        device_kind="cpu",
        machine=machine_facts(),
        threads=threads,
        runs=runs,
        warmup=warmup,
        overhead_ns=max(total_ns - main_ns, 0) // max(main_ops, 1),
        total_ns=total_ns,
        profiled_ns=main_ns,
        ops=len(ops),
        not_measured=missing,
        times={
            key: OpTime(
                ns=max(round(middle(row) / slowdown), 1),
                spread_ns=round(spread(row) / slowdown),
                samples=len(row),
            )
            for key, row in samples.items()
        },
    )


def machine_facts() -> Mapping[str, str]:
    """Return what a reader of a profile must know of this machine."""
    facts = {"system": f"{platform.system()} {platform.machine()}"}
    name = _processor()
    if name:
        facts["processor"] = name
    facts["cores"] = str(os.cpu_count() or 1)
    return facts


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = [line.partition(":")[2].strip() for line in file if "model name" in line]
    except OSError:
        lines = []
    return next((line for line in lines if line.isprintable()), platform.processor())


def _all_ops(graph: Graph) -> Iterable[Op]:
    for op in graph.ops:
        yield op
        for body in op.subgraphs:
            yield from _all_ops(body)
