"""A randomly wired network after Xie et al. 2019, arXiv:1904.01569: WS(32, 4, 0.75).

Each stage is a Watts-Strogatz graph of 32 nodes, made acyclic by the node numbers. A node
sums what reaches it, then does ReLU and a separable 3x3 convolution; the stage's output is
the sum of its sinks. Edge weights are 1.
"""

from __future__ import annotations

from tools.models.network import Builder, Network
from tools.models.random_numbers import uniform


def watts_strogatz(
    nodes: int, neighbors: int, probability: float, seed: int
) -> list[tuple[int, int]]:
    """Return the edges (low, high) of a rewired ring, sorted.

    Each node starts linked to `neighbors / 2` next ones; every link moves its far end to a
    random other node with `probability`. Links are never doubled.

    Source: Watts & Strogatz 1998, Nature 393, in the form that networkx made common.
    """
    draws = iter(uniform(seed, "wiring", (64 * nodes * neighbors,)) * 0.5 + 0.5)
    edges = {
        frozenset((node, (node + step) % nodes))
        for step in range(1, neighbors // 2 + 1)
        for node in range(nodes)
    }
    for step in range(1, neighbors // 2 + 1):
        for node in range(nodes):
            if next(draws) >= probability:
                continue
            target = node
            while target == node or frozenset((node, target)) in edges:
                target = int(next(draws) * nodes)
            edges.discard(frozenset((node, (node + step) % nodes)))
            edges.add(frozenset((node, target)))
    return sorted((min(edge), max(edge)) for edge in edges)


def randwire(
    size: int = 64, filters: int = 16, classes: int = 10, stages: int = 3, seed: int = 1
) -> Network:
    """Return the network: a stem of stride 2, then random stages that halve the picture."""
    builder = Builder(name="randwire_ws_32_4_075", input_shape=(size, size, 3))
    x = builder.conv("stem", "input", filters // 2, 3, stride=2)
    for stage in range(stages):
        edges = watts_strogatz(32, 4, 0.75, seed * 100 + stage)
        x = _stage(builder, f"stage{stage}", x, filters * 2**stage, edges)
    x = builder.conv("head", builder.unary("relu", "head_relu", x), 8 * filters, relu=True)
    logits = builder.dense("predictions", builder.mean("pool", x), classes)
    return builder.build(builder.unary("softmax", "probabilities", logits))


def _stage(builder: Builder, name: str, x: str, filters: int, edges: list[tuple[int, int]]) -> str:
    nodes = max(high for _, high in edges) + 1
    sources: list[list[int]] = [[] for _ in range(nodes)]
    for low, high in edges:
        sources[high].append(low)
    made: list[str] = []
    entry = builder.unary("relu", f"{name}_relu", x)
    for node in range(nodes):
        prefix = f"{name}_node{node:02}"
        if sources[node]:
            value = _sum(builder, prefix, [made[source] for source in sources[node]])
            value = builder.unary("relu", f"{prefix}_relu", value)
        else:
            value = entry
        stride = 1 if sources[node] else 2
        value = builder.depthwise(f"{prefix}_dw", value, 3, stride=stride)
        made.append(builder.conv(f"{prefix}_pw", value, filters))
    readers = {low for low, _ in edges}
    sinks = [made[node] for node in range(nodes) if node not in readers]
    return _sum(builder, f"{name}_out", sinks)


def _sum(builder: Builder, prefix: str, parts: list[str]) -> str:
    total = parts[0]
    for index, part in enumerate(parts[1:]):
        total = builder.add(f"{prefix}_add{index}", total, part)
    return total
