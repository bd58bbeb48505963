"""The two orders in which real tools write a network's nodes to a file."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from tools.models.network import WEIGHTED_KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.models.network import Network, Node

FUSING_KINDS = WEIGHTED_KINDS | {"add"}


def as_written(network: Network) -> tuple[Node, ...]:
    """Return the nodes in the order of the builder: what an ONNX export of a module keeps.

    Nodes that compute the same are merged, as exporters do.
    """
    return _merge_equal(network.nodes)


def converter_order(network: Network) -> tuple[Node, ...]:
    """Return the nodes in the order that TensorFlow's .tflite converter gives them.

    The converter imports a graph in reverse post-order of a depth-first search from the
    graph's inputs which visits the readers of a node by descending name; then it merges
    nodes that compute the same into the first of them, and fuses a ReLU into the layer
    before where nothing else reads that.
    Networks with state variables are refused: their reads and writes keep their order.

    Raises:
        ValueError: the network has state variables.

    Cost: O(nodes + uses, sorted).
    """
    if network.variables:
        raise ValueError(f"network {network.name}: has state; its order is fixed by hand")
    readers: dict[str, list[Node]] = {}
    for node in network.nodes:
        for value in dict.fromkeys(node.inputs):
            readers.setdefault(value, []).append(node)
    finished: list[Node] = []
    visited: set[str] = set()

    def readers_of(values: Sequence[str]) -> list[tuple[Node, bool]]:
        found = [reader for value in values for reader in readers.get(value, [])]
        return [(reader, False) for reader in sorted(found, key=_graph_name)]

    # (node, whether its readers are done); the last one pushed is visited first.
    stack = readers_of([network.input])
    while stack:
        node, is_done = stack.pop()
        if is_done:
            finished.append(node)
        elif node.name not in visited:
            visited.add(node.name)
            stack += [(node, True), *readers_of(node.outputs)]
    return _fuse_relus(_merge_equal(tuple(reversed(finished))))


def _graph_name(node: Node) -> str:
    # Exported Keras layers get a suffix, which takes part in the comparison:
    # "activation_10_1/" comes before "activation_1_1/".
    return f"{node.name}_1/"


def _merge_equal(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return the nodes without those that repeat an earlier one; readers are redirected."""
    renamed: dict[str, str] = {}
    known: dict[Node, tuple[str, ...]] = {}
    kept: list[Node] = []
    for node in nodes:
        inputs = tuple(renamed.get(name, name) for name in node.inputs)
        node = replace(node, inputs=inputs)
        computed = replace(node, name="", outputs=())
        has_twin = computed in known and node.kind not in WEIGHTED_KINDS
        if has_twin and not node.variable:
            renamed.update(zip(node.outputs, known[computed], strict=True))
        else:
            known[computed] = node.outputs
            kept.append(node)
    return tuple(kept)


def _fuse_relus(nodes: Sequence[Node]) -> tuple[Node, ...]:
    reads = Counter(name for node in nodes for name in node.inputs)
    makers = {name: node for node in nodes for name in node.outputs}
    fused: dict[str, Node] = {}  # by the name of the layer that swallows a ReLU
    for node in nodes:
        if node.kind != "relu" or reads[node.inputs[0]] > 1:
            continue
        maker = makers.get(node.inputs[0])
        if maker is not None and maker.kind in FUSING_KINDS:
            fused[maker.name] = replace(maker, relu=True, outputs=node.outputs)
    swallowed = {name for node in fused.values() for name in node.outputs}
    return tuple(
        fused.get(node.name, node)
        for node in nodes
        if not (node.kind == "relu" and node.outputs[0] in swallowed)
    )
