"""Systems to train for: numbers of devices, speeds, links and memories drawn at random."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from regal.devices.types import Device, Link, System
from regal.graph.memory import counted_storages, parameter_bytes, state_bytes, steps_of

if TYPE_CHECKING:
    from regal.graph.types import Graph

COUNTS = (2, 2, 2, 3, 4, 8)  # of devices; most published results are for two
FLOPS = (1e10, 1e14)  # per second and device: a small CPU, a large accelerator
MOST_RATIO = 8.0  # between two devices of a system
INTENSITY = (4.0, 200.0)  # operations per byte at which a device is in balance
LAUNCH_NS = (200, 20_000)
LATENCY_NS = (500, 100_000)
LINK_BYTES_PER_S = (1e8, 3e11)
TIGHT = (0.55, 1.5)  # memory of all devices, in multiples of what one device needs
# The same with room enough: of 17 limited systems of TIGHT for valid graphs, 10 had no schedule
# that a short search found to fit, and a run that does not fit is no result to compare.
ROOMY = (1.2, 3.0)


def random_system(
    seed: int, graph: Graph | None = None, tight: tuple[float, float] = TIGHT
) -> System:
    """Return devices, links and, for half of the seeds, memory limits.

    Args:
        seed: decides everything.
        graph: what is planned; without it there are no limits. Limits may be too tight: that is
            a case to learn from, too.
        tight: the least and the largest memory of all devices together, see `TIGHT`.

    Cost: O(tensors + ops).
    """
    rng = random.Random(f"system {seed}")
    count = rng.choice(COUNTS)
    is_equal = rng.random() < 0.4
    base = _between(rng, *FLOPS)
    intensity = _between(rng, *INTENSITY)
    launch = round(_between(rng, *LAUNCH_NS))
    is_limited = rng.random() < 0.5
    limit = None
    if graph is not None and is_limited:
        limit = max(round(rng.uniform(*tight) * needed_bytes(graph) / count), 1)
    devices = []
    for i in range(count):
        speed = base if is_equal else base * _between(rng, 1.0 / MOST_RATIO, 1.0)
        share = 1.0 if is_equal else rng.uniform(0.5, 1.5)
        devices.append(
            Device(
                name=f"device{i}",
                kind="cpu" if i == 0 or is_equal else "gpu",
                flops_per_s={"": speed},
                bytes_per_s=speed / intensity,
                launch_ns=launch,
                memory_bytes=None if limit is None else max(round(limit * share), 1),
            )
        )
    latency = round(_between(rng, *LATENCY_NS))
    bandwidth = _between(rng, *LINK_BYTES_PER_S)
    links = {}
    for a in range(count):
        for b in range(count):
            if a != b:
                factor = 1.0 if is_equal else _between(rng, 0.5, 2.0)
                links[a, b] = Link(latency_ns=latency, bytes_per_s=bandwidth * factor)
    return System(name=f"random {seed}", devices=tuple(devices), links=links)


def needed_bytes(graph: Graph) -> int:
    """Return what one device needs to run `graph` in file order: peak, parameters and state."""
    sizes = counted_storages(graph)
    changes: dict[int, int] = {}
    for storage, (first, last) in steps_of(graph, range(len(graph.ops))).items():
        changes[first] = changes.get(first, 0) + sizes[storage]
        changes[last + 1] = changes.get(last + 1, 0) - sizes[storage]
    live = peak = 0
    for step in sorted(changes):
        live += changes[step]
        peak = max(peak, live)
    return peak + parameter_bytes(graph) + state_bytes(graph)


def _between(rng: random.Random, low: float, high: float) -> float:
    """Return a number whose logarithm is uniform."""
    return float(low * (high / low) ** rng.random())
