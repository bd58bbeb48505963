"""Graphs that no one trained: random topologies with the sizes and work of real ops.

The topologies are those of published work on scheduling: an undirected random graph, its edges
oriented along an order (Erdos-Renyi, Watts-Strogatz, Barabasi-Albert, stochastic block), and
three that look more like networks: layers, series-parallel, randomly wired stages.

Source: Paliwal et al. 2020, arXiv:1905.02494, appendix on synthetic graphs.
"""

from __future__ import annotations

import math
import random
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from regal.graph.types import Graph, Op, Role, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Edges = set[tuple[int, int]]  # (earlier node, later node)

FEWEST_OPS, MOST_OPS = 50, 1_500
# Share of the ops, and mean and deviation of the logarithm of their operations, over 150 real
# graphs of this data set; views and the like, which cost nothing, are left out.
KINDS: Final = {
    "pointwise": (0.52, 9.4, 3.3),
    "conv": (0.15, 16.3, 2.8),
    "matmul": (0.13, 17.1, 3.5),
    "norm": (0.11, 12.8, 1.6),
    "copy": (0.07, 0.0, 0.0),
    "reduce": (0.02, 10.4, 2.7),
}
# Logarithms of the bytes of results and weights, measured on the same graphs. The deviation of
# results is that within one graph, about half of that over all graphs.
RESULT_BYTES = (11.3, 1.7)
WEIGHT_BYTES = (11.0, 2.5)
WEIGHTED = frozenset({"conv", "matmul", "norm"})
LARGEST_LOG = 24.0  # e^24 is 26 GB or as many operations


def synthetic_graph(family: str, seed: int, name: str, ops: int = 0) -> Graph:
    """Return a graph of a family; the seed decides its edges, kinds, bytes, work, and its size.

    Nodes that read no other read the input of the graph; those that no other reads are outputs.

    Args:
        family: one of `FAMILIES`.
        seed: decides everything.
        name: of the graph.
        ops: about how many; 0: the seed decides it, too.

    Cost: O(n^2) for n ops.
    """
    rng = random.Random(f"synthetic {family} {seed}")
    n = round(FEWEST_OPS * (MOST_OPS / FEWEST_OPS) ** rng.random())
    n = ops or n
    edges = FAMILIES[family](rng, n)
    n = max(b for _, b in edges) + 1
    return _graph_of(rng, n, edges, name)


def erdos_renyi(rng: random.Random, n: int) -> Edges:
    """Return edges between any two nodes with one chance; 2 to 5 per node on average."""
    chance = rng.uniform(2.0, 5.0) / n
    return _connected(n, {(a, b) for b in range(n) for a in range(b) if rng.random() < chance})


def watts_strogatz(rng: random.Random, n: int) -> Edges:
    """Return a ring whose edges were rewired at random (Watts & Strogatz 1998)."""
    near, chance = rng.choice((1, 2)), rng.uniform(0.1, 0.75)
    edges = set()
    for a in range(n):
        for step in range(1, near + 1):
            b = rng.randrange(n) if rng.random() < chance else (a + step) % n
            if a != b:
                edges.add((min(a, b), max(a, b)))
    return _connected(n, edges)


def barabasi_albert(rng: random.Random, n: int) -> Edges:
    """Return edges that prefer nodes with many edges (Barabasi & Albert 1999)."""
    each = rng.choice((1, 2, 3))
    ends = [0]  # every node once per edge, so that a draw prefers nodes with many
    edges = set()
    for b in range(1, n):
        for a in {rng.choice(ends) for _ in range(each)}:
            edges.add((a, b))
            ends += [a, b]
    return _connected(n, edges)


def stochastic_block(rng: random.Random, n: int) -> Edges:
    """Return edges that are likely inside a block and rare between blocks."""
    blocks = rng.choice((3, 4, 6))
    block = [rng.randrange(blocks) for _ in range(n)]
    inside, between = rng.uniform(4.0, 8.0) * blocks / n / 2, rng.uniform(0.2, 1.0) / n
    return _connected(
        n,
        {
            (a, b)
            for b in range(n)
            for a in range(b)
            if rng.random() < (inside if block[a] == block[b] else between)
        },
    )


def layered(rng: random.Random, n: int) -> Edges:
    """Return layers of nodes that read one to three nodes of the layers just before."""
    width = rng.randint(2, 12)
    layer: list[list[int]] = []
    node = 0
    while node < n:
        size = min(max(1, round(rng.gauss(width, width / 3))), n - node)
        layer.append(list(range(node, node + size)))
        node += size
    edges = set()
    for i in range(1, len(layer)):
        near = layer[i - 1] + (layer[i - 2] if i > 1 and rng.random() < 0.3 else [])
        for b in layer[i]:
            edges |= {(a, b) for a in rng.sample(near, min(len(near), rng.choice((1, 1, 2, 3))))}
    return _connected(n, edges)


def series_parallel(rng: random.Random, n: int) -> Edges:
    """Return what grows from one edge by putting nodes into edges and edges beside edges."""
    edges = [(0, 1)]
    nodes = 2
    while nodes < n:
        i = rng.randrange(len(edges))
        a, b = edges[i]
        if rng.random() < 0.55:
            edges[i : i + 1] = [(a, nodes), (nodes, b)]
        else:  # beside it, with a node in it: two edges between the same nodes are one
            edges += [(a, nodes), (nodes, b)]
        nodes += 1
    return _ordered(nodes, edges)


def random_wiring(rng: random.Random, n: int) -> Edges:
    """Return stages of rewired rings, each read by the next through one node (Xie et al. 2019)."""
    stages = rng.choice((3, 4, 5))
    edges: Edges = set()
    begin = 0
    for _ in range(stages):
        size = max(n // stages - 1, 4)
        own = {(a + begin + 1, b + begin + 1) for a, b in watts_strogatz(rng, size)}
        read = {b for _, b in own}
        used = {a for a, _ in own}
        nodes = range(begin + 1, begin + 1 + size)
        end = begin + 1 + size
        edges |= own | {(begin, node) for node in nodes if node not in read}
        edges |= {(node, end) for node in nodes if node not in used}
        begin = end
    return edges


FAMILIES: Mapping[str, Callable[[random.Random, int], Edges]] = MappingProxyType(
    {
        "erdos-renyi": erdos_renyi,
        "watts-strogatz": watts_strogatz,
        "barabasi-albert": barabasi_albert,
        "stochastic-block": stochastic_block,
        "layered": layered,
        "series-parallel": series_parallel,
        "random-wiring": random_wiring,
    }
)


def _connected(n: int, edges: Edges) -> Edges:
    """Return the edges, and one from the node before for every node that has none."""
    touched = {node for edge in edges for node in edge}
    return edges | {(b - 1, b) for b in range(1, n) if b not in touched}


def _ordered(n: int, edges: list[tuple[int, int]]) -> Edges:
    """Return the edges with the nodes numbered so that edges lead upwards."""
    waits = [0] * n
    after: list[list[int]] = [[] for _ in range(n)]
    for a, b in edges:
        waits[b] += 1
        after[a].append(b)
    ready = [node for node in range(n) if not waits[node]]
    number: dict[int, int] = {}
    while ready:
        node = ready.pop()
        number[node] = len(number)
        for b in after[node]:
            waits[b] -= 1
            if not waits[b]:
                ready.append(b)
    return {(number[a], number[b]) for a, b in edges}


def _graph_of(rng: random.Random, n: int, edges: Edges, name: str) -> Graph:
    reads: list[list[int]] = [[] for _ in range(n)]
    for a, b in sorted(edges):
        reads[b].append(a)
    used = {a for a, _ in edges}
    tensors = [_tensor("input", 0, _drawn(rng, *RESULT_BYTES), Role.INPUT)]
    ops = []
    result: list[int] = []  # node -> its tensor
    kinds, shares = list(KINDS), [share for share, _, _ in KINDS.values()]
    for node in range(n):
        kind = rng.choices(kinds, shares)[0]
        inputs = [result[a] for a in reads[node]] or [0]
        if kind in WEIGHTED:
            inputs.append(len(tensors))
            size = _drawn(rng, *WEIGHT_BYTES)
            tensors.append(_tensor(f"weight{node}", len(tensors), size, Role.PARAMETER))
        role = Role.ACTIVATION if node in used else Role.OUTPUT
        result.append(len(tensors))
        tensors.append(_tensor(f"t{node}", len(tensors), _drawn(rng, *RESULT_BYTES), role))
        _, mean, spread = KINDS[kind]
        ops.append(
            Op(
                name=f"{kind}{node}",
                kind=kind,
                inputs=tuple(inputs),
                outputs=(result[node],),
                flops=_drawn(rng, mean, spread) if mean else 0,
            )
        )
    return Graph(
        name=name,
        framework="graph",
        ops=tuple(ops),
        tensors=tuple(tensors),
        inputs=(0,),
        outputs=tuple(i for i, tensor in enumerate(tensors) if tensor.role is Role.OUTPUT),
    )


def _tensor(name: str, index: int, size: int, role: Role) -> Tensor:
    size -= size % -4  # whole float32 elements
    return Tensor(
        name=name, shape=(size // 4,), dtype="float32", bytes=size, role=role, storage=index
    )


def _drawn(rng: random.Random, mean: float, spread: float) -> int:
    return max(round(math.exp(min(rng.gauss(mean, spread), LARGEST_LOG))), 1)
