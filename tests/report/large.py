"""Stories of large graphs, put together directly: the slow reference would take minutes."""

from __future__ import annotations

import random

from regal.graph.builder import GraphBuilder
from regal.report.story import Clock, Held, Place, Run, Sent, Side, Story, curve_of

KINDS = ("MatMul", "Add", "Relu", "Mul", "Softmax", "Tanh", "Sigmoid", "ConcatV2", "Split", "Cast")


def large_story(n_ops: int, prefix: str = "", n_devices: int = 4) -> Story:
    """Return a chain with long-lived values: on one device, and then dealt to several."""
    rng = random.Random(n_ops)
    g = GraphBuilder("large", framework="tensorflow")
    value = g.input("x", 1000)
    for i in range(n_ops):
        kind = rng.choice(KINDS)
        size = 1000 * rng.randint(1, 2000)
        (value,) = g.op(kind, [value], [size], name=f"{prefix}{kind.lower()}_{i}")
    graph = g.build(outputs=[value])
    lengths = [1000 + rng.randrange(200_000) for _ in graph.ops]
    lives = [1 + rng.choice((1, 1, 2, 30)) for _ in graph.ops]
    sizes = [graph.tensors[op.outputs[0]].bytes for op in graph.ops]
    sides = [_side(lengths, lives, sizes, count) for count in (1, n_devices)]
    return Story(
        graph=graph,
        clock=Clock.NS,
        places=tuple(
            Place(name=f"gpu{d}", kind="gpu", memory_bytes=200_000_000) for d in range(n_devices)
        ),
        sources=("roofline",) * n_ops,
        peak_bound=3_000_000,
        capacity_counts_live=True,
        before=_padded(sides[0], n_devices),
        after=sides[1],
    )


def _side(lengths: list[int], lives: list[int], sizes: list[int], n_devices: int) -> Side:
    """Return op i on device i mod `n_devices`; each runs its ops one right after the other."""
    free = [0] * n_devices
    runs, held, sent = [], [], []
    for i, length in enumerate(lengths):
        device = i % n_devices
        start, free[device] = free[device], free[device] + length
        runs.append(Run(device=device, step=i // n_devices, start=start, end=free[device]))
        end = free[device] + lives[i] * 50_000
        held.append(
            Held(
                storage=i + 1,
                op=i,
                device=device,
                bytes=sizes[i],
                start=start,
                end=end,
                offset=(i % 37) * 2_000_000,
                room=sizes[i],
            )
        )
        if n_devices > 1 and i % 3 == 0:
            target = (device + 1) % n_devices
            end = free[device] + length // 2
            sent.append(
                Sent(tensor=i + 1, source=device, target=target, start=free[device], end=end)
            )
    by_device = [[h for h in held if h.device == d] for d in range(n_devices)]
    return Side(
        runs=tuple(runs),
        sent=tuple(sent),
        held=tuple(held),
        curves=tuple(curve_of(parts) for parts in by_device),
        arena_bytes=(76_000_000,) * n_devices,
        resident_bytes=(1_000_000,) * n_devices,
    )


def _padded(side: Side, n_devices: int) -> Side:
    """Return a side of one device with more devices that do nothing."""
    more = n_devices - 1
    return Side(
        runs=side.runs,
        sent=side.sent,
        held=side.held,
        curves=side.curves + (curve_of(()),) * more,
        arena_bytes=side.arena_bytes + (0,) * more,
        resident_bytes=side.resident_bytes + (0,) * more,
    )
