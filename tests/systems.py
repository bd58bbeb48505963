"""Small systems and random costs for tests with several devices."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

from regal.cost.types import GraphCost
from regal.devices.types import Device, Link, System

if TYPE_CHECKING:
    from regal.graph.types import Graph


def device(name: str, kind: str = "cpu", memory: int | None = None) -> Device:
    """Return a device; tests give the times of ops themselves."""
    return Device(
        name=name,
        kind=kind,
        flops_per_s={"": 1e9},
        bytes_per_s=1e9,
        launch_ns=1,
        memory_bytes=memory,
    )


def system_of(
    n_devices: int, *, latency: int = 2, gigabytes_per_s: float = 1.0, memory: int | None = None
) -> System:
    """Return equal devices d0, d1, ... and equal links; 1 GB/s is 1 byte per ns."""
    pairs = [(a, b) for a in range(n_devices) for b in range(n_devices) if a != b]
    link = Link(latency_ns=latency, bytes_per_s=gigabytes_per_s * 1e9)
    return System(
        name=f"{n_devices} devices",
        devices=tuple(device(f"d{i}", memory=memory) for i in range(n_devices)),
        links=dict.fromkeys(pairs, link),
    )


def random_system(seed: int, n_devices: int) -> System:
    """Return devices with tiny memories and unequal links."""
    rng = random.Random(seed)
    system = system_of(n_devices)
    return replace(
        system,
        devices=tuple(
            replace(each, memory_bytes=rng.choice([None, 3, 8])) for each in system.devices
        ),
        links={
            pair: Link(latency_ns=rng.randint(0, 2), bytes_per_s=rng.choice([1e9, 5e8]))
            for pair in system.links
        },
        has_contention=rng.random() < 0.7,
        capacity_counts_live=rng.random() < 0.8,
    )


def cost_of(graph: Graph, system: System, ns: int = 1) -> GraphCost:
    """Return costs in which every op takes `ns` everywhere."""
    n = len(graph.ops)
    return GraphCost(op_ns=((ns,) * len(system.devices),) * n, sources=("file",) * n)


def random_cost(graph: Graph, system: System, seed: int) -> GraphCost:
    """Return costs of 1 to 4 ns."""
    rng = random.Random(seed)
    rows = tuple(tuple(rng.randint(1, 4) for _ in system.devices) for _ in graph.ops)
    return GraphCost(op_ns=rows, sources=("file",) * len(rows))
