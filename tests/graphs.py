"""Small random graphs with every feature of the representation; sizes are tiny on purpose."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from regal.graph.builder import GraphBuilder

if TYPE_CHECKING:
    from regal.graph.types import Graph


def random_graph(seed: int, n_ops: int, *, alignment: int = 1, concats: bool = False) -> Graph:
    """Return a graph of `n_ops` ops with views, in-place choices, workspaces, control edges."""
    rng = random.Random(seed)
    g = GraphBuilder(f"random{seed}")
    values = [g.input(f"x{i}", rng.randint(1, 3)) for i in range(rng.randint(1, 2))]
    sizes = dict.fromkeys(values, 0)
    for value in values:
        sizes[value] = g.size_of(value)
    for i in range(n_ops):
        inputs = rng.sample(values, min(len(values), rng.randint(1, 2)))
        if concats and len(inputs) == 2 and rng.random() < 0.5:
            first, second = (sizes[value] for value in inputs)
            out = g.op("Concat", inputs, [first + second], parts=[(0, 0), (1, first)])
        elif rng.random() < 0.15:
            out = [g.view("View", inputs[0])]
        else:
            size = sizes[inputs[0]] if rng.random() < 0.4 else rng.randint(0, 4)
            more = [rng.randint(1, 3)] if rng.random() < 0.2 else []
            out = g.op(
                "Op",
                inputs,
                [size, *more],
                workspace=rng.choice([0, 0, 0, 2]),
                after=[rng.randrange(i)] if i and rng.random() < 0.2 else [],
                in_place=[(k, 0) for k in range(len(inputs)) if rng.random() < 0.6],
            )
        for value in out:
            values.append(value)
            sizes[value] = g.size_of(value)
    outputs = rng.sample(values[-3:], rng.randint(1, min(2, len(values))))
    return g.build(outputs=sorted(outputs), alignment=alignment)


def two_branches() -> Graph:
    """Return x -> a -> c, x -> b -> d, add(c, d), with a parameter of 100 bytes read by b."""
    g = GraphBuilder("branches")
    x = g.input("x", 8)
    w = g.parameter("w", 100)
    a = g.op("A", [x], [16], name="a")
    b = g.op("B", [x, w], [16], name="b", workspace=4)
    c = g.op("C", a, [8], name="c")
    d = g.op("D", b, [8], name="d")
    y = g.op("Add", [*c, *d], [8], name="add", in_place=[(0, 0)])
    return g.build(outputs=y)
