"""Graphs that look like networks, as native order problems; buffers that fill an arena tightly."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from regal import _native

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(slots=True)
class Sketch:
    """A graph under construction: one tensor per op, in file order."""

    bytes_of: list[int] = field(default_factory=list)
    reads: list[list[int]] = field(default_factory=list)
    workspace: list[int] = field(default_factory=list)

    def op(self, reads: list[int], size: int, workspace: int = 0) -> int:
        self.reads.append(sorted(set(reads)))
        self.bytes_of.append(size)
        self.workspace.append(workspace)
        return len(self.reads) - 1

    def problem(self) -> _native.OrderProblem:
        """Return the problem; tensors without readers are outputs."""
        n = len(self.reads)
        edges = [(a, b) for b, reads in enumerate(self.reads) for a in reads]
        touches = [(b, a) for a, b in edges] + [(v, v) for v in range(n)]
        read = {a for a, _ in edges}
        verdict, native = _native.build_problem(
            np.array(edges, dtype=np.int64).reshape(-1, 2),
            np.array(touches, dtype=np.int64).reshape(-1, 2),
            np.array(self.bytes_of, dtype=np.int64),
            np.array(self.workspace, dtype=np.int64),
            np.zeros(0, dtype=np.int64),
            np.array([v for v in range(n) if v not in read], dtype=np.int64),
            np.zeros((0, 3), dtype=np.int64),
        )
        if verdict.fault != _native.ProblemFault.NONE:
            raise SystemExit(f"synthetic graph is broken at {verdict.guilty}")
        return native


def layered(n_ops: int, *, width: int = 32, seed: int = 0) -> Sketch:
    """Layers of `width` ops; each op reads 1-3 tensors of the two layers before."""
    rng = random.Random(seed)
    sketch = Sketch()
    for v in range(n_ops):
        layer = v // width
        low = max(0, (layer - 2) * width)
        reads = (
            [rng.randrange(low, layer * width) for _ in range(rng.randint(1, 3))] if layer else []
        )
        sketch.op(reads, rng.randint(1, 64) * 1024)
    return sketch


def cells(n_ops: int, *, seed: int = 0) -> Sketch:
    """NASNet-like: cells of 5 blocks over the two cells before."""
    rng = random.Random(seed)
    sketch = Sketch()
    size = 262_144
    before = last = sketch.op([], size)
    cell = 0
    while len(sketch.reads) < n_ops - 24:
        cell += 1
        if cell % 12 == 0 and size > 4096:
            size //= 2
        adjusted = sketch.op([before], size)
        entry = sketch.op([last], size)
        states = [adjusted, entry]
        used: set[int] = set()
        for _ in range(5):
            parts = []
            for _ in range(2):
                source = rng.choice(states)
                used.add(source)
                mid = sketch.op([source], size)
                parts.append(sketch.op([mid], size))
            states.append(sketch.op(parts, size))
        loose = [s for s in states[2:] if s not in used]
        before, last = last, sketch.op(loose, size * len(loose))
    sketch.op([last, before], 1024)
    return sketch


def random_wiring(n_ops: int, *, nodes: int = 32, seed: int = 0) -> Sketch:
    """RandWire-like stages of `nodes`: a ring of 4 neighbors, 3 of 4 wires moved."""
    rng = random.Random(seed)
    sketch = Sketch()
    size = 131_072
    last = sketch.op([], size)
    stage = 0
    while stage == 0 or len(sketch.reads) < n_ops - 3 * nodes - 4:
        stage += 1
        if stage % 6 == 0 and size > 4096:
            size //= 2
        wires: set[tuple[int, int]] = set()
        for i in range(nodes):
            for step in (1, 2):
                j = (i + step) % nodes
                if rng.random() < 0.75:
                    j = rng.choice([k for k in range(nodes) if k != i])
                wires.add((min(i, j), max(i, j)))
        made: list[int] = []
        for i in range(nodes):
            sources = [made[a] for a, b in sorted(wires) if b == i]
            merged = sketch.op(sources or [last], size)
            made.append(sketch.op([sketch.op([merged], size)], size))
        ends = [made[i] for i in range(nodes) if not any(a == i for a, _ in wires)]
        last = sketch.op(ends or [made[-1]], size)
    sketch.op([last], 1024)
    return sketch


def training(n_ops: int, *, seed: int = 0) -> Sketch:
    """Forward, backward and update of a chain with skips: long lives."""
    rng = random.Random(seed)
    sketch = Sketch()
    layers = max(2, n_ops // 4)
    forward = [sketch.op([], 65_536)]
    for layer in range(layers):
        reads = [forward[-1]]
        if layer % 3 == 2:
            reads.append(forward[-3])
        forward.append(sketch.op(reads, rng.randint(8, 64) * 1024))
    gradient = sketch.op([forward[-1]], sketch.bytes_of[forward[-1]])
    for layer in reversed(range(layers)):
        weight = sketch.op([gradient, forward[layer]], rng.randint(1, 128) * 1024)
        sketch.op([weight], 0)
        gradient = sketch.op([gradient, forward[layer + 1]], sketch.bytes_of[forward[layer]])
    return sketch


FAMILIES = {
    "layered": layered,
    "cells": cells,
    "wiring": random_wiring,
    "training": training,
}


def write_puzzle(folder: Path, n_buffers: int, *, seed: int = 0) -> Path:
    """Return a CSV file of about `n_buffers` that fill 1 MiB at every step, without a gap.

    A rectangle of steps x KiB is cut in two again and again, at the same bytes over all steps or at
    the same step over all bytes; the pieces lose their places.
    """
    rng = random.Random(seed)
    pieces = [(0, 50 * n_buffers, 1_024)]  # first step, end, KiB
    while len(pieces) < n_buffers:
        # Large pieces are cut first; where both ways are possible, a coin decides.
        low, high, size = pieces.pop(
            max(
                rng.sample(range(len(pieces)), k=min(8, len(pieces))),
                key=lambda i: (pieces[i][1] - pieces[i][0]) * pieces[i][2],
            )
        )
        if size > 1 and (rng.random() < 0.5 or high - low < 2):
            cut = rng.randint(1, size - 1)
            pieces += [(low, high, cut), (low, high, size - cut)]
        else:
            cut = rng.randint(low + 1, high - 1)
            pieces += [(low, cut, size), (cut, high, size)]
    rng.shuffle(pieces)
    path = folder / f"puzzle_{n_buffers}.csv"
    rows = [f"{i},{low},{high},{size * 1024}" for i, (low, high, size) in enumerate(pieces)]
    path.write_text("\n".join(["id,lower,upper,size", *rows]) + "\n")
    return path
